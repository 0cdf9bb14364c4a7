// What is said about a rationale besides its text: warnings, the path of the search, the certificate in words.
// As in raison/show/certificate.py and path.py; a test compares the words.

import { clean, count, make, share, short, valueName } from "./wording.js";
import { given } from "./flow.js";
import { stepper } from "./steps.js";

const [LONG, NAMED, FIRST, LAST] = [48, 3, 5, 5];

const chosen = ({ selected, order }) => {
  const first = (order ?? []).filter((unit) => selected[unit]);
  return first.concat(selected.map((_, u) => u).filter((u) => selected[u] && !first.includes(u)));
};

function warnings({ target, certificate: proof }) {
  const rival = target.contrast ? "the contrast" : "something else";
  const rule = clean(proof.rule ?? "this rule");
  const ended = { budget: "its budget was spent", interrupted: "it was interrupted" }[proof.status];
  return [
    proof.status === "impossible" && `Not even the whole context is sufficient by ${rule}, and this search found no part that is.`,
    ended && `The search ended because ${ended}: this is the best found, and a smaller rationale may exist.`,
    !proof.sufficient && proof.status !== "impossible"
      && `What is marked is not sufficient by ${rule}: the prediction rests on more than this.`,
    proof.is_prediction === false && `From the whole context the model prefers ${rival}: this target is not its own.`,
  ].filter(Boolean);
}

function verdict({ certificate: proof }) {
  if (!proof.sufficient) return ["not sufficient"];
  const soft = String(proof.rule ?? "").startsWith("penalty");
  const spared = proof.irreducible ? "nothing can be spared" : "something may be spared";
  const smallest = proof.optimal ? (soft ? "proved: none costs less" : "proved: none is smaller")
    : soft ? "not proved to cost least"
    : `not proved smallest${proof.lower_bound ? `: at least ${proof.lower_bound} needed` : ""}`;
  const tau = /^probability\(tau=([\d.]+)\)$/.exec(proof.rule ?? "");
  const least = tau && proof.full_probability != null ? `enough from ${share(Number(tau[1]) * proof.full_probability)} on` : "";
  return [soft ? "of low cost (no threshold)" : "sufficient (checked anew)", least,
    proof.irreducible == null ? "" : spared, smallest].filter(Boolean);
}

function effort({ certificate: proof, steps }) {
  const whole = proof.full_probability == null ? "" : ` (${share(proof.full_probability)} from the whole context)`;
  const work = [proof.evaluations == null ? "" : count(proof.evaluations, "evaluation"),
    proof.search_tokens == null ? "" : count(proof.search_tokens, "token-forward"),
    proof.check_tokens ? `${proof.check_tokens} more to check` : ""].filter(Boolean).join(", ");
  const read = proof.kept_tokens == null || proof.context_tokens == null ? ""
    : `the model reads ${proof.kept_tokens} of ${count(proof.context_tokens, "context token")}`;
  const likely = proof.probability == null || steps?.length ? "" : `probability ${share(proof.probability)}${whole}`;
  return [read, likely, work].filter(Boolean);
}

function line(explanation) {
  const { units, encoding } = explanation;
  const found = chosen(explanation);
  const names = found.slice(0, 12).map((u) => short(units.names[u], LONG)).concat(found.length > 12 ? ["…"] : []);
  const kept = given(explanation).flatMap((on, t) => (on ? [`“${short(encoding.tokens[t], LONG)}”`] : []));
  const also = kept.length && kept.length <= 3 ? `${names.length ? ", and" : ": only"} the given ${kept.join(", ")}`
    : names.length || !explanation.certificate.sufficient ? "" : ": nothing of it is needed";
  return make("p", { class: "found" }, make("span", { class: "quiet" }, "rationale "),
    make("strong", {}, `${found.length} of ${count(units.names.length, units.level)}`),
    names.length ? `: ${names.join(" → ")}` : "", make("span", { class: "quiet" }, also));
}

// JSON has no infinity; it comes as the word that Python has for it.
const real = (value) => (typeof value === "string" ? Number(value.replace("inf", "Infinity")) : value);
const plain = (value) => String(Number(value.toPrecision(4))).replace("-", "−").replace("Infinity", "inf");
const figure = (value, likely) => (likely != null ? share(likely) : value == null ? "" : plain(real(value)));

// How values become probabilities, as told by the steps that give both.
function reading(steps) {
  const pairs = steps.filter((s) => s.probability != null).map((s) => [real(s.value), s.probability]);
  const fits = (read) => pairs.length
    && pairs.every(([v, p]) => Math.abs(read(v) - p) <= Math.max(1e-6, 1e-3 * Math.max(Math.abs(read(v)), p)));
  return [Math.exp, (value) => value].find(fits);
}

function walked(explanation) {
  const { units, steps, certificate: proof } = explanation;
  const read = reading(steps);
  const names = (some) => (some.length > NAMED ? count(some.length, units.level)
    : some.map((u) => short(units.names[u], 28)).join(", "));
  const found = steps.map(({ added = [], removed = [], size, value, probability, sufficient: enough, candidates = [] }, place) => ({
    place, size, enough, probability, figure: figure(value, probability),
    change: [added.length ? `+ ${names(added)}` : "", removed.length ? `− ${names(removed)}` : ""]
      .filter(Boolean).join("  ") || "start",
    rivals: candidates.filter(([u]) => !added.includes(u) && !removed.includes(u))
      .map(([u, v]) => `${names([u])} ${figure(v, read?.(real(v)))}`),
  }));
  if (proof.full_value != null || proof.full_probability != null)
    found.push({ place: "", size: units.names.length, change: "the whole context", rivals: [],
      enough: proof.status !== "impossible", probability: proof.full_probability,
      figure: figure(proof.full_value, proof.full_probability) });
  return found;
}

// The first and last steps and the first that is enough; a number stands for steps left out.
function excerpt(steps) {
  const turn = Math.max(0, steps.findIndex((step) => step.enough));
  const shown = (at) => at >= 0 && (at < FIRST || at === turn || at > steps.length - LAST - 2);
  return steps.reduce((all, step, at) => {
    if (shown(at) || (shown(at - 1) && shown(at + 1))) all.push(step);
    else if (typeof all[all.length - 1] === "number") all[all.length - 1]++;
    else all.push(1);
    return all;
  }, []);
}

function path(explanation, steps, highest) {
  const likely = explanation.steps.some((step) => step.probability != null);
  const rivals = steps.some((step) => step.rivals?.length);
  const output = valueName(explanation.target);
  const rows = steps.map((step) => {
    if (typeof step === "number")
      return make("tr", { class: "quiet" }, make("td"), make("td", { colspan: 5 }, `⋮ ${count(step, "step")} more`));
    const bar = make("span", { class: "bar" });
    bar.style.setProperty("--size", highest ? (step.probability ?? 0) / highest : 0);
    const cells = [make("td", { class: "quiet score" }, String(step.place)),
      make("td", { class: "change" }, step.change), make("td", { class: "score" }, String(step.size)),
      make("td", { class: "score" }, step.figure)];
    if (likely) cells.push(make("td", { class: "bars" }, step.probability == null ? "" : bar));
    cells.push(make("td", { class: "tick" }, step.enough ? make("span", { title: "sufficient" }, "✓") : ""));
    if (rivals) cells.push(make("td", { class: "quiet rivals" }, step.rivals.slice(0, 2).join(", ")));
    return make("tr", step.place === "" ? { class: "quiet whole" } : {}, ...cells);
  });
  const led = explanation.method.startsWith("refined") && explanation.certificate.rule?.startsWith("argmax");
  const others = led ? "runners-up, by lead" : "runners-up"; // `refined` ranks by the lead over other predictions too
  const titles = ["step", "change", "size", likely ? "probability" : output, ...(likely ? [""] : []), "",
    ...(rivals ? [others] : [])];
  const top = titles.map((t) => make("th", { scope: "col", ...(t === others ? { class: "rivals" } : {}) }, t));
  return make("table", { class: "path" }, make("thead", {}, make("tr", {}, ...top)), make("tbody", {}, ...rows));
}

function paths(explanation) {
  if (!explanation.steps?.length) return [];
  const steps = walked(explanation);
  const highest = steps.reduce((most, step) => Math.max(most, step.probability ?? 0), 0);
  const some = excerpt(steps);
  const found = [path(explanation, some, highest)];
  if (some.length < steps.length)
    found.push(make("details", {}, make("summary", {}, `All ${explanation.steps.length} steps`),
      path(explanation, steps, highest)));
  return found;
}

// A grounded answer: what was asked and answered, and on what it rests.
function asked({ question = "", answer = "", statement = "" }) {
  const list = make("dl", { class: "asked" }, make("dt", {}, "question"), make("dd", {}, clean(question)),
    make("dt", {}, "answer"), make("dd", {}, make("strong", {}, clean(answer))));
  return [list, make("p", { class: "statement" }, clean(statement))];
}

const stand = ({ selected, necessary }) => (selected
  ? `the answer rests on it${necessary ? ", and its words change without it" : ""}`
  : necessary ? "the answer's words change without it" : "not needed");

// Above and below the text of an explanation; nothing where it is no rationale. Without its `text`, no key to it.
export function story(explanation, text = true) {
  const { selected, certificate: proof, grounding } = explanation;
  if (!proof || !selected) return {};
  const key = make("p", { class: "legend" }, make("span", { class: "kept" }, "in the rationale"));
  if (given(explanation).some(Boolean)) key.append(make("span", { class: "given" }, "given: read anyway"));
  const [first, ...rest] = verdict(explanation);
  return {
    text,
    above: [...warnings(explanation).map((text) => make("p", { class: "warning", role: "note" }, text)),
      ...(grounding ? asked(grounding) : [])],
    below: [text ? key : "", line(explanation), text ? stepper(explanation) : "", ...paths(explanation),
      make("p", { class: "verdict" }, make("strong", {}, first), rest.map((part) => ` · ${part}`).join("")),
      make("p", { class: "quiet effort" }, effort(explanation).join(" · "))],
    named: grounding && ((passage) => ({ mark: stand(passage), folded: !passage.selected && !passage.necessary })),
  };
}
