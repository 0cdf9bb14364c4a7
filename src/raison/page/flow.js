// The text as it was written, cut into pieces, as in raison/show/flow.py.

import { generated } from "./wording.js";

function spots({ encoding, units }, index) {
  const found = [];
  units.spans.forEach(([segment, first, last], unit) => {
    if (segment !== index) return;
    const token = units.of.indexOf(unit);
    let [start, end] = [first, last];
    if (start < 0) {
      start = 0;
      for (let t = 0; t < token; t++) if (encoding.segment[t] === index) start = Math.max(start, encoding.end[t]);
      end = start;
    }
    found.push({ start, end, token, units: [unit] });
  });
  found.sort((a, b) => a.start - b.start || a.token - b.token);
  return found.reduce((all, next) => {
    const last = all[all.length - 1];
    if (last && next.end > next.start && next.start < last.end) {
      last.end = Math.max(last.end, next.end);
      last.units.push(...next.units);
    } else all.push(next);
    return all;
  }, []);
}

// [t] what this target can't do without and is no unit, such as the last token before a prediction.
export function given({ encoding, target, units }) {
  const written = generated(target);
  const rows = new Set(target.positions.map((p) => (written ? p - 1 : p)));
  return encoding.ids.map((_, t) => rows.has(t) && !encoding.fixed[t] && units.of[t] < 0 && inScope(target, t));
}

export const inScope = (target, t) => !generated(target) || t < target.positions[0];

function kinds(explanation, index, size) {
  const { encoding, target, certificate } = explanation;
  const kind = new Array(size).fill(encoding.truncated ? "unread" : "plain");
  const here = encoding.ids.map((_, t) => t).filter((t) => encoding.segment[t] === index && encoding.start[t] >= 0);
  const mark = (tokens, name) => {
    if (!tokens.length) return;
    const low = tokens.reduce((m, t) => Math.min(m, encoding.start[t]), size);
    kind.fill(name, low, tokens.reduce((m, t) => Math.max(m, encoding.end[t]), 0));
  };
  mark(here, "plain");
  if (certificate) { // what is kept besides the rationale
    const text = Array.from(encoding.texts[index]);
    const kept = given(explanation);
    for (const t of here.filter((t) => kept[t]))
      for (let c = encoding.start[t]; c < encoding.end[t]; c++) kind[c] = text[c].trim() ? "given" : "plain";
  }
  if (!target.positions.length) return kind;
  const [first, last] = [Math.min(...target.positions), Math.max(...target.positions)];
  if (generated(target)) mark(here.filter((t) => t > last), "unseen");
  const outcome = encoding.segments[index] === "continuation" ? "outcome" : "target";
  mark(here.filter((t) => t >= first && t <= last), outcome);
  return kind;
}

function pieces(explanation, index, low = 0, high = Infinity) {
  const text = Array.from(explanation.encoding.texts[index]); // offsets count code points, not UTF-16 units
  const kind = kinds(explanation, index, text.length);
  const found = [];
  let cursor = low;
  const between = (end) => {
    for (; cursor < end; cursor++) {
      const last = found[found.length - 1];
      if (last && !last.units.length && last.kind === kind[cursor]) last.text += text[cursor];
      else found.push({ text: text[cursor], units: [], kind: kind[cursor] });
    }
  };
  for (const { start: from, end: to, units } of spots(explanation, index)) {
    if (to < low || from > high || (from < to && (to === low || from === high))) continue;
    const [start, end] = [Math.max(from, low), Math.min(to, high)];
    between(start);
    if (from === to) found.push({ text: explanation.units.names[units[0]], units, kind: "special" });
    else {
      const shown = text.slice(start, end).join("");
      const marked = kind.slice(start, end).find((k) => k === "target" || k === "outcome");
      found.push({ text: shown.trim() ? shown : shown.replace(/\n/g, "⏎\n"), units, kind: marked ?? "plain" });
    }
    cursor = Math.max(cursor, end);
  }
  between(Math.min(high, text.length));
  return found;
}

// The passages that an answer was looked for in, each a part of the first text, without the prompt around them.
export const grounded = (explanation) => explanation.grounding.passages.map((passage) => (
  { ...passage, pieces: pieces(explanation, 0, passage.start, passage.end) }));

export function flow(explanation) {
  const { encoding, target } = explanation;
  const passages = [];
  encoding.segments.forEach((name, index) => {
    const found = pieces(explanation, index);
    if (name === "continuation" && passages.length) passages[passages.length - 1].pieces.push(...found);
    else if (found.length) passages.push({ name, pieces: found });
  });
  if (generated(target) && target.positions[0] >= encoding.ids.length && passages.length)
    passages[passages.length - 1].pieces.push({ text: target.text, units: [], kind: "outcome" });
  return passages;
}
