// Names and numbers as they are shown. Sentences come with the data (raison/show/html/*_words.py).

const pictured = (char) => (char < " " ? String.fromCharCode(0x2400 + char.charCodeAt(0)) : "\ufffd");
const COMMANDS = /[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]/g;
export const clean = (text) => String(text).replace(COMMANDS, pictured);

// The only way words reach the page: as text, never as markup.
export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children.filter((child) => child !== "" && child != null));
  return element;
}

// A name of code that may be broken behind its signs.
export const soft = (name) => name.split(/(?<=[_(,=])/).flatMap((part, at) => (at ? [make("wbr"), part] : [part]));

export function number(score, largest) {
  if (!largest) return "0";
  const exponent = Math.floor(Math.log10(largest));
  const plain = exponent >= -4 && exponent <= 6;
  const digits = plain ? Math.abs(score).toFixed(Math.max(0, 3 - exponent)) : Math.abs(score).toExponential(3);
  return (score < 0 ? "−" : "+") + digits;
}

export function share(p) {
  if (p < 0 || p > 1) return String(Number(p.toPrecision(4)));
  if (p > 0 && p < 0.0005) return "<0.1 %";
  return p > 0.9995 && p < 1 ? ">99.9 %" : `${(100 * p).toFixed(1)} %`;
}

// Whether an explanation is a selection that nothing was proved about, such as a rationalizer's own: no score is negative,
// and all outside of the selection are 0. They are no evidence, so units are shown as selected or not.
export const selection = ({ selected, scores, certificate }) => Boolean(selected) && !certificate
  && scores.every((s, unit) => s >= 0 && (selected[unit] || s === 0));

export const exact = (score) => (score < 0 ? "−" : "+") + String(Number(Math.abs(score).toPrecision(6)));
