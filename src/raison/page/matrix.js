// Many rationales of one text as a matrix: what was predicted down, the context across. A row that is clicked, or reached
// with the arrow keys, marks its context in the text above and has its details below.

import { clean, make } from "./wording.js";
import { passagesOf } from "./pieces.js";
import { factsList } from "./render.js";

const STATES = ["hidden", "spared", "given", "chosen"];

// Everything about one cell: the row, the column, what it is, and its numbers.
function told({ units, scores, order }, row, column, state, meaning) {
  const said = [`${row.outcome} from ${column.quoted}: ${meaning}`];
  if (STATES[state] === "chosen") {
    const unit = units.of[column.token];
    const place = (order ?? []).indexOf(unit);
    said.push(`${place < 0 ? "" : `chosen as number ${place + 1}, `}left out, the value drops by `
      + String(Number(scores[unit].toPrecision(6))).replace("-", "−"));
  }
  return [...said, row.summary];
}

function gridOf({ rows, columns }) {
  const edge = (place) => (columns[place].edge ? " edge" : "");
  const heads = columns.map(({ name }, place) => make("th", { scope: "col", class: `head${edge(place)}` },
    make("span", {}, name)));
  const top = make("tr", {}, make("td", { class: "corner" }), ...heads);
  const body = rows.map(({ name, label, signs, cells: states }, row) => {
    const button = make("button", { type: "button", tabindex: "-1", "aria-pressed": "false", "aria-label": label }, name,
      signs ? make("span", { class: "alarm" }, ` ${signs}`) : "");
    const cells = columns.map((_, place) => (
      make("td", { class: STATES[states[place]] + edge(place), "data-column": place })));
    return make("tr", { "data-row": row }, make("th", { scope: "row" }, button), ...cells);
  });
  return make("table", { class: "cells" }, make("thead", {}, top), make("tbody", {}, ...body));
}

function keyOf({ legend: states, alarms }) {
  const line = make("p", { class: "legend" });
  for (const [state, meaning] of states)
    line.append(make("span", {}, make("span", { class: `swatch ${STATES[state]}` }), meaning));
  for (const [sign, meaning] of alarms)
    line.append(make("span", {}, make("span", { class: "alarm" }, sign), ` ${meaning}`));
  return line;
}

function written({ explanation, words }) {
  const passages = passagesOf(words);
  return passages.map(({ name, pieces }) => {
    const text = make("p", { class: "text", dir: "auto" });
    for (const { text: shown, units, kind } of pieces) {
      const kept = units.some((unit) => explanation.selected[unit]);
      text.append(make("span", { class: kept ? `${kind} unit kept` : kind }, clean(shown)));
    }
    const title = passages.length > 1 ? make("span", { class: "name" }, clean(name)) : "";
    return make("div", { class: "passage" }, title, text);
  });
}

// `members` are rationales with what is said about each, `words` is what is said about all of them; `draw` shows the
// details of one: (member, container).
export function renderMatrix(members, words, container, draw) {
  const rows = words.rows.map(({ place }) => members[place]);
  const text = make("section", { class: "passages above", tabindex: "0", "aria-live": "polite",
    "aria-label": "the text, with the context of the chosen row" });
  const grid = gridOf(words);
  const scroll = make("div", { class: "scroll", role: "group", "aria-label": "matrix of rationales: one row for each "
    + "predicted token; up and down arrow keys choose a row" }, grid);
  const tip = make("div", { class: "tip", "aria-hidden": "true" });
  const frame = make("section", { class: "matrix" }, scroll, tip);
  const details = make("div", { class: "details" });
  container.append(make("article", { class: "raison sheet" },
    make("header", {}, make("h2", {}, words.title), factsList(words.facts)), text, frame, keyOf(words), details));

  const lines = [...grid.tBodies[0].rows];
  let current = -1;
  function choose(row, focus) {
    if (row < 0 || row >= rows.length) return;
    const button = lines[row].querySelector("button");
    if (row !== current) {
      for (const [at, on] of [[current, false], [row, true]]) {
        if (at < 0) continue;
        lines[at].classList.toggle("current", on);
        lines[at].querySelector("button").setAttribute("aria-pressed", String(on));
        lines[at].querySelector("button").tabIndex = on ? 0 : -1;
      }
      current = row;
      text.replaceChildren(...written(rows[row]));
      const at = text.querySelector(".target, .outcome");
      if (at) text.scrollTop = at.offsetTop - text.clientHeight / 2;
      details.replaceChildren();
      draw(rows[row], details);
    }
    if (focus) button.focus();
  }
  const rowOf = (event) => Number(event.target.closest?.("tr[data-row]")?.dataset.row ?? -1);
  grid.addEventListener("click", (event) => choose(rowOf(event), true));
  grid.addEventListener("keydown", (event) => {
    const next = { ArrowDown: current + 1, ArrowUp: current - 1, Home: 0, End: rows.length - 1 }[event.key];
    if (event.key === "Escape") tip.classList.remove("shown");
    if (next === undefined) return;
    event.preventDefault();
    choose(next, true);
  });
  const show = (event) => {
    const cell = event.target.closest?.("td[data-column]");
    if (!cell || cell.classList.contains("hidden")) return tip.classList.remove("shown");
    const [row, place] = [rowOf(event), Number(cell.dataset.column)];
    const state = words.rows[row].cells[place];
    const about = told(rows[row].explanation, words.rows[row], words.columns[place], state, words.states[state]);
    tip.replaceChildren(...about.map((each) => make("div", {}, each)));
    const [at, box] = [cell.getBoundingClientRect(), frame.getBoundingClientRect()];
    tip.style.left = `${Math.max(0, Math.min(at.left - box.left, box.width - tip.offsetWidth))}px`;
    const free = at.top - tip.offsetHeight - 6 > text.getBoundingClientRect().bottom; // not behind the text above
    tip.style.top = `${free ? at.top - box.top - tip.offsetHeight - 6 : at.bottom - box.top + 6}px`;
    tip.classList.add("shown");
  };
  for (const name of ["mouseover", "click"]) grid.addEventListener(name, show);
  for (const name of ["mouseleave", "focusin"]) grid.addEventListener(name, () => tip.classList.remove("shown"));
  scroll.addEventListener("scroll", () => tip.classList.remove("shown"));
  choose(rows.length - 1, false); // the row with the most context
}
