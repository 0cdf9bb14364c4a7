// Run folders: their examples as a list that is sorted and filtered, and one example with all its explanations.

import { ask } from "./stream.js";
import { clean, make, share } from "./wording.js";

const PART = 50;

export function renderRuns(names, container, show, failed) {
  if (!names.length) {
    container.append(make("p", { class: "quiet" }, "No run was named: start the server with --run FOLDER."));
    return;
  }
  const wish = { name: names[0], method: "", sort: "index", down: false, find: "", start: 0 };
  const run = make("select", { "aria-label": "run" }, ...names.map((name) => make("option", { value: name }, name)));
  const method = make("select", { "aria-label": "method" });
  const sort = make("select", { "aria-label": "sort by" });
  const down = make("button", { type: "button", "aria-pressed": "false" }, "lowest first");
  const find = make("input", { type: "search", placeholder: "words in the text", "aria-label": "words in the text" });
  const said = make("p", { class: "quiet" });
  const list = make("tbody");
  const head = make("tr");
  const pages = make("div", { class: "pages" });
  const fill = (select, values, now) => select.replaceChildren(...values.map(([value, text]) => {
    const option = make("option", { value }, text);
    option.selected = value === now;
    return option;
  }));
  let latest = 0;
  async function look() {
    const mine = ++latest;
    const query = new URLSearchParams({ method: wish.method, sort: wish.sort, down: wish.down, find: wish.find,
      start: wish.start, count: PART });
    let told;
    try {
      told = await ask(`/api/runs/${encodeURIComponent(wish.name)}?${query}`);
    } catch (error) {
      return failed(error);
    }
    if (mine !== latest) return;
    fill(method, [["", "all methods"], ...told.methods.map((name) => [name, name])], wish.method);
    fill(sort, ["index", "probability", "label", "target", "method", ...told.numbers].map((name) => [name, name]), wish.sort);
    said.textContent = `${told.found} explanations of ${clean(told.data)} by ${clean(told.model)}`;
    const shown = told.numbers.slice(0, 6);
    head.replaceChildren(...["", "text", "target", "probability", "method", ...shown]
      .map((title) => make("th", { scope: "col" }, title)));
    list.replaceChildren(...told.rows.map((row) => {
      const open = make("button", { type: "button", class: "link" }, clean(row.text));
      open.addEventListener("click", () => show(wish.name, row.index, row.method));
      const figures = shown.map((name) => make("td", { class: "score" },
        row.numbers[name] == null ? "–" : row.numbers[name].toFixed(3)));
      return make("tr", {}, make("td", { class: "score quiet" }, String(row.index)), make("td", { class: "words" }, open),
        make("td", {}, row.failed ? "failed" : clean(row.target ?? "")),
        make("td", { class: "score" }, row.probability == null ? "–" : share(row.probability)),
        make("td", { class: "code" }, clean(row.method)), ...figures);
    }));
    const turn = (name, by, able) => {
      const button = make("button", { type: "button" }, name);
      button.disabled = !able;
      button.addEventListener("click", () => { wish.start += by; look(); });
      return button;
    };
    const last = Math.min(told.found, wish.start + PART);
    pages.replaceChildren(turn("earlier", -PART, wish.start > 0),
      make("span", { class: "quiet" }, told.found ? `${wish.start + 1} to ${last} of ${told.found}` : "none"),
      turn("later", PART, last < told.found));
  }
  const changed = (name, value) => { wish[name] = value; wish.start = 0; look(); };
  run.addEventListener("change", () => { wish.method = ""; wish.sort = "index"; changed("name", run.value); });
  method.addEventListener("change", () => changed("method", method.value));
  sort.addEventListener("change", () => changed("sort", sort.value));
  find.addEventListener("input", () => changed("find", find.value));
  down.addEventListener("click", () => {
    down.textContent = wish.down ? "lowest first" : "highest first";
    down.setAttribute("aria-pressed", String(!wish.down));
    changed("down", !wish.down);
  });
  container.append(make("section", { class: "raison runs", "aria-label": "runs" },
    make("div", { class: "controls" }, run, method, make("label", {}, make("span", { class: "quiet" }, "sort by "), sort),
      down, find), said,
    make("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": "examples of the run" },
      make("table", { class: "all" }, make("thead", {}, head), list)), pages));
  look();
}
