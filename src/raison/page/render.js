// The only renderer in the browser: draws one Explanation record (the JSON of raison.core.records.Explanation).
// Data reaches the page as text only, never as markup. No build step: the modules beside this one are plain
// files; raison/show/html/explanation.py puts them into one script by dropping these import lines.

import { AGAINST, FOR, PAPERS, background, css, ink } from "./scale.js";
import { clean, make, number, selection } from "./wording.js";
import { passagesOf } from "./pieces.js";

export function paint(element, weight, hues) {
  for (const [theme, paper] of Object.entries(PAPERS)) {
    const colour = background(weight, paper, hues);
    if (!colour) return false;
    element.style.setProperty(`--${theme}`, css(colour));
    element.style.setProperty(`--${theme}-ink`, css(ink(colour)));
  }
  element.classList.add("tinted");
  return true;
}

export const strongest = (weights, units) => units.map((u) => weights[u])
  .reduce((a, b) => (Math.abs(b) > Math.abs(a) ? b : a));

// What is explained, and how it came about.
export function head({ outcome, value, contrast }, facts) {
  const title = make("h2", {}, make("span", { class: "what" }, outcome));
  if (value) title.append(" ", make("span", { class: "share" }, value));
  if (contrast) title.append(" ", make("span", { class: "contrast" }, contrast));
  return make("header", {}, title, factsList(facts));
}

export function factsList(facts) {
  const list = make("dl", { class: "facts" });
  for (const [name, fact] of Object.entries(facts))
    if (fact) list.append(make("div", {}, make("dt", {}, name), make("dd", {}, fact)));
  return list;
}

export function legend(scores, largest) {
  const two = scores.some((s) => s < 0);
  const ramp = make("span", { class: two ? "ramp two" : "ramp" });
  for (const [name, hue] of [["--for", FOR], ["--against", AGAINST]]) ramp.style.setProperty(name, css(hue));
  const most = number(largest, largest);
  const [left, right] = two ? [`against ${number(-largest, largest)}`, `for ${most}`] : ["0", most];
  return make("p", { class: "legend" }, make("span", {}, left), ramp, make("span", {}, right));
}

// One text of an explanation; `dress` gives a piece that belongs to units its colours and its label.
export function passage({ name, mark, folded, pieces: found }, many, dress) {
  const text = make("p", { class: "text", dir: "auto" });
  let written = false;
  for (const { text: shown, units, kind } of found) {
    if (kind === "outcome" && !written) text.append(make("span", { class: "arrow", "aria-label": "leads to" }, " → "));
    written = kind === "outcome";
    const piece = make("span", { class: kind }, clean(shown));
    if (units.length) {
      for (const [key, value] of Object.entries({ role: "button", tabindex: "-1", "aria-label": dress(piece, units) }))
        piece.setAttribute(key, value);
      piece.classList.add("unit");
      piece.dataset.units = units.join(" ");
    }
    text.append(piece);
  }
  const title = [make("span", { class: "name" }, clean(name)), mark ? make("span", { class: "mark" }, mark) : ""];
  if (folded) return make("details", { class: "passage" }, make("summary", {}, ...title), text);
  return make("div", { class: mark ? "passage needed" : "passage" }, ...(many || mark ? title : []), text);
}

// The colours and the label of a piece, by the scores of one explanation and what is said about its units.
export function dressed(explanation, said, weights) {
  const { selected, certificate: proof } = explanation;
  const plain = proof || selection(explanation); // what is in or out has no shades
  return (piece, units) => {
    piece.classList.toggle(proof ? "kept" : "selected", units.some((unit) => selected?.[unit]));
    if (!plain) paint(piece, strongest(weights, units));
    return units.map((unit) => said[unit].label).join("; ");
  };
}

const labelled = (unit) => unit.getAttribute("aria-label").split("; ").map((line) => make("div", {}, line));

// Hover, tap or Tab shows a unit's numbers, as `told`; arrow keys walk along the text, which is a single Tab stop, and
// up and down between the `rows` of a comparison.
export function listen(section, told = labelled, rows = [section]) {
  const lines = rows.map((row) => [...row.querySelectorAll(".unit")]);
  const tip = make("div", { class: "tip", "aria-hidden": "true" });
  section.append(tip);
  if (lines[0].length) lines[0][0].tabIndex = 0;
  const hide = () => tip.classList.remove("shown");
  const show = (event) => {
    const unit = event.target.closest?.(".unit");
    if (!unit) return hide();
    tip.replaceChildren(...told(unit));
    const [at, box] = [unit.getClientRects()[0], section.getBoundingClientRect()];
    const above = at.top - tip.offsetHeight - 6;
    tip.style.left = `${Math.max(0, Math.min(at.left - box.left, box.width - tip.offsetWidth))}px`;
    tip.style.top = `${(above < 0 && tip.offsetHeight > 60 ? at.bottom + 6 : above) - box.top}px`;
    tip.classList.add("shown");
  };
  for (const name of ["mouseover", "focusin", "click"]) section.addEventListener(name, show);
  for (const name of ["mouseleave", "focusout"]) section.addEventListener(name, hide);
  section.addEventListener("keydown", (event) => {
    if (event.key === "Escape") return hide();
    const steps = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] };
    const [down, right] = steps[event.key] ?? [];
    const row = lines.findIndex((line) => line.includes(document.activeElement));
    const next = lines[row + down]?.[lines[row]?.indexOf(document.activeElement) + right];
    if (!next) return;
    event.preventDefault();
    document.activeElement.tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
  });
}

// What must be known about the scores.
export const notesBelow = (sentences) => sentences.map((note) => make("p", { class: "note" }, note));

// The units of a selection in reading order: there is no more to say about each than whether it was selected.
function membersOf({ units, selected }) {
  const rows = units.names.map((name, unit) => make("tr", {}, make("td", { class: selected[unit] ? "selected" : "" },
    clean(name)), make("td", {}, selected[unit] ? "selected" : "")));
  const top = make("tr", {}, make("th", { scope: "col" }, "unit"), make("th", { scope: "col" }, ""));
  return make("table", { class: "scores" }, make("thead", {}, top), make("tbody", {}, ...rows));
}

function table({ units, scores, selected }, weights, ranked, largest) {
  const rows = ranked.map((unit) => {
    const bar = make("span", { class: scores[unit] < 0 ? "bar against" : "bar" });
    bar.style.setProperty("--size", Math.abs(weights[unit]));
    bar.style.setProperty("--hue", css(scores[unit] < 0 ? AGAINST : FOR));
    const name = make("td", { class: selected?.[unit] ? "selected" : "" }, clean(units.names[unit]));
    return make("tr", {}, name, make("td", { class: "score" }, number(scores[unit], largest)), make("td", {}, bar));
  });
  const top = make("tr", {}, ...["unit", "score", ""].map((t) => make("th", { scope: "col" }, t)));
  return make("table", { class: "scores" }, make("thead", {}, top), make("tbody", {}, ...rows));
}

export const TOLD = []; // diagnostics that are said above in words

export function diagnosticsOf(diagnostics) {
  const list = make("dl", { class: "diagnostics" });
  for (const [name, value] of Object.entries(diagnostics))
    if (!TOLD.includes(name))
      list.append(make("dt", {}, name), make("dd", {}, clean(typeof value === "string" ? value : JSON.stringify(value))));
  return list;
}

export function download(explanation) {
  const link = make("a", { download: "explanation.json" });
  link.href = URL.createObjectURL(new Blob([JSON.stringify(explanation)], { type: "application/json" }));
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000); // browsers read it after the click returns
}

export const fold = (title, content) => make("details", {}, make("summary", {}, title), content);

// Scores relative to the largest, and units from the strongest on.
export function weighed(scores) {
  const largest = scores.reduce((m, s) => Math.max(m, Math.abs(s)), 0);
  const weights = scores.map((s) => (largest ? s / largest : 0));
  const ranked = scores.map((_, u) => u).sort((a, b) => Math.abs(scores[b]) - Math.abs(scores[a]) || a - b);
  return { largest, weights, ranked };
}

// `words` is what is said about the explanation. `story` holds what other modules add to a kind of explanation: {above,
// below} the text, how its passages are `named`. `text: false` leaves the text out where it stands on the page already.
export function renderExplanation(explanation, words, container, { above = [], below = [], named, text: shown = true } = {}) {
  const { scores, diagnostics, certificate: proof } = explanation;
  const { largest, weights, ranked } = weighed(scores);
  const passages = shown ? passagesOf(words) : [];
  const text = make("section", { class: "passages", "aria-label": "the explained text" }, ...passages.map((each, at) => (
    passage(named ? { ...each, ...named(at) } : each, passages.length > 1, dressed(explanation, words.units, weights)))));
  const button = make("button", { type: "button" }, "Download JSON");
  button.addEventListener("click", () => download(explanation));
  const plain = selection(explanation);
  const chosen = words.selected && make("span", { class: "chosen" }, words.selected);
  const article = make("article", { class: "raison" }, head(words, words.facts), ...above, shown ? text : "",
    ...notesBelow(words.remarks), ...below,
    proof ? "" : make("div", { class: "under" }, largest && !plain ? legend(scores, largest) : "",
      chosen ? make("p", { class: "legend" }, chosen) : ""),
    fold(`All ${scores.length} units`, plain ? membersOf(explanation) : table(explanation, weights, ranked, largest)),
    Object.keys(diagnostics).every((name) => TOLD.includes(name)) ? ""
      : fold("Diagnostics", diagnosticsOf(diagnostics)),
    make("footer", {}, button));
  container.append(article);
  if (shown) listen(text);
  return article;
}
