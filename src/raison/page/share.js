// Taking results along: JSON, one HTML file, SVG, PNG, a link that restores the page, and the same in Python.

import { ask } from "./stream.js";
import { make } from "./wording.js";

const signs = (bytes) => Array.from(bytes, (byte) => String.fromCharCode(byte)).join("");

export const encoded = (state) => btoa(signs(new TextEncoder().encode(JSON.stringify(state))))
  .replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");

export function decoded(text) {
  try {
    const bytes = Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (sign) => sign.charCodeAt(0));
    const found = JSON.parse(new TextDecoder().decode(bytes));
    return found && typeof found === "object" && !Array.isArray(found) ? found : null;
  } catch {
    return null;
  }
}

export function save(blob, name) {
  const link = make("a", { download: name });
  link.href = URL.createObjectURL(blob);
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000); // browsers read it after the click returns
}

async function copied(text, button) {
  try {
    await navigator.clipboard.writeText(text);
    button.dataset.said = "copied";
  } catch {
    button.dataset.said = "not allowed by the browser";
  }
  setTimeout(() => delete button.dataset.said, 2000);
}

// Of records about one text the first has it, and the others name its place: a matrix has one for each token.
const slim = (all) => all.map((each, place) => {
  const first = all.findIndex(({ encoding }) => encoding === each.encoding);
  return first < place ? { ...each, encoding: first } : each;
});

export function shareBar({ explanations, python = [] }, failed) {
  const action = (name, act) => {
    const button = make("button", { type: "button" }, name);
    button.addEventListener("click", () => Promise.resolve(act(button)).catch(failed));
    return button;
  };
  const file = (kind) => async () =>
    save(await ask("/api/export", { explanations: slim(explanations), kind }), `explanation.${kind}`);
  const json = () => save(new Blob([JSON.stringify(explanations)], { type: "application/json" }), "explanation.json");
  return make("div", { class: "raison share-bar", role: "group", "aria-label": "take the result along" },
    action("JSON", json), action("HTML", file("html")), action("SVG", file("svg")), action("PNG", file("png")),
    action("Copy link", (button) => copied(location.href, button)),
    python.length ? action("Copy as Python", (button) => copied(python.join("\n"), button)) : "");
}
