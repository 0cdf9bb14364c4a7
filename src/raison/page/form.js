// Methods, searches and rules as forms: what the registries of the server say about their parameters.

import { make } from "./wording.js";

// A value as it stands in a spec.
export function written(kind, value) {
  if (kind === "number") return String(Number(value));
  if (kind === "switch") return value ? "True" : "False";
  if (/^-?[\d.]+(e-?\d+)?$/i.test(value) || /^[a-z_]\w*(\(.*\))?$/is.test(value) || /^\(.*\)$/s.test(value)) return value;
  return JSON.stringify(value);
}

export function specOf(name, changes) {
  const inside = Object.entries(changes).sort(([a], [b]) => (a < b ? -1 : 1)).map(([key, value]) => `${key}=${value}`);
  return inside.length ? `${name}(${inside.join(", ")})` : name;
}

export const nameOf = (spec) => spec.split("(")[0].trim();

// The parameters of one entry, folded; `changed(spec)` is told the new spec.
export function parametersOf(entry, spec, changed) {
  if (!entry?.parameters.length) return "";
  const changes = readBack(entry, spec);
  const rows = entry.parameters.map(({ name, kind, default: usual }) => {
    const type = { number: "number", switch: "checkbox", text: "text" }[kind];
    const input = make("input", { type, ...(kind === "number" ? { step: "any" } : {}), placeholder: usual ?? "default" });
    if (kind === "switch") input.checked = changes[name] ? changes[name] !== "False" : Boolean(usual);
    else input.value = changes[name] ?? (usual == null ? "" : usual);
    input.addEventListener("change", () => {
      const value = kind === "switch" ? input.checked : input.value.trim();
      if (value === "" || value === usual || (kind === "number" && Number(value) === usual)) delete changes[name];
      else changes[name] = written(kind, value);
      changed(specOf(entry.name, changes));
    });
    return make("label", {}, make("span", {}, name), input);
  });
  return make("details", { class: "parameters" }, make("summary", {}, "parameters"), make("div", {}, ...rows));
}

// The parameters of a plain spec, `name(key=value, …)`.
function readBack(entry, spec) {
  const inside = spec.slice(entry.name.length).trim().replace(/^\(|\)$/g, "");
  const found = {};
  let [depth, part, quote] = [0, "", ""];
  for (const sign of `${inside},`) {
    if (quote) quote = sign === quote ? "" : quote;
    else if (sign === '"' || sign === "'") quote = sign;
    else if ("([".includes(sign)) depth++;
    else if (")]".includes(sign)) depth--;
    if (sign === "," && !depth && !quote) {
      const [key, ...value] = part.split("=");
      if (value.length) found[key.trim()] = value.join("=").trim();
      part = "";
    } else part += sign;
  }
  return found;
}

// Chosen methods as chips, each with its parameters, and a list from which another is added.
export function chooser({ entries, able, chosen, most, label, changed }) {
  const known = new Map(entries.map((entry) => [entry.name, entry]));
  const box = make("div", { class: "chooser", role: "group", "aria-label": label });
  const draw = () => {
    const chips = chosen.map((spec, at) => {
      const entry = known.get(nameOf(spec));
      const away = make("button", { type: "button", class: "away", "aria-label": `leave out ${spec}` }, "×");
      away.addEventListener("click", () => { chosen.splice(at, 1); draw(); changed(chosen); });
      return make("div", { class: "chip" }, make("span", { class: "code", title: entry?.about ?? "" }, spec), away,
        parametersOf(entry, spec, (next) => { chosen[at] = next; draw(); changed(chosen); }));
    });
    const list = make("select", { "aria-label": `add a ${label}` }, make("option", { value: "" }, `add a ${label} …`));
    for (const name of able)
      if (known.has(name)) list.append(make("option", { value: name, title: known.get(name).about }, name));
    list.disabled = chosen.length >= most;
    list.addEventListener("change", () => { if (list.value) { chosen.push(list.value); draw(); changed(chosen); } });
    box.replaceChildren(...chips, list);
  };
  draw();
  return box;
}
