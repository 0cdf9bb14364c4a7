// Layers × heads: how much of this answer each carries, which are syntactic or positional, and what happens without.

import { make } from "./wording.js";

const labelOf = (words, off) => words.label + (off ? "; switched off" : "");

// `off` is a set of "row.head"; `toggled` is told when a head is switched.
export function renderHeads(heads, off, container, toggled) {
  const most = Math.max(...heads.carried.flat(), 1e-12);
  const tip = make("output", { class: "quiet told" }, "Choose a head to switch it off; arrow keys walk.");
  const body = heads.maps.map((name, row) => make("tr", {}, make("th", { scope: "row" }, name),
    ...heads.carried[row].map((value, head) => {
      const id = `${row}.${head}`;
      const button = make("button", { type: "button", tabindex: row || head ? "-1" : "0", "data-head": id,
        "aria-pressed": String(off.has(id)), "aria-label": labelOf(heads.words[row][head], off.has(id)) },
        heads.words[row][head].kinds);
      button.style.setProperty("--size", value / most);
      return make("td", {}, button);
    })));
  const top = make("tr", {}, make("td"), ...heads.carried[0].map((_, head) => make("th", { scope: "col" }, String(head))));
  const grid = make("table", { class: "heads" }, make("thead", {}, top), make("tbody", {}, ...body));
  const say = (event) => {
    const button = event.target.closest?.("button");
    if (button) tip.textContent = button.getAttribute("aria-label");
  };
  for (const name of ["mouseover", "focusin"]) grid.addEventListener(name, say);
  grid.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    const id = button.dataset.head;
    if (off.has(id)) off.delete(id);
    else off.add(id);
    button.setAttribute("aria-pressed", String(off.has(id)));
    toggled(id);
  });
  grid.addEventListener("keydown", (event) => {
    const steps = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] };
    const step = steps[event.key];
    if (!step) return;
    const [row, head] = document.activeElement.dataset.head.split(".").map(Number);
    const next = grid.querySelector(`[data-head="${row + step[0]}.${head + step[1]}"]`);
    if (!next) return;
    event.preventDefault();
    document.activeElement.tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
  });
  const known = heads.corpus ? `S: syntactic, P: positional, by ${heads.corpus}.`
    : "Nobody has measured which heads of this model are syntactic or positional (raison heads).";
  container.append(make("section", { class: "raison headmap", "aria-label": "attention heads" },
    make("h2", {}, "Attention heads"),
    make("p", { class: "quiet" }, "Rows are layers, columns heads; the darker, the more of this answer a head carries "
      + `(|attention × gradient|). ${known}`), make("div", { class: "scroll" }, grid), tip));
}
