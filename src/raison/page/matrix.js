// Many rationales of one text as a matrix, as in raison/show/matrix.py: what was predicted down, the context across.
// A row that is clicked, or reached with the arrow keys, marks its context in the text above and has its details below.

import { clean, count, make, share, short } from "./wording.js";
import { flow, given, inScope } from "./flow.js";

const LEAST = 3;
const STATES = ["hidden", "spared", "given", "chosen"];
const MEANING = { spared: "not needed", given: "given: read anyway", chosen: "in the rationale" };
const ALARMS = { insufficient: ["!", "not sufficient"], foreign: ["≠", "not the model's own prediction"],
  early: ["…", "the search ended early, a smaller rationale may exist"] };

// The same explanations in the same order, in lists: those that make a matrix in one, any other alone.
export function sheets(explanations) {
  const found = new Map();
  const encodings = [];
  explanations.forEach((explanation, place) => {
    const { model, method, removal, encoding, target, certificate, selected } = explanation;
    if (!encodings.includes(encoding)) encodings.push(encoding); // html.py made equal ones the same
    const row = certificate && selected && target.positions.length;
    const key = row ? JSON.stringify([model, method, removal, encodings.indexOf(encoding)]) : String(place);
    found.set(key, [...(found.get(key) ?? []), explanation]);
  });
  const groups = [...found.values()].flatMap((group) => {
    const apart = new Set(group.map((e) => JSON.stringify(e.target.positions))).size === group.length;
    return group.length >= LEAST && apart ? [group] : group.map((e) => [e]);
  });
  return explanations.flatMap((explanation) => groups.filter((group) => group[0] === explanation));
}

function statesOf(explanation) {
  const { encoding, units, selected, target } = explanation;
  const kept = given(explanation);
  return encoding.ids.map((_, t) => (!inScope(target, t) ? 0 : selected[units.of[t]] ? 3 : kept[t] ? 2 : 1));
}

function columnsOf(rows, states) {
  const { encoding } = rows[0];
  const { of } = rows.reduce((a, b) => (b.units.names.length > a.units.names.length ? b : a)).units;
  const columns = [];
  encoding.ids.forEach((_, t) => {
    if (encoding.fixed[t] || !states.some((row) => row[t])) return;
    const last = columns[columns.length - 1];
    if (last && last[last.length - 1] === t - 1 && of[t] >= 0 && of[t] === of[t - 1]
      && states.every((row) => row[t] === row[t - 1])) last.push(t);
    else columns.push([t]);
  });
  return columns;
}

function nameOf({ tokens, texts, segment, start, end }, column) {
  const [first, last] = [column[0], column[column.length - 1]];
  if (start[first] < 0) return tokens[first];
  return Array.from(texts[segment[first]]).slice(start[first], end[last]).join("") || tokens[first];
}

function alarmsOf({ certificate: proof }) {
  return [!proof.sufficient && "insufficient", proof.is_prediction === false && "foreign",
    ["budget", "interrupted"].includes(proof.status) && "early"].filter(Boolean);
}

// Everything about one cell: the row, the column, what it is, and its numbers.
function told(explanation, name, token, state) {
  const { units, scores, order, target } = explanation;
  const said = [`“${short(target.text, 48)}” from “${short(name, 48)}”: ${MEANING[STATES[state]]}`];
  if (state === 3) {
    const unit = units.of[token];
    const place = (order ?? []).indexOf(unit);
    said.push(`${place < 0 ? "" : `chosen as number ${place + 1}, `}left out, the value drops by `
      + String(Number(scores[unit].toPrecision(6))).replace("-", "−"));
  }
  return [...said, summary(explanation)];
}

function summary({ units, selected, certificate: proof }) {
  const likely = proof.probability == null ? "" : `, probability ${share(proof.probability)}`;
  const whole = likely && proof.full_probability != null ? ` (${share(proof.full_probability)} from all)` : "";
  return `row: ${selected.filter(Boolean).length} of ${count(units.names.length, units.level)}${likely}${whole}`;
}

function gridOf(rows, columns, states) {
  const { encoding } = rows[0];
  const apart = (place) => place && encoding.segment[columns[place][0]] !== encoding.segment[columns[place - 1][0]];
  const edge = (place) => (apart(place) ? " edge" : "");
  const heads = columns.map((column, place) => make("th", { scope: "col", class: `head${edge(place)}` },
    make("span", {}, short(nameOf(encoding, column), 24))));
  const top = make("tr", {}, make("td", { class: "corner" }), ...heads);
  const body = rows.map((explanation, row) => {
    const alarms = alarmsOf(explanation);
    const name = short(explanation.target.text, 28);
    const label = [`“${name}”`, summary(explanation), ...alarms.map((alarm) => ALARMS[alarm][1])].join("; ");
    const state = { type: "button", tabindex: "-1", "aria-pressed": "false", "aria-label": label };
    const button = make("button", state, name,
      alarms.length ? make("span", { class: "alarm" }, ` ${alarms.map((alarm) => ALARMS[alarm][0]).join("")}`) : "");
    const cells = columns.map((column, place) => {
      const state = states[row][column[0]];
      return make("td", { class: STATES[state] + edge(place), "data-column": place });
    });
    return make("tr", { "data-row": row, class: alarms.join(" ") }, make("th", { scope: "row" }, button), ...cells);
  });
  return make("table", { class: "cells" }, make("thead", {}, top), make("tbody", {}, ...body));
}

function keyOf(states, rows) {
  const line = make("p", { class: "legend" });
  for (const state of [3, 2, 1])
    if (states.some((row) => row.includes(state)))
      line.append(make("span", {}, make("span", { class: `swatch ${STATES[state]}` }), MEANING[STATES[state]]));
  const alarms = new Set(rows.flatMap(alarmsOf));
  for (const [alarm, [sign, meaning]] of Object.entries(ALARMS))
    if (alarms.has(alarm)) line.append(make("span", {}, make("span", { class: "alarm" }, sign), ` ${meaning}`));
  return line;
}

function written(explanation) {
  const passages = flow(explanation);
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

// `draw` shows the details of one explanation: (explanation, container).
export function renderMatrix(explanations, container, draw) {
  const rows = [...explanations].sort((a, b) => {
    const at = a.target.positions.findIndex((p, i) => p !== b.target.positions[i]);
    return at < 0 ? a.target.positions.length - b.target.positions.length
      : a.target.positions[at] - (b.target.positions[at] ?? -1);
  });
  const states = rows.map(statesOf);
  const columns = columnsOf(rows, states);
  const [first] = rows;
  const rules = [...new Set(rows.map((row) => row.certificate.rule).filter(Boolean))];
  const facts = make("dl", { class: "facts" });
  for (const [name, fact] of Object.entries({ model: first.model, method: first.method, units: first.units.level,
    removal: first.removal, [rules.length > 1 ? "rules" : "rule"]: rules.join(", ") }))
    if (fact) facts.append(make("div", {}, make("dt", {}, name), make("dd", {}, clean(fact))));
  const text = make("section", { class: "passages above", tabindex: "0", "aria-live": "polite",
    "aria-label": "the text, with the context of the chosen row" });
  const grid = gridOf(rows, columns, states);
  const scroll = make("div", { class: "scroll", role: "group", "aria-label": "matrix of rationales: one row for each "
    + "predicted token; up and down arrow keys choose a row" }, grid);
  const tip = make("div", { class: "tip", "aria-hidden": "true" });
  const frame = make("section", { class: "matrix" }, scroll, tip);
  const details = make("div", { class: "details" });
  container.append(make("article", { class: "raison sheet" },
    make("header", {}, make("h2", {}, `${rows.length} rationales of one text`), facts), text, frame,
    keyOf(states, rows), details));

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
    const [row, column] = [rowOf(event), columns[Number(cell.dataset.column)]];
    const lines = told(rows[row], nameOf(first.encoding, column), column[0], states[row][column[0]]);
    tip.replaceChildren(...lines.map((each) => make("div", {}, each)));
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
