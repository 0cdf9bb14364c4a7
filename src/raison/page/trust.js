// Can this explanation be trusted? In words first, then the curves and the numbers behind the words.

import { make, number, soft } from "./wording.js";
import { fold } from "./render.js";
import { curve, key } from "./curves.js";

const NAMES = { order: ["both, in standard deviations", "more is better"], deletion: ["deletion", "less is better"],
  insertion: ["insertion", "more is better"],
  comprehensiveness: ["comprehensiveness", "more is better"], sufficiency: ["sufficiency", "less is better"] };

function table(numbers) {
  const rows = Object.entries(NAMES).map(([name, [said, better]]) => {
    const { this: own, leave_one_out: other, random, chance } = numbers[name];
    const cells = [own, other, random].map((value) => make("td", { class: "score" }, number(value, 1).replace("+", "")));
    return make("tr", {}, make("th", { scope: "row" }, said, make("span", { class: "quiet" }, ` ${better}`)), ...cells,
      make("td", { class: "score" }, `${(100 * chance).toFixed(0)} %`));
  });
  const top = ["", "this", "leave-one-out", "random", "chance does as well"].map((t) => make("th", { scope: "col" }, t));
  return make("table", { class: "gaps" }, make("thead", {}, make("tr", {}, ...top)), make("tbody", {}, ...rows));
}

export function renderTrust(trust, method, container) {
  const [first, ...rest] = trust.sentences;
  const section = make("section", { class: "raison trust", "aria-label": "how far it can be trusted" },
    make("h2", {}, "Can it be trusted?"), make("p", { class: "quiet code" }, ...soft(method)),
    make("p", { class: "statement", "data-verdict": trust.verdict }, first),
    ...rest.map((sentence) => make("p", {}, sentence)),
    make("div", { class: "pictures" },
      curve("Taking away, the most important first", "share of the text taken away", trust.curves.deletion),
      curve("Putting back, the most important first", "share of the text put back", trust.curves.insertion)),
    key(), fold("The numbers", make("div", { class: "scroll" }, table(trust.numbers))));
  container.append(section);
  return section;
}
