// What if this were not there? Click on words, and the model is asked again without them.

import { make } from "./wording.js";

// `remove(units)` asks the model; the text is that of `article`.
export function whatIf(explanation, article, remove) {
  const text = article.querySelector(".passages");
  const gone = new Set();
  const said = make("output", { class: "told" });
  const back = make("button", { type: "button" }, "Put everything back");
  const switched = make("input", { type: "checkbox" });
  let latest = 0;
  const draw = () => {
    for (const piece of text.querySelectorAll(".unit[data-units]")) {
      const away = piece.dataset.units.split(" ").some((unit) => gone.has(Number(unit)));
      piece.classList.toggle("gone", away);
    }
    back.hidden = !gone.size;
  };
  async function look() {
    draw();
    const mine = ++latest;
    if (!gone.size) {
      said.replaceChildren();
      return;
    }
    said.replaceChildren("asking the model …");
    try {
      const told = await remove([...gone].sort((a, b) => a - b));
      if (mine !== latest) return;
      said.replaceChildren(make("strong", {}, told.words.change), `: ${told.words.verdict}`);
    } catch (error) {
      if (mine === latest) said.replaceChildren(error.message);
    }
  }
  const toggle = (event) => {
    if (!switched.checked) return;
    const piece = event.target.closest?.(".unit[data-units]");
    if (!piece || (event.type === "keydown" && !["Enter", " "].includes(event.key))) return;
    event.preventDefault();
    for (const unit of piece.dataset.units.split(" ").map(Number)) {
      if (gone.has(unit)) gone.delete(unit);
      else gone.add(unit);
    }
    look();
  };
  text.addEventListener("click", toggle);
  text.addEventListener("keydown", toggle);
  switched.addEventListener("change", () => {
    text.classList.toggle("removing", switched.checked);
    if (!switched.checked) { gone.clear(); look(); }
  });
  back.addEventListener("click", () => { gone.clear(); look(); });
  back.hidden = true;
  text.after(make("div", { class: "whatif" }, make("label", {}, switched, " What if I remove this? Click on words."),
    said, back));
}
