// Where one method gives more than another, as in raison/show/method_difference.py: green with a line below where it gives
// more, red with a line above where it gives less. The colours are never alone.

import { LESS, MORE, SILENT, relative, signed } from "./scale.js";
import { clean, exact, make, soft } from "./wording.js";
import { passagesOf } from "./pieces.js";
import { listen, paint, passage, strongest } from "./render.js";

const MOST = 8; // differences in the table

// Each score relative to its method's strongest, by size where only one of two has negative scores; and one minus the
// other.
function differ(one, other) {
  const bySize = signed(one) !== signed(other);
  const [a, b] = [one, other].map((scores) => relative(bySize ? scores.map(Math.abs) : scores));
  return { a, b, values: a.map((each, unit) => each - b[unit]) };
}

const tint = (element, weight) => paint(element, weight, [MORE, LESS]);
const shade = (element, weight) => {
  if (tint(element, weight)) element.classList.add(weight > 0 ? "more" : "less");
  return element;
};

function sample(weight, words) {
  return make("span", {}, shade(make("span", { class: "sample" }, weight > 0 ? "green, line below" : "red, line above"),
    weight), ` ${words}`);
}

// What is said about two methods, whichever comes first.
export const pairOf = (pairs, i, j) => pairs.find(({ methods: [one, other] }) => (
  one === Math.min(i, j) && other === Math.max(i, j)));

function gaps({ units }, { a, b, values }, [first, second]) {
  const order = values.map((_, u) => u).sort((u, v) => Math.abs(values[v]) - Math.abs(values[u]) || u - v);
  const shown = order.slice(0, MOST).filter((u) => Math.abs(values[u]) >= SILENT);
  const cell = (value) => make("td", { class: "score" }, (value < 0 ? "−" : "+") + Math.abs(value).toFixed(3));
  const rows = shown.map((u) => {
    const last = cell(values[u]);
    tint(last, values[u]);
    return make("tr", {}, make("th", { scope: "row" }, clean(units.names[u])), cell(a[u]), cell(b[u]), last);
  });
  const top = ["largest", first, second, "difference"].map((title) => make("th", { scope: "col" }, ...soft(title)));
  return make("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": "the largest differences" },
    make("table", { class: "gaps" }, make("thead", {}, make("tr", {}, ...top)), make("tbody", {}, ...rows)));
}

function drawn(members, { names, pairs, no_difference: nothing }, i, j) {
  const [one, other] = [members[i].explanation, members[j].explanation];
  const found = differ(one.scores, other.scores);
  const label = (unit) => `${clean(one.units.names[unit])}: ${exact(found.values[unit])} = `
    + `${exact(found.a[unit])} by ${names[i]} minus ${exact(found.b[unit])} by ${names[j]}`;
  const passages = passagesOf(members[i].words);
  const text = make("div", { class: "passages", role: "group", "aria-label": `${names[i]} minus ${names[j]}` },
    ...passages.map((each) => passage(each, passages.length > 1, (piece, units) => {
      shade(piece, strongest(found.values, units));
      return units.map(label).join("; ");
    })));
  listen(text);
  const meaning = i === j ? "" : pairOf(pairs, i, j).difference;
  const key = make("p", { class: "legend" }, sample(1, `${names[i]} gives more`), sample(-1, `${names[j]} gives more`),
    make("span", {}, meaning));
  const bare = found.values.every((value) => Math.abs(value) < SILENT);
  const same = make("p", { class: "note" }, nothing);
  return [text, key, bare ? same : gaps(one, found, [names[i], names[j]])];
}

// A choice of two methods and the text in the colours of their difference; `choose(i, j)` chooses from outside.
export function differenceOf(members, words) {
  const { names } = words;
  const picks = ["A", "B"].map((side) => make("select", { "aria-label": `method ${side}` },
    ...names.map((name, at) => make("option", { value: at }, name))));
  const swap = make("button", { type: "button" }, "swap");
  const shown = make("div");
  const section = make("section", { class: "differ" }, make("h3", {}, "Difference"),
    make("div", { class: "pick" }, picks[0], make("span", { "aria-hidden": "true" }, "−"), picks[1], swap), shown);
  const choose = (i, j) => {
    [picks[0].value, picks[1].value] = [i, j];
    shown.replaceChildren(...drawn(members, words, i, j));
  };
  const chosen = () => picks.map((pick) => Number(pick.value));
  for (const pick of picks) pick.addEventListener("change", () => choose(...chosen()));
  swap.addEventListener("click", () => choose(...chosen().reverse()));
  choose(0, 1);
  return { section, choose };
}
