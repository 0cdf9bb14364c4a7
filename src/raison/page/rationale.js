// What is said about a rationale besides its text: warnings, the path of the search, the certificate.

import { clean, make } from "./wording.js";
import { stepper } from "./steps.js";

function line({ size, names, besides }) {
  return make("p", { class: "found" }, make("span", { class: "quiet" }, "rationale "), make("strong", {}, size),
    names ? `: ${names}` : "", make("span", { class: "quiet" }, besides));
}

// The rows of a path at some places; a text stands for those that are left out.
function pathTable({ measure, runners_up: others, rows }, places) {
  const barred = rows.some(({ weight }) => weight !== null);
  const body = places.map((place) => {
    if (typeof place === "string") return make("tr", { class: "quiet" }, make("td"), make("td", { colspan: 5 }, place));
    const { number: step, change, size, figure, weight, enough, runners_up: rivals } = rows[place];
    const bar = make("span", { class: "bar" });
    bar.style.setProperty("--size", weight ?? 0);
    const cells = [make("td", { class: "quiet score" }, step), make("td", { class: "change" }, change),
      make("td", { class: "score" }, String(size)), make("td", { class: "score" }, figure)];
    if (barred) cells.push(make("td", { class: "bars" }, weight === null ? "" : bar));
    cells.push(make("td", { class: "tick" }, enough ? make("span", { title: "sufficient" }, "✓") : ""));
    if (others) cells.push(make("td", { class: "quiet rivals" }, rivals));
    return make("tr", step === "" ? { class: "quiet whole" } : {}, ...cells);
  });
  const titles = ["step", "change", "size", measure, ...(barred ? [""] : []), ""];
  const top = titles.map((title) => make("th", { scope: "col" }, title));
  if (others) top.push(make("th", { scope: "col", class: "rivals" }, others));
  return make("table", { class: "path" }, make("thead", {}, make("tr", {}, ...top)), make("tbody", {}, ...body));
}

function paths({ path }, steps) {
  if (!path) return [];
  const found = [pathTable(path, path.excerpt)];
  if (path.excerpt.length < path.rows.length)
    found.push(make("details", {}, make("summary", {}, `All ${steps.length} steps`),
      pathTable(path, path.rows.map((_, place) => place))));
  return found;
}

// A grounded answer: what was asked and answered, and on what it rests.
function asked({ question = "", answer = "", statement = "" }) {
  const list = make("dl", { class: "asked" }, make("dt", {}, "question"), make("dd", {}, clean(question)),
    make("dt", {}, "answer"), make("dd", {}, make("strong", {}, clean(answer))));
  return [list, make("p", { class: "statement" }, clean(statement))];
}

// Above and below the text of an explanation; nothing where it is no rationale. Without its `text`, no key to it.
export function story(explanation, words, text = true) {
  const { grounding } = explanation;
  if (!words) return {};
  const key = make("p", { class: "legend" }, make("span", { class: "kept" }, "in the rationale"));
  if (words.has_given) key.append(make("span", { class: "given" }, "given: read anyway"));
  const [first, ...rest] = words.proof;
  return {
    text,
    above: [...words.warnings.map((warning) => make("p", { class: "warning", role: "note" }, warning)),
      ...(grounding ? asked(grounding) : [])],
    below: [text ? key : "", line(words), text ? stepper(explanation, words.path) : "", ...paths(words, explanation.steps),
      make("p", { class: "verdict" }, make("strong", {}, first), rest.map((part) => ` · ${part}`).join("")),
      make("p", { class: "quiet effort" }, words.effort)],
    named: grounding && ((at) => {
      const { selected, necessary } = grounding.passages[at];
      return { mark: words.roles[at], folded: !selected && !necessary };
    }),
  };
}
