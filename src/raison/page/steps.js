// A walk through a search: a slider that marks on the text what was in the rationale at each step, and the
// probability along the way.

import { make } from "./wording.js";

const SVG = "http://www.w3.org/2000/svg";

export function draw(tag, attributes, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

// The units that were in at each step.
function setsOf(steps) {
  const now = new Set();
  return steps.map(({ added = [], removed = [] }) => {
    for (const unit of added) now.add(unit);
    for (const unit of removed) now.delete(unit);
    return new Set(now);
  });
}

function chart(steps, label) {
  const likely = steps.map((step) => step.probability);
  if (likely.some((p) => p == null) || likely.length < 2) return null;
  const [wide, high] = [240, 44];
  const at = (k) => [4 + (k / (likely.length - 1)) * (wide - 8), high - 4 - likely[k] * (high - 8)];
  const line = draw("polyline", { class: "way", points: likely.map((_, k) => at(k).join(",")).join(" ") });
  const dot = draw("circle", { class: "here", r: 4 });
  const picture = draw("svg", { class: "walk", viewBox: `0 0 ${wide} ${high}`, role: "img",
    "aria-label": label }, line, dot);
  return { picture, move: (k) => ["cx", "cy"].forEach((name, axis) => dot.setAttribute(name, at(k)[axis])) };
}

// The slider of one rationale; it marks the text of the article that it stands in. `path` says what each step did.
export function stepper({ steps }, path) {
  if (!path?.walk.length) return "";
  const sets = setsOf(steps);
  const last = sets.length - 1;
  const slider = make("input", { type: "range", min: 0, max: last, value: last, "aria-label": "step of the search" });
  const said = make("output", { class: "quiet" });
  const drawn = chart(steps, path.probabilities);
  const show = () => {
    const k = Number(slider.value);
    said.textContent = path.walk[k];
    slider.setAttribute("aria-valuetext", said.textContent);
    drawn?.move(k);
    for (const piece of slider.closest("article")?.querySelectorAll(":scope > .passages .unit[data-units]") ?? [])
      piece.classList.toggle("kept", piece.dataset.units.split(" ").some((unit) => sets[k].has(Number(unit))));
  };
  slider.addEventListener("input", show);
  queueMicrotask(show);
  return make("div", { class: "stepper" }, make("label", {}, make("span", { class: "quiet" }, "the search, step by step"),
    slider), drawn?.picture ?? "", said);
}
