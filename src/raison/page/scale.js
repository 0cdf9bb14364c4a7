// The colours of raison/show/colour_scale.py, number for number (a test compares them).

export const FOR = [236, 122, 22];
export const AGAINST = [36, 114, 214];
export const MORE = [30, 180, 135];
export const LESS = [184, 34, 28];
export const PAPERS = { light: [255, 255, 255], dark: [27, 28, 31] };
const INKS = [[0, 0, 0], [255, 255, 255]];
export const SILENT = 0.04;

export function background(weight, paper, hues = [FOR, AGAINST]) {
  const strength = Math.min(1, Math.abs(weight));
  if (strength < SILENT) return null;
  const hue = hues[weight > 0 ? 0 : 1];
  return paper.map((p, i) => Math.floor(p + (hue[i] - p) * strength + 0.5));
}

export const signed = (scores) => scores.some((s) => s < 0);

// Scores in −1..1, relative to the strongest.
export function relative(scores) {
  const largest = scores.reduce((most, s) => Math.max(most, Math.abs(s)), 0);
  return scores.map((s) => (largest ? s / largest : 0));
}

function luminance(colour) {
  const [r, g, b] = colour.map((c) => (c <= 10 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

export function ink(colour) {
  const on = luminance(colour) + 0.05;
  const [dark, light] = INKS.map(luminance).map((l) => Math.max(on, l + 0.05) / Math.min(on, l + 0.05));
  return dark >= light ? INKS[0] : INKS[1];
}

export const css = (colour) => `rgb(${colour.join(" ")})`;
