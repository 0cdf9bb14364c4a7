// Several methods about one text: a row of text for each, how far they agree, and where they differ.

import { clean, exact, make, number, selection, soft } from "./wording.js";
import { flow } from "./flow.js";
import { TOLD, diagnosticsOf, download, dressed, fold, head, legend, listen, paint, passage, remarks, weighed }
  from "./render.js";
import { agreement, alike, footnotes, hundredths, signed, statement, titles, top } from "./agreement.js";
import { differenceOf } from "./difference.js";

const MEASURES = {
  shared: ["Strongest", (k) => `how many of the ${k} strongest units of both are the same, on the same side`],
  tau: ["Kendall τ-b", () => "of two units, do both put the same one first? 1 always, 0 as often as not, −1 never"],
  rho: ["Spearman ρ", () => "correlation of the ranks, from −1 to 1"],
  r: ["Pearson r", () => "correlation of the scores, from −1 to 1"],
};

// The same lists in the same order, but neighbours of one explanation each that explain the same thing are joined.
export function besides(sheets) {
  const subject = ({ model, units, target }) => JSON.stringify([model, units, target]);
  const same = (one, other) => !one.certificate && !other.certificate
    && one.encoding === other.encoding && subject(one) === subject(other); // html.py made equal encodings the same
  return sheets.reduce((groups, [first, ...others]) => {
    const last = groups[groups.length - 1];
    if (last && same(last[0], first)) last.push(first);
    else groups.push([first, ...others]);
    return groups;
  }, []);
}

// The colours of one method: the ramp, and the score of full colour.
function scaleOf(scores, largest) {
  const ramp = legend(scores, largest).querySelector(".ramp");
  const figure = number(largest, largest);
  return make("p", { class: "legend" }, ramp, signed(scores) ? figure.replace("+", "±") : figure);
}

// The cells of one unit in the table of all methods: its score and its rank, or whether it was selected.
function toldOf(explanation, unit, ranks) {
  const { scores, selected } = explanation;
  const chosen = Boolean(selected?.[unit]);
  if (selection(explanation)) return [make("td"), make("td", {}, chosen ? "selected" : "not selected")];
  return [make("td", { class: "score" }, exact(scores[unit])),
    make("td", {}, `rank ${ranks[unit]}${chosen ? ", selected" : ""}`)];
}

function rowsOf(explanations, names, measures) {
  const passages = flow(explanations[0]);
  const rows = explanations.map((explanation, at) => {
    const { largest, weights, ranks } = measures[at];
    const facts = [explanation.method === names[at] ? "" : explanation.method,
      explanation.removal ? `removal: ${explanation.removal}` : ""].filter(Boolean).join(" · ");
    const label = make("div", { class: "method" }, make("h3", {}, ...soft(names[at])),
      largest && !selection(explanation) ? scaleOf(explanation.scores, largest) : "", facts ? make("p", { class: "note" }, clean(facts)) : "",
      ...remarks(explanation));
    const text = make("div", { class: "passages" }, ...passages.map((each) => (
      passage(each, passages.length > 1, (piece, units) => (
        `${names[at]}, ${dressed(explanation, weights, ranks)(piece, units)}`)))));
    return make("div", { class: "row", "data-method": at }, label, text);
  });
  const section = make("section", { class: "rows", "aria-label": "the text, once for each method" }, ...rows);
  // everything that the methods say about one unit
  const release = () => section.querySelectorAll(".twin").forEach((twin) => twin.classList.remove("twin"));
  const told = (piece) => {
    const own = Number(piece.closest(".row").dataset.method);
    release();
    for (const twin of section.querySelectorAll(`[data-units="${piece.dataset.units}"]`)) twin.classList.add("twin");
    return piece.dataset.units.split(" ").map(Number).flatMap((unit) => [
      make("strong", {}, clean(explanations[0].units.names[unit])),
      make("table", {}, ...explanations.map((explanation, at) => make("tr", { class: at === own ? "own" : "" },
        make("td", {}, names[at]), ...toldOf(explanation, unit, measures[at].ranks))))]);
  };
  listen(section, told, rows);
  for (const name of ["mouseleave", "focusout"]) section.addEventListener(name, release);
  return section;
}

let tables = 0; // so far: each has radio buttons of its own

function accordOf(explanations, names, pairs, choose) {
  const size = explanations[0].scores.length;
  const find = (i, j) => pairs.find((pair) => pair.i === Math.min(i, j) && pair.j === Math.max(i, j));
  const table = make("table", { class: "accord" });
  const meaning = make("p", { class: "note" });
  const draw = (measure) => {
    const figure = (value) => (value === null ? "–" : measure === "shared" ? `${value}`
      : hundredths(value).replace(/^(-?)/, (minus) => (minus ? "−" : "+")));
    const heads = names.map((name) => make("th", { scope: "col", class: "head" }, make("span", {}, name)));
    const cellOf = (name, i) => (other, j) => {
      if (i === j) return make("td");
      const found = find(i, j);
      const cell = make("td", { "data-pair": `${i} ${j}`, title: `show ${name} − ${other}` }, figure(found[measure]));
      cell.style.setProperty("--size", Math.abs(found[measure] ?? 0) / (measure === "shared" ? top(size) : 1));
      cell.classList.toggle("below", found[measure] < 0);
      cell.classList.toggle("alike", found.tau !== null && found.tau >= alike(size));
      return cell;
    };
    const rows = names.map((name, i) => (
      make("tr", {}, make("th", { scope: "row" }, ...soft(name)), ...names.map(cellOf(name, i)))));
    table.replaceChildren(make("thead", {}, make("tr", {}, make("td"), ...heads)),
      make("tbody", {}, ...rows));
    const [title, means] = MEASURES[measure];
    meaning.replaceChildren(`${title}: ${means(top(size))}.${alike(size) <= 1 ? " Bold: alike." : ""}`);
  };
  tables += 1;
  const picks = Object.entries(MEASURES).map(([measure, [title]]) => {
    const pick = make("input", { type: "radio", name: `measure ${tables}`, value: measure });
    pick.checked = measure === "tau";
    pick.addEventListener("change", () => draw(measure));
    return make("label", {}, pick, make("span", {}, title));
  });
  table.addEventListener("click", (event) => {
    const pair = event.target.closest?.("td[data-pair]")?.dataset.pair;
    if (pair) choose(...pair.split(" ").map(Number));
  });
  draw("tau");
  return make("section", { class: "agree" }, make("h3", {}, "Agreement"),
    make("div", { class: "measures", role: "radiogroup", "aria-label": "measure of agreement" }, ...picks),
    make("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": "agreement of every two methods" }, table),
    meaning, ...footnotes(explanations, pairs).map((note) => make("p", { class: "note" }, note)));
}

function scoresOf(explanations, names, measures) {
  const { units } = explanations[0];
  const top = ["unit", ...names].map((title) => make("th", { scope: "col" }, ...soft(title)));
  const rows = units.names.map((name, unit) => make("tr", {}, make("th", { scope: "row" }, clean(name)),
    ...explanations.map((explanation, at) => {
      const { scores, selected } = explanation;
      if (selection(explanation))
        return make("td", { class: selected[unit] ? "score selected" : "score" }, selected[unit] ? "selected" : "");
      const cell = make("td", { class: selected?.[unit] ? "score selected" : "score" },
        number(scores[unit], measures[at].largest));
      paint(cell, measures[at].weights[unit]);
      return cell;
    })));
  return make("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": "all scores" },
    make("table", { class: "all" }, make("thead", {}, make("tr", {}, ...top)), make("tbody", {}, ...rows)));
}

export function renderComparison(explanations, container) {
  const names = titles(explanations);
  const measures = explanations.map(({ scores }) => weighed(scores));
  const pairs = names.flatMap((_, i) => names.slice(i + 1).map((_, after) => (
    { i, j: i + 1 + after, ...agreement(explanations[i].scores, explanations[i + 1 + after].scores) })));
  const { section: differ, choose } = differenceOf(explanations, names);
  const diagnosed = explanations.flatMap(({ diagnostics: own }, at) => (
    Object.keys(own).every((name) => TOLD.includes(name)) ? [] : [make("h4", {}, names[at]), diagnosticsOf(own)]));
  const two = explanations.some(({ scores }) => signed(scores));
  const colours = two ? "Orange speaks for the target, blue against it" : "The deeper the orange, the higher the score";
  const underlined = explanations.some(({ selected }) => selected) ? " Underlined: selected." : "";
  const button = make("button", { type: "button" }, "Download JSON");
  button.addEventListener("click", () => download(explanations));
  const article = make("article", { class: "raison compare" }, head(explanations[0], true),
    make("p", { class: "said" }, statement(explanations, pairs)), rowsOf(explanations, names, measures),
    make("p", { class: "note" }, `${colours}; full colour is each method's strongest score.${underlined}`),
    pairs.some(({ tau }) => tau !== null) ? accordOf(explanations, names, pairs, choose) : "", differ,
    fold(`All ${explanations[0].scores.length} units`, scoresOf(explanations, names, measures)),
    diagnosed.length ? fold("Diagnostics", make("div", {}, ...diagnosed)) : "", make("footer", {}, button));
  container.append(article);
  return article;
}
