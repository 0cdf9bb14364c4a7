// Several methods about one text: a row of text for each, how far they agree, and where they differ.

import { signed } from "./scale.js";
import { clean, make, number, selection, soft } from "./wording.js";
import { passagesOf } from "./pieces.js";
import { TOLD, diagnosticsOf, download, dressed, fold, head, legend, listen, notesBelow, paint, passage, weighed }
  from "./render.js";
import { differenceOf, pairOf } from "./difference.js";

// The colours of one method: the ramp, and the score of full colour.
function scaleOf(scores, largest) {
  const ramp = legend(scores, largest).querySelector(".ramp");
  const figure = number(largest, largest);
  return make("p", { class: "legend" }, ramp, signed(scores) ? figure.replace("+", "±") : figure);
}

// The cells of one unit in the table of all methods: its score and its rank, or whether it was selected.
const toldOf = ({ score, remark }) => [make("td", score ? { class: "score" } : {}, score), make("td", {}, remark)];

function rowsOf(members, { names, facts_of_methods: facts }, measures) {
  const explanations = members.map(({ explanation }) => explanation);
  const passages = passagesOf(members[0].words);
  const rows = members.map(({ explanation, words }, at) => {
    const { largest, weights } = measures[at];
    const label = make("div", { class: "method" }, make("h3", {}, ...soft(names[at])),
      largest && !selection(explanation) ? scaleOf(explanation.scores, largest) : "", facts[at] ? make("p", { class: "note" }, facts[at]) : "",
      ...notesBelow(words.remarks));
    const text = make("div", { class: "passages" }, ...passages.map((each) => (
      passage(each, passages.length > 1, (piece, units) => (
        `${names[at]}, ${dressed(explanation, words.units, weights)(piece, units)}`)))));
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
      make("table", {}, ...members.map(({ words }, at) => make("tr", { class: at === own ? "own" : "" },
        make("td", {}, names[at]), ...toldOf(words.units[unit]))))]);
  };
  listen(section, told, rows);
  for (const name of ["mouseleave", "focusout"]) section.addEventListener(name, release);
  return section;
}

let tables = 0; // so far: each has radio buttons of its own

function accordOf({ names, pairs, measures, footnotes }, choose) {
  const table = make("table", { class: "accord" });
  const meaning = make("p", { class: "note" });
  const draw = ({ key, meaning: said }) => {
    const heads = names.map((name) => make("th", { scope: "col", class: "head" }, make("span", {}, name)));
    const cellOf = (name, i) => (other, j) => {
      if (i === j) return make("td");
      const pair = pairOf(pairs, i, j);
      const { figure, size, negative } = pair.cells[key];
      const cell = make("td", { "data-pair": `${i} ${j}`, title: `show ${name} − ${other}` }, figure);
      cell.style.setProperty("--size", size);
      cell.classList.toggle("below", negative);
      cell.classList.toggle("alike", pair.alike);
      return cell;
    };
    const rows = names.map((name, i) => (
      make("tr", {}, make("th", { scope: "row" }, ...soft(name)), ...names.map(cellOf(name, i)))));
    table.replaceChildren(make("thead", {}, make("tr", {}, make("td"), ...heads)),
      make("tbody", {}, ...rows));
    meaning.replaceChildren(said);
  };
  tables += 1;
  const picks = measures.map((measure) => {
    const pick = make("input", { type: "radio", name: `measure ${tables}`, value: measure.key });
    pick.checked = measure.key === "tau";
    pick.addEventListener("change", () => draw(measure));
    return make("label", {}, pick, make("span", {}, measure.title));
  });
  table.addEventListener("click", (event) => {
    const pair = event.target.closest?.("td[data-pair]")?.dataset.pair;
    if (pair) choose(...pair.split(" ").map(Number));
  });
  draw(measures.find(({ key }) => key === "tau"));
  return make("section", { class: "agree" }, make("h3", {}, "Agreement"),
    make("div", { class: "measures", role: "radiogroup", "aria-label": "measure of agreement" }, ...picks),
    make("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": "agreement of every two methods" }, table),
    meaning, ...notesBelow(footnotes));
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

// `members` are explanations with what is said about each; `words` is what is said about all of them.
export function renderComparison(members, words, container) {
  const explanations = members.map(({ explanation }) => explanation);
  const { names } = words;
  const measures = explanations.map(({ scores }) => weighed(scores));
  const { section: differ, choose } = differenceOf(members, words);
  const diagnosed = explanations.flatMap(({ diagnostics: own }, at) => (
    Object.keys(own).every((name) => TOLD.includes(name)) ? [] : [make("h4", {}, names[at]), diagnosticsOf(own)]));
  const button = make("button", { type: "button" }, "Download JSON");
  button.addEventListener("click", () => download(explanations));
  const article = make("article", { class: "raison compare" }, head(members[0].words, words.facts),
    make("p", { class: "said" }, words.statement), rowsOf(members, words, measures),
    make("p", { class: "note" }, words.colours),
    words.pairs.some(({ comparable }) => comparable) ? accordOf(words, choose) : "", differ,
    fold(`All ${explanations[0].scores.length} units`, scoresOf(explanations, names, measures)),
    diagnosed.length ? fold("Diagnostics", make("div", {}, ...diagnosed)) : "", make("footer", {}, button));
  container.append(article);
  return article;
}
