// Curves of deletion and insertion, drawn by hand: this explanation, leave-one-out, and a band of random orders.

import { make } from "./wording.js";
import { draw } from "./steps.js";

const [WIDE, HIGH, LEFT, BOTTOM] = [320, 190, 34, 26];
const LINES = { random: "random orders (mean, and 90 % of them)", leave_one_out: "leave-one-out", this: "this explanation" };

export function curve(title, axis, lines) {
  const points = lines.this.length - 1;
  const x = (k) => LEFT + (k / points) * (WIDE - LEFT - 6);
  const y = (value) => 6 + (1 - value) * (HIGH - BOTTOM - 6);
  const path = (values) => values.map((value, k) => `${x(k).toFixed(1)},${y(value).toFixed(1)}`).join(" ");
  const picture = draw("svg", { class: "curve", viewBox: `0 0 ${WIDE} ${HIGH}`, role: "img", "aria-label": title });
  for (const value of [0, 0.5, 1]) {
    const label = draw("text", { x: LEFT - 6, y: y(value) + 3, "text-anchor": "end" });
    label.textContent = value.toFixed(1);
    picture.append(draw("line", { class: "rule", x1: LEFT, x2: WIDE - 6, y1: y(value), y2: y(value) }), label);
  }
  const below = draw("text", { x: (LEFT + WIDE) / 2, y: HIGH - 6, "text-anchor": "middle" });
  below.textContent = axis;
  const band = `${path(lines.random_high)} ${lines.random_low.map((value, k) => [value, k]).reverse()
    .map(([value, k]) => `${x(k).toFixed(1)},${y(value).toFixed(1)}`).join(" ")}`;
  picture.append(below, draw("polygon", { class: "band", points: band }));
  for (const name of Object.keys(LINES)) picture.append(draw("polyline", { class: `line ${name}`, points: path(lines[name]) }));
  return make("figure", {}, make("figcaption", {}, title), picture);
}

export const key = () => make("p", { class: "legend keys" }, ...Object.entries(LINES).reverse().map(([name, said]) => {
  const swatch = draw("svg", { class: "curve", viewBox: "0 0 24 8", "aria-hidden": "true" },
    draw("line", { class: `line ${name}`, x1: 0, x2: 24, y1: 4, y2: 4 }));
  return make("span", {}, swatch, said);
}));
