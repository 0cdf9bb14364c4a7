// What is explained: what the model predicts, another outcome, a token of the text, or one rather than another.

import { clean, make, share } from "./wording.js";

const TOKENS = 400; // more are too many to click on

// `told` is what /api/predict says; `state` holds the target, and `changed` is told when it is another.
export function targets(told, model, state, every, changed) {
  const pressed = (value) => String(JSON.stringify(state.target ?? null) === JSON.stringify(value));
  const choice = (value, ...shown) => {
    const button = make("button", { type: "button", class: "choice", "aria-pressed": pressed(value) }, ...shown);
    button.addEventListener("click", () => { state.target = value; changed(); });
    return button;
  };
  const figure = (value) => make("span", { class: "quiet" }, ` ${told.probable ? share(value) : Number(value.toPrecision(4))}`);
  const quoted = (name) => clean(model.writes ? `“${name}”` : name);
  const row = make("div", { class: "choices", role: "group", "aria-label": "what is explained" },
    choice(null, "predicted: ", quoted(told.text), told.value == null ? "" : figure(told.value)));
  const named = model.task === "classification" || model.writes;
  if (named) for (const [name, value] of told.top.slice(1, 5)) row.append(choice(name, quoted(name), figure(value)));
  if (every && model.writes) row.append(choice("all", "every token"));
  const parts = [row];
  const { encoding } = told;
  if (["causal", "tagging"].includes(model.task) && encoding.ids.length <= TOKENS) {
    const strip = make("div", { class: "tokens", role: "group", "aria-label": "a token of the text" });
    encoding.tokens.forEach((token, t) => {
      if (encoding.start[t] >= 0 && (t > 0 || model.task === "tagging")) strip.append(choice(t, clean(token)));
    });
    parts.push(make("details", {}, make("summary", {}, "or a token of the text"), strip));
    if (typeof state.target === "number") parts[1].open = true;
  }
  return parts;
}
