// How far methods agree, in numbers and in words, as in raison/show/agreement.py and consensus.py (a test compares
// them). A vector that is constant has no order: then every measure is null.

import { clean } from "./wording.js";

const [FEWEST, SHARE, ALIKE, RARE, SELDOM, MANY] = [3, 0.2, 0.3, 2.5, 1 / 160, 4];

export const signed = (scores) => scores.some((s) => s < 0);
const constant = (scores) => scores.every((s) => s === scores[0]);
const largest = (scores) => scores.reduce((most, s) => Math.max(most, Math.abs(s)), 0);
const relative = (scores, most = largest(scores)) => scores.map((s) => (most ? s / most : 0));
export const top = (size) => Math.max(1, Math.min(Math.max(FEWEST, Math.ceil(SHARE * size)), Math.floor(size / 2)));
export const alike = (size) => (size < 2 ? Infinity
  : Math.max(ALIKE, RARE * Math.sqrt((2 * (2 * size + 5)) / (9 * size * (size - 1)))));

// Two vectors as they can be compared: where only one of them has negative scores, both by size.
export const comparable = (one, other) => (signed(one) === signed(other) ? [one, other]
  : [one.map(Math.abs), other.map(Math.abs)]);

// The difference view: each score relative to its method's strongest, and one minus the other.
export function difference(one, other) {
  const [a, b] = comparable(one, other).map((scores) => relative(scores));
  return { a, b, values: a.map((each, unit) => each - b[unit]), bySize: signed(one) !== signed(other) };
}

function strong(scores, k) {
  const order = scores.map((_, u) => u).sort((a, b) => Math.abs(scores[b]) - Math.abs(scores[a]) || a - b);
  return order.slice(0, k).filter((u) => scores[u]);
}

function pearson(one, other) {
  const [a, b] = [one, other].map((scores) => {
    const shares = relative(scores);
    const mean = shares.reduce((sum, s) => sum + s, 0) / shares.length;
    return relative(shares.map((s) => s - mean));
  });
  const dot = (x, y) => x.reduce((sum, each, unit) => sum + each * y[unit], 0);
  return Math.max(-1, Math.min(1, dot(a, b) / Math.sqrt(dot(a, a) * dot(b, b))));
}

function ranks(scores) { // equal scores share the mean of their ranks
  const order = scores.map((_, u) => u).sort((a, b) => scores[a] - scores[b]);
  const found = [];
  for (let low = 0, high; low < order.length; low = high) {
    for (high = low; high < order.length && scores[order[high]] === scores[order[low]];) high++;
    for (let at = low; at < high; at++) found[order[at]] = (low + high + 1) / 2;
  }
  return found;
}

const ties = (keys) => {
  const sizes = new Map();
  for (const key of keys) sizes.set(key, (sizes.get(key) ?? 0) + 1);
  return [...sizes.values()].reduce((sum, size) => sum + (size * (size - 1)) / 2, 0);
};

// Pairs in the wrong order, counted while sorting by merging.
function inversions(numbers) {
  if (numbers.length < 2) return { sorted: numbers, found: 0 };
  const half = numbers.length >> 1;
  const [left, right] = [inversions(numbers.slice(0, half)), inversions(numbers.slice(half))];
  let [found, at] = [left.found + right.found, 0];
  const sorted = [];
  for (const number of right.sorted) {
    while (at < half && left.sorted[at] <= number) sorted.push(left.sorted[at++]);
    sorted.push(number);
    found += half - at;
  }
  return { sorted: sorted.concat(left.sorted.slice(at)), found };
}

function tauB(a, b) { // Knight 1966
  const order = a.map((_, u) => u).sort((u, v) => a[u] - a[v] || b[u] - b[v]);
  const pairs = (a.length * (a.length - 1)) / 2;
  const [tiedA, tiedB, tied] = [a, b, a.map((each, u) => `${each} ${b[u]}`)].map(ties);
  const surplus = pairs - tiedA - tiedB + tied - 2 * inversions(order.map((u) => b[u])).found;
  return surplus / Math.sqrt((pairs - tiedA) * (pairs - tiedB));
}

export function agreement(one, other) {
  const bySize = signed(one) !== signed(other);
  const [a, b] = comparable(one, other);
  if (constant(a) || constant(b)) return { shared: null, tau: null, rho: null, r: null, bySize };
  const k = top(a.length);
  const also = new Set(strong(b, k));
  const shared = strong(a, k).filter((u) => also.has(u) && Math.sign(a[u]) === Math.sign(b[u])).length;
  return { shared, tau: tauB(a, b), rho: pearson(ranks(a), ranks(b)), r: pearson(a, b), bySize };
}

// How likely unrelated methods share so many of the strongest, or more: the hypergeometric distribution, in logarithms.
function byChance(shared, size) {
  const k = top(size);
  const logs = [0];
  for (let x = 0; x < k; x++) logs.push(logs[x] + 2 * Math.log(k - x) - Math.log((x + 1) * (size - 2 * k + x + 1)));
  const most = logs.reduce((a, b) => Math.max(a, b));
  const sum = (some) => some.reduce((all, each) => all + Math.exp(each - most), 0);
  return sum(logs.slice(shared)) / sum(logs);
}

const close = (pairs, size) => pairs.filter(({ tau, shared }) => (
  tau !== null && (tau >= alike(size) || byChance(shared, size) <= SELDOM)));

function apart(pairs, size) { // the methods that are close to no other
  const among = (some) => new Set(some.flatMap(({ i, j }) => [i, j]));
  const near = among(close(pairs, size));
  return [...among(pairs.filter(({ tau }) => tau !== null))].filter((at) => !near.has(at)).sort((a, b) => a - b);
}

// A name for each method, as short as they can be told apart.
export function titles(explanations) {
  const specs = explanations.map(({ method }) => clean(method));
  const removed = explanations.map(({ removal }, at) => specs[at] + (removal ? `, ${clean(removal)}` : ""));
  return [specs.map((spec) => spec.split("(")[0]), specs, removed, removed.map((name, at) => `${name} #${at + 1}`)]
    .find((names) => new Set(names).size === names.length);
}

function listed(names) {
  const shown = names.length > MANY ? [...names.slice(0, MANY - 1), `${names.length - MANY + 1} more`] : names;
  return shown.length > 1 ? `${shown.slice(0, -1).join(", ")} and ${shown[shown.length - 1]}` : shown.join("");
}

const agreed = (shared, k, level) => (k === 1 ? `${shared ? "agree on" : "differ in"} the strongest ${level}`
  : shared === k ? `agree on the ${k} strongest ${level}s`
  : `agree on ${shared || "none"} of the ${k} strongest ${level}s`);

// Two decimals as Python rounds them, which sends exact halves to the even digit; without a minus before 0.00.
export function hundredths(value) {
  const half = Number.isInteger(value * 8) && !Number.isInteger(value * 4);
  const digits = half ? (2 * Math.round(value * 50)) / 100 : value;
  return digits.toFixed(2).replace(/^-0\.00$/, "0.00");
}

// What the closest pair has in common: first the measure by which it is the closest, then the other.
function nearest({ tau, shared }, size, level, byOrder) {
  const [k, rounded] = [top(size), hundredths(tau)];
  if (!byOrder) {
    const most = `share the most of the strongest ${level}s (${shared} of ${k})`;
    return `${most} but order the ${level}s no more alike than chance would (tau-b ${rounded})`;
  }
  const order = `order the ${level}s most alike (tau-b ${rounded})`;
  if (shared === k || k === 1) return `${order} ${shared ? "and" : "but"} ${agreed(shared, k, level)}`;
  if (2 * shared >= k) return `${order} and share ${shared} of the ${k} strongest`;
  return `${order} but share ${shared ? `only ${shared}` : "none"} of the ${k} strongest`;
}

// Who agrees with whom; `pairs` is a list of {i, j, ...agreement}.
export function statement(explanations, pairs) {
  const [names, level, size] = [titles(explanations), explanations[0].units.level, explanations[0].scores.length];
  if (size < 2) return `There is only one ${level}: nothing to compare.`;
  const flat = names.filter((_, at) => constant(explanations[at].scores));
  const equal = flat.length ? `${listed(flat)} ${flat.length > 1 ? "give" : "gives"} every ${level} the same score.` : "";
  const known = pairs.filter(({ tau }) => tau !== null);
  if (!known.length) return [equal, "There is nothing to compare."].filter(Boolean).join(" ");
  const near = close(pairs, size);
  const greatest = (some, first, second) => some.reduce((best, each) => (
    each[first] > best[first] || (each[first] === best[first] && each[second] > best[second]) ? each : best));
  const first = greatest(known, "tau", "shared");
  const byOrder = !near.length || first.tau >= alike(size);
  const closest = byOrder ? first : greatest(near, "shared", "tau"); // else close by their strongest units alone
  const pair = `${names[closest.i]} and ${names[closest.j]}`;
  const shared = agreed(closest.shared, top(size), level);
  const alone = apart(pairs, size).map((at) => names[at]);
  const [same, reverse] = [closest.tau >= alike(size), closest.tau <= -alike(size)];
  const order = `${same || reverse ? "" : "do not "}order the ${level}s ${reverse ? "in reverse" : "alike"}`;
  const most = `${pair} ${nearest(closest, size, level, byOrder)}`;
  const few = explanations.length === 2 ? `${pair} ${shared}` : most;
  const said = alike(size) > 1 ? `${few}; ${size} ${level}s are too few to tell orders from chance.`
    : explanations.length === 2 ? `${pair} ${shared} ${closest.shared > 0 === same ? "and" : "but"} ${order}.`
    : !near.length ? `No two methods agree more than chance would; ${most}.`
    : known.every(({ tau }) => tau >= alike(size))
      ? `All methods order the ${level}s alike; ${most}.`
    : alone.length ? `${most}; ${listed(alone)} ${alone.length > 1 ? "stand" : "stands"} apart.`
    : `${most}; every method is close to at least one other.`;
  return [said, equal].filter(Boolean).join(" ");
}

export function footnotes(explanations, pairs) {
  const [names, level, size] = [titles(explanations), explanations[0].units.level, explanations[0].scores.length];
  if (pairs.every(({ tau }) => tau === null)) return [];
  const least = alike(size);
  const said = least > 1 ? []
    : [`Alike: tau-b of ${least.toFixed(3)} or more, which unrelated orders of ${size} ${level}s rarely reach.`];
  if (least <= 1 && explanations.length > 2 && apart(pairs, size).length)
    said.push("Apart: alike to none, and sharing no more of the strongest with any than chance would.");
  const plain = names.filter((_, at) => !signed(explanations[at].scores));
  const [has, is] = plain.length === 1 ? ["has", "is"] : ["have", "are"];
  if (pairs.some(({ bySize }) => bySize))
    said.push(`${listed(plain)} ${has} no negative scores and ${is} compared with the others by size, without signs.`);
  return said;
}
