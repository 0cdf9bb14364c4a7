// The only renderer in the browser: draws one Explanation record (the JSON of raison.types.Explanation).
// Data reaches the page as text only, never as markup. No build step: the modules beside this one are plain
// files; raison/show/html.py puts them into one script by dropping these import lines.

import { AGAINST, FOR, PAPERS, background, css, ink } from "./scale.js";
import { clean, describe, headline, make, notes, number } from "./wording.js";
import { flow, grounded } from "./flow.js";

function paint(element, weight) {
  for (const [theme, paper] of Object.entries(PAPERS)) {
    const colour = background(weight, paper);
    if (!colour) return;
    element.style.setProperty(`--${theme}`, css(colour));
    element.style.setProperty(`--${theme}-ink`, css(ink(colour)));
  }
  element.classList.add("tinted");
}

function head(explanation) {
  const { what, share: probability, contrast, predicted } = headline(explanation);
  const title = make("h2", {}, make("span", { class: "what" }, what));
  if (probability) title.append(" ", make("span", { class: "share" }, probability));
  if (contrast) title.append(" ", make("span", { class: "contrast" }, contrast));
  const output = explanation.target.output.replace("_", " ").replace("prob", "probability");
  const facts = { predicted, model: explanation.model, method: explanation.method, units: explanation.units.level,
    removal: explanation.removal, value: output, rule: explanation.diagnostics.certificate?.rule };
  const list = make("dl", { class: "facts" });
  for (const [name, fact] of Object.entries(facts))
    if (fact) list.append(make("div", {}, make("dt", {}, name), make("dd", {}, clean(fact))));
  return make("header", {}, title, list);
}

function legend(scores, largest) {
  const two = scores.some((s) => s < 0);
  const ramp = make("span", { class: two ? "ramp two" : "ramp" });
  for (const [name, hue] of [["--for", FOR], ["--against", AGAINST]]) ramp.style.setProperty(name, css(hue));
  const most = number(largest, largest);
  const [left, right] = two ? [`against ${number(-largest, largest)}`, `for ${most}`] : ["0", most];
  return make("p", { class: "legend" }, make("span", {}, left), ramp, make("span", {}, right));
}

function passage({ name, mark, folded, pieces: found }, explanation, weights, ranks, many) {
  const text = make("p", { class: "text", dir: "auto" });
  let written = false;
  for (const { text: shown, units, kind } of found) {
    if (kind === "outcome" && !written) text.append(make("span", { class: "arrow", "aria-label": "leads to" }, " → "));
    written = kind === "outcome";
    const piece = make("span", { class: kind }, clean(shown));
    if (units.length) {
      const label = units.map((unit) => describe(explanation, unit, ranks)).join("; ");
      for (const [key, value] of Object.entries({ role: "button", tabindex: "-1", "aria-label": label }))
        piece.setAttribute(key, value);
      piece.classList.add("unit");
      const selected = units.some((unit) => explanation.selected?.[unit]);
      const proof = explanation.diagnostics.certificate;
      piece.classList.toggle(proof ? "kept" : "selected", selected);
      if (!proof) // a rationale is in or out and has no shades
        paint(piece, units.map((u) => weights[u]).reduce((a, b) => (Math.abs(b) > Math.abs(a) ? b : a)));
    }
    text.append(piece);
  }
  const title = [make("span", { class: "name" }, clean(name)), mark ? make("span", { class: "mark" }, mark) : ""];
  if (folded) return make("details", { class: "passage" }, make("summary", {}, ...title), text);
  return make("div", { class: mark ? "passage needed" : "passage" }, ...(many || mark ? title : []), text);
}

// Hover, tap or Tab shows a unit's numbers; arrow keys walk along the text, which is a single Tab stop.
function listen(section) {
  const units = [...section.querySelectorAll(".unit")];
  const tip = make("div", { class: "tip", "aria-hidden": "true" });
  section.append(tip);
  if (units.length) units[0].tabIndex = 0;
  const hide = () => tip.classList.remove("shown");
  const show = (event) => {
    const unit = event.target.closest?.(".unit");
    if (!unit) return hide();
    tip.replaceChildren(...unit.getAttribute("aria-label").split("; ").map((line) => make("div", {}, line)));
    const [at, box] = [unit.getClientRects()[0], section.getBoundingClientRect()];
    tip.style.left = `${Math.max(0, Math.min(at.left - box.left, box.width - tip.offsetWidth))}px`;
    tip.style.top = `${at.top - box.top - tip.offsetHeight - 6}px`;
    tip.classList.add("shown");
  };
  for (const name of ["mouseover", "focusin", "click"]) section.addEventListener(name, show);
  for (const name of ["mouseleave", "focusout"]) section.addEventListener(name, hide);
  section.addEventListener("keydown", (event) => {
    if (event.key === "Escape") return hide();
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    const at = units.indexOf(document.activeElement);
    if (!step || at < 0 || !units[at + step]) return;
    event.preventDefault();
    units[at].tabIndex = -1;
    units[at + step].tabIndex = 0;
    units[at + step].focus();
  });
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

const TOLD = ["certificate", "steps", "grounding", "notes"]; // said above in words

function diagnosticsOf(diagnostics) {
  const list = make("dl", { class: "diagnostics" });
  for (const [name, value] of Object.entries(diagnostics))
    if (!TOLD.includes(name))
      list.append(make("dt", {}, name), make("dd", {}, clean(typeof value === "string" ? value : JSON.stringify(value))));
  return list;
}

function download(explanation) {
  const link = make("a", { download: "explanation.json" });
  link.href = URL.createObjectURL(new Blob([JSON.stringify(explanation)], { type: "application/json" }));
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000); // browsers read it after the click returns
}

const fold = (title, content) => make("details", {}, make("summary", {}, title), content);

// `story` holds what other modules say about a kind of explanation: {above, below} the text, how its passages are
// `named`. `text: false` leaves the text out where it stands on the page already.
export function renderExplanation(explanation, container, { above = [], below = [], named, text: shown = true } = {}) {
  const { scores, diagnostics, selected } = explanation;
  const largest = scores.reduce((m, s) => Math.max(m, Math.abs(s)), 0);
  const weights = scores.map((s) => (largest ? s / largest : 0));
  const ranked = scores.map((_, u) => u).sort((a, b) => Math.abs(scores[b]) - Math.abs(scores[a]) || a - b);
  const ranks = [];
  ranked.forEach((unit, place) => (ranks[unit] = place + 1));
  const proof = diagnostics.certificate;
  const passages = named ? grounded(explanation).map((each) => ({ ...each, ...named(each) })) : flow(explanation);
  const text = make("section", { class: "passages", "aria-label": "the explained text" },
    ...passages.map((each) => passage(each, explanation, weights, ranks, passages.length > 1)));
  const button = make("button", { type: "button" }, "Download JSON");
  button.addEventListener("click", () => download(explanation));
  const chosen = selected && !proof ? `${selected.filter(Boolean).length} of ${selected.length} units selected` : "";
  const article = make("article", { class: "raison" }, head(explanation), ...above, shown ? text : "",
    ...notes(explanation).map((note) => make("p", { class: "note" }, note)),
    ...below,
    proof ? "" : make("div", { class: "under" }, largest ? legend(scores, largest) : "",
      chosen ? make("p", { class: "legend" }, make("span", { class: "chosen" }, chosen)) : ""),
    fold(`All ${scores.length} units`, table(explanation, weights, ranked, largest)),
    Object.keys(diagnostics).every((name) => TOLD.includes(name)) ? ""
      : fold("Diagnostics", diagnosticsOf(diagnostics)),
    make("footer", {}, button));
  container.append(article);
  if (shown) listen(text);
  return article;
}
