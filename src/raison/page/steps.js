// A walk through a search: a slider that marks on the text what was in the rationale at each step, and the
// probability along the way.

import { count, make, share, short } from "./wording.js";

const SVG = "http://www.w3.org/2000/svg";

export function draw(tag, attributes, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

// The units that were in at each step; null where the steps do not tell.
export function setsOf({ steps = [] }) {
  const now = new Set();
  const sets = [];
  for (const { added = [], removed = [], size } of steps) {
    for (const unit of added) now.add(unit);
    for (const unit of removed) now.delete(unit);
    if (size != null && size !== now.size) return null;
    sets.push([...now]);
  }
  return sets;
}

function chart(steps) {
  const likely = steps.map((step) => step.probability);
  if (likely.some((p) => p == null) || likely.length < 2) return null;
  const [wide, high] = [240, 44];
  const at = (k) => [4 + (k / (likely.length - 1)) * (wide - 8), high - 4 - likely[k] * (high - 8)];
  const line = draw("polyline", { class: "way", points: likely.map((_, k) => at(k).join(",")).join(" ") });
  const dot = draw("circle", { class: "here", r: 4 });
  const picture = draw("svg", { class: "walk", viewBox: `0 0 ${wide} ${high}`, role: "img",
    "aria-label": `probability from ${share(likely[0])} to ${share(likely[likely.length - 1])}` }, line, dot);
  return { picture, move: (k) => ["cx", "cy"].forEach((name, axis) => dot.setAttribute(name, at(k)[axis])) };
}

// The slider of one rationale; it marks the text of the article that it stands in.
export function stepper(explanation) {
  const { units, steps } = explanation;
  const sets = steps?.length > 1 ? setsOf(explanation) : null;
  if (!sets) return "";
  const last = sets.length - 1;
  const slider = make("input", { type: "range", min: 0, max: last, value: last, "aria-label": "step of the search" });
  const said = make("output", { class: "quiet" });
  const drawn = chart(steps);
  const names = (some) => some.slice(0, 3).map((u) => short(units.names[u], 24)).join(", ") + (some.length > 3 ? " …" : "");
  const show = () => {
    const k = Number(slider.value);
    const { added = [], removed = [], probability, sufficient } = steps[k];
    const change = [added.length ? `+ ${names(added)}` : "", removed.length ? `− ${names(removed)}` : ""].filter(Boolean);
    said.textContent = [`step ${k} of ${last}`, ...change, count(sets[k].length, units.level),
      probability == null ? "" : share(probability), sufficient ? "enough" : "not enough yet"].filter(Boolean).join(" · ");
    slider.setAttribute("aria-valuetext", said.textContent);
    drawn?.move(k);
    const here = new Set(sets[k]);
    for (const piece of slider.closest("article")?.querySelectorAll(":scope > .passages .unit[data-units]") ?? [])
      piece.classList.toggle("kept", piece.dataset.units.split(" ").some((unit) => here.has(Number(unit))));
  };
  slider.addEventListener("input", show);
  queueMicrotask(show);
  return make("div", { class: "stepper" }, make("label", {}, make("span", { class: "quiet" }, "the search, step by step"),
    slider), drawn?.picture ?? "", said);
}
