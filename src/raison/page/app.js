// The page: a form, questions to the server, and results drawn by the modules that draw every result of raison.

import { ask } from "./stream.js";
import { drawGroup, groupsOf } from "./groups.js";
import { chooser, nameOf, parametersOf } from "./form.js";
import { decoded, encoded, shareBar } from "./share.js";
import { renderHeads } from "./heads.js";
import { renderRuns } from "./runs.js";
import { renderTrust } from "./trust.js";
import { targets } from "./target.js";
import { whatIf } from "./whatif.js";
import { make } from "./wording.js";

const VIEWS = { scores: "Scores", rationale: "Rationale", answer: "Answer over passages", heads: "Heads", runs: "Runs" };
const FIRST = { text: "The cast is wonderful, but the story is stale and the pacing dull.",
  writes: "The Supreme Court on Tuesday rejected a challenge to the" };
const [form, status, result, tabs] = ["form", "state", "result", "tabs"].map((id) => document.getElementById(id));
const usual = () => ({ view: "scores", model: "", text: "", pair: "", target: null, contrast: "", units: "", removal: "",
  methods: ["leave_one_out"], search: "refined", sufficient: "", question: "", passages: [["passage 1", ""]] });
const state = usual();
let about, running, predicted, looking;

const model = () => about.models.find((each) => each.name === state.model) ?? about.models[0];
const known = (list, spec) => about[list].find((entry) => entry.name === nameOf(spec));
const units = () => state.units || (state.view === "rationale" && model().writes ? "token" : "word");

function remember() {
  const plain = usual();
  const kept = Object.entries(state).filter(([name, value]) => JSON.stringify(plain[name]) !== JSON.stringify(value));
  history.replaceState(null, "", `#${encoded(Object.fromEntries(kept))}`);
}

function restore() {
  const found = decoded(location.hash.slice(1));
  if (!found) return false;
  Object.assign(state, usual()); // what the link does not say is as usual, not as it was
  const text = (value) => typeof value === "string";
  const fits = { target: (value) => value === null || text(value) || Number.isInteger(value),
    methods: (value) => Array.isArray(value) && value.every(text), view: (value) => text(value) && Object.hasOwn(VIEWS, value),
    passages: (value) => Array.isArray(value) && value.length > 0
      && value.every((each) => Array.isArray(each) && each.length === 2 && each.every(text)) };
  for (const [name, value] of Object.entries(found))
    if (Object.hasOwn(state, name) && (fits[name] ?? text)(value)) state[name] = value;
  return true;
}

// -- the form ---------------------------------------------------------------------------------------------------

const field = (name, input, hint = "") => make("label", { class: "field" }, make("span", {}, name,
  hint ? make("span", { class: "quiet" }, ` ${hint}`) : ""), input);

function area(name, rows, hint, changed = () => {}) {
  const box = make("textarea", { rows, spellcheck: "false", dir: "auto", "data-name": name });
  box.value = state[name];
  box.addEventListener("input", () => { state[name] = box.value; changed(); });
  return box;
}

function select(name, options, changed = build) {
  const list = make("select", { "data-name": name }, ...options.map(([value, shown]) => make("option", { value }, shown)));
  list.value = state[name];
  list.addEventListener("change", () => { state[name] = list.value; changed(); });
  return list;
}

function words() {
  const { task, writes } = model();
  const again = () => { state.target = null; predict(); };
  if (task === "qa") return [field("Question", area("text", 2, "", again)), field("Context", area("pair", 6, "", again))];
  const title = task === "seq2seq" ? "Source sentence" : writes ? "Prompt" : "Text";
  const found = [field(title, area("text", 4, "", again))];
  if (task === "classification")
    found.push(make("details", { ...(state.pair ? { open: "" } : {}) }, make("summary", {}, "a second text (for pairs)"),
      field("Second text", area("pair", 2, "", again))));
  return found;
}

function passages() {
  const boxes = state.passages.map(([name, text], at) => {
    const box = make("textarea", { rows: 3, spellcheck: "false", "data-passage": at, "aria-label": name });
    box.value = text;
    box.addEventListener("input", () => { state.passages[at][1] = box.value; });
    return field(name, box);
  });
  const more = make("button", { type: "button" }, "Another passage");
  more.addEventListener("click", () => {
    state.passages.push([`passage ${state.passages.length + 1}`, ""]);
    build();
  });
  return [field("Question", area("question", 2)), ...boxes, more];
}

function searching() {
  const entry = known("searches", state.search);
  const list = make("select", { "aria-label": "search" }, ...about.searches.map(({ name, about: said }) => (
    make("option", { value: name, title: said }, name))));
  list.value = entry?.name ?? "refined";
  list.addEventListener("change", () => { state.search = list.value; build(); });
  const rule = make("input", { type: "text", list: "rules", placeholder: "argmax", "data-name": "sufficient" });
  rule.value = state.sufficient;
  rule.addEventListener("change", () => { state.sufficient = rule.value.trim(); });
  const rules = make("datalist", { id: "rules" }, ...about.rules.map(({ name }) => make("option", { value: name })));
  return make("div", { class: "side" }, field("Search", list),
    field("Enough is", rule, "argmax, probability(tau=0.9), top(k=5) …"), rules,
    parametersOf(entry && { ...entry, parameters: entry.parameters.filter(({ name }) => name !== "sufficient") },
      state.search, (spec) => { state.search = spec; build(); }));
}

function build() {
  for (const tab of tabs.children) {
    const chosen = tab.dataset.view === state.view;
    tab.setAttribute("aria-selected", String(chosen));
    tab.tabIndex = chosen ? 0 : -1;
  }
  form.setAttribute("aria-labelledby", `tab-${state.view}`);
  if (state.view === "runs") {
    form.replaceChildren();
    return;
  }
  const able = about.models.filter((each) => (state.view === "heads" ? each.heads
    : state.view === "answer" ? each.writes && each.task === "causal" || each.task === "qa" : true));
  if (!able.length) {
    form.replaceChildren(make("p", { class: "quiet" }, "None of the models here can do this: start the server with another (-m)."));
    return;
  }
  if (!able.some((each) => each.name === state.model)) state.model = able[0].name;
  const models = field("Model", select("model", able.map(({ name, task }) => [name, `${name} · ${task}`]), () => {
    state.target = null;
    state.contrast = "";
    state.removal = "";
    state.methods = state.methods.filter((spec) => model().methods.includes(nameOf(spec)));
    build();
  }));
  const content = state.view === "answer" ? passages() : words();
  predicted = make("div", { class: "predicted" });
  const contrast = make("input", { type: "text", list: "outcomes", placeholder: "anything else", "data-name": "contrast" });
  contrast.value = state.contrast ?? "";
  contrast.addEventListener("change", () => { state.contrast = contrast.value; });
  const other = make("datalist", { id: "outcomes" }, ...model().labels.map((label) => make("option", { value: label })));
  const several = state.view === "scores";
  if (!several) state.methods.splice(1); // heads are looked at by one method
  if (!state.methods.length && !several) state.methods.push("leave_one_out");
  const methods = state.view === "rationale" ? searching() : state.view === "answer" ? "" : field(
    several ? "Methods" : "Method", chooser({ entries: about.methods, able: model().methods, chosen: state.methods,
      most: several ? about.limits.methods : 1, label: "method", changed: () => {} }));
  const more = state.view === "answer" ? "" : make("details", {}, make("summary", {}, "more settings"),
    make("div", { class: "side" }, field("Rather than", contrast), other,
      field("Units", select("units", [["", `usual (${units()})`], ["token", "token"], ["word", "word"], ["sentence", "sentence"]])),
      field("Absent means", select("removal", [["", `usual (${model().removals[0]})`],
        ...model().removals.map((each) => [each, each])]))));
  const go = make("button", { type: "submit", class: "go" }, { scores: "Explain", rationale: "Find the rationale",
    answer: "Answer and ground it", heads: "Look at the heads" }[state.view]);
  const side = make("div", { class: "column" }, models, methods, more);
  form.replaceChildren(make("div", { class: "column wide" }, ...content, state.view === "answer" ? "" : predicted), side,
    make("div", { class: "buttons" }, go, make("span", { class: "quiet keys" }, "Ctrl + Enter")));
  if (state.view !== "answer") predict(0);
}

function predict(wait = 500) {
  clearTimeout(looking?.timer);
  looking?.abort.abort();
  const abort = new AbortController();
  const timer = setTimeout(async () => {
    if (!state.text.trim() || (model().task === "qa" && !state.pair.trim())) return predicted.replaceChildren();
    try {
      const told = await ask("/api/predict", { model: state.model, text: state.text, pair: paired() },
        { signal: abort.signal });
      const draw = () => predicted.replaceChildren(...targets(told, model(), state, state.view === "rationale", draw));
      draw();
    } catch (error) {
      if (error.name !== "AbortError") predicted.replaceChildren(make("p", { class: "quiet" }, error.message));
    }
  }, wait);
  looking = { timer, abort };
}

// -- questions --------------------------------------------------------------------------------------------------

const paired = () => (["classification", "qa"].includes(model().task) && state.pair) || null;
const subject = () => ({ model: state.model, text: state.text, pair: paired(), target: state.target ?? null,
  contrast: state.contrast || null, units: units(), removal: state.removal || null });

function failed(error) {
  if (error.superseded) return; // another question runs already
  if (error.name === "AbortError") status.replaceChildren(make("p", { class: "quiet" }, "cancelled"));
  else status.replaceChildren(make("p", { class: "warning", role: "alert" }, error.message));
}

// One question at a time; progress is shown, and can be cancelled.
async function during(path, body) {
  running?.abort();
  const mine = running = new AbortController();
  const bar = make("progress", { max: 1, "aria-label": "progress" });
  const what = make("span", { class: "quiet" }, "asking the model …");
  const cancel = make("button", { type: "button", class: "cancel" }, "Cancel");
  cancel.addEventListener("click", () => mine.abort());
  status.replaceChildren(make("div", { class: "running" }, bar, what, cancel));
  const begun = performance.now();
  const progress = ({ done, total, what: said }) => {
    if (total) bar.value = done / total;
    const spent = (performance.now() - begun) / 1000;
    const left = total && done ? (spent * (total - done)) / done : 0;
    what.textContent = [total ? `${Math.round((100 * done) / total)} %` : "", said, left > 1 ? `${Math.ceil(left)} s left` : ""]
      .filter(Boolean).join(" · ");
  };
  try {
    const told = await ask(path, body, { progress, signal: mine.signal });
    status.replaceChildren();
    return told;
  } catch (error) {
    error.superseded = running !== mine;
    throw error;
  } finally {
    if (running === mine) running = null;
  }
}

function trustButton(explanation, box, body) {
  const button = make("button", { type: "button", class: "go second" }, "Can I trust this?");
  button.addEventListener("click", async () => {
    try {
      const { trust, method } = await during("/api/trust", { ...body, method: explanation.method });
      box.querySelector(":scope > .trust")?.remove();
      renderTrust(trust, method, box);
      box.lastChild.scrollIntoView({ behavior: "smooth", block: "nearest" });
    } catch (error) {
      failed(error);
    }
  });
  return button;
}

// `body` is what was asked, so that more can be asked about the same; without it the results are only shown.
function show(told, asked) {
  const { explanations } = told;
  result.replaceChildren();
  const aims = new Set(explanations.map(({ target }) => JSON.stringify(target)));
  const body = aims.size === 1 ? asked : null; // more is asked about one target only
  for (const group of groupsOf(told)) {
    const box = make("div", { class: "box" });
    result.append(box);
    const article = drawGroup(group, box);
    const members = group.members.map(({ explanation }) => explanation);
    if (article && body && !members[0].grounding)
      whatIf(members[0], article, (removed) => ask("/api/remove", { ...body, removed }));
    if (body && group.kind !== "matrix" && !members[0].grounding)
      box.append(make("div", { class: "asks" }, ...members.map((each) => {
        const button = trustButton(each, box, body);
        if (members.length > 1) button.textContent = `Can I trust ${nameOf(each.method)}?`;
        return button;
      })));
  }
  result.append(shareBar(told, failed));
  result.firstChild?.scrollIntoView({ behavior: "smooth", block: "nearest" });
}

async function heads(body, off = new Set()) {
  const told = await during("/api/heads", { ...body, off: [...off].map((id) => id.split(".").map(Number)) });
  result.replaceChildren();
  const grid = make("div", { class: "box" });
  result.append(grid);
  const before = new Set(off);
  renderHeads(told.heads, off, grid, (id) => heads(body, off)
    .then(() => result.querySelector(`[data-head="${id}"]`)?.focus())
    .catch((error) => {
      if (!error.superseded) { // nothing was switched
        off.clear();
        for (const each of before) off.add(each);
        for (const button of grid.querySelectorAll("[data-head]"))
          button.setAttribute("aria-pressed", String(off.has(button.dataset.head)));
      }
      failed(error);
    }));
  const box = make("div", { class: "box" });
  result.append(box);
  if (told.statement) box.append(make("p", { class: "statement" }, told.statement));
  for (const group of groupsOf(told)) drawGroup(group, box);
}

async function submit() {
  try {
    remember();
    if (state.view === "scores") {
      if (!state.methods.length) throw new Error("Choose at least one method.");
      const body = subject();
      show(await during("/api/explain", { ...body, methods: [...state.methods] }), body);
    } else if (state.view === "rationale") {
      const body = subject();
      show(await during("/api/rationalize", { ...body, search: state.search, sufficient: state.sufficient || null }), body);
    } else if (state.view === "answer") {
      const passages = Object.fromEntries(state.passages.filter(([, text]) => text.trim()));
      if (!Object.keys(passages).length) throw new Error("Give at least one passage to answer from.");
      show(await during("/api/ground", { model: state.model, question: state.question, passages }), null);
    } else if (state.view === "heads") await heads({ ...subject(), method: state.methods[0] ?? "leave_one_out" });
  } catch (error) {
    failed(error);
  }
}

function open(view) {
  state.view = view;
  if (view !== "rationale" && state.target === "all") state.target = null;
  running?.abort();
  status.replaceChildren();
  result.replaceChildren();
  build();
  if (view === "runs") {
    const below = make("div", { class: "box" });
    renderRuns(about.runs, result, async (name, index) => {
      try {
        const told = await during(`/api/runs/${encodeURIComponent(name)}/${index}`);
        below.replaceChildren();
        for (const group of groupsOf(told)) drawGroup(group, below);
        below.append(shareBar(told, failed));
        below.scrollIntoView({ behavior: "smooth", block: "nearest" });
      } catch (error) {
        failed(error);
      }
    }, failed);
    result.append(below);
  }
  remember();
}

function tabbing() {
  for (const [view, name] of Object.entries(VIEWS)) {
    const tab = make("button", { type: "button", role: "tab", id: `tab-${view}`, "data-view": view, "aria-controls": "form" }, name);
    tab.addEventListener("click", () => open(view));
    tabs.append(tab);
  }
  tabs.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    const all = [...tabs.children];
    const next = all[all.indexOf(document.activeElement) + step];
    if (!step || !next) return;
    next.focus();
    next.click();
  });
}

function theming() {
  const button = document.getElementById("theme");
  const turn = (theme) => { if (theme) document.documentElement.dataset.theme = theme; };
  try { turn(localStorage.getItem("raison-theme")); } catch { /* storage may be forbidden */ }
  button.addEventListener("click", () => {
    const dark = matchMedia("(prefers-color-scheme: dark)").matches;
    const now = document.documentElement.dataset.theme ?? (dark ? "dark" : "light");
    turn(now === "dark" ? "light" : "dark");
    try { localStorage.setItem("raison-theme", document.documentElement.dataset.theme); } catch { /* as above */ }
  });
}

async function begin() {
  theming();
  try {
    about = await ask("/api/about");
  } catch (error) {
    return failed(error);
  }
  tabbing();
  const restored = restore();
  if (!about.models.some((each) => each.name === state.model)) state.model = about.models[0]?.name ?? "";
  if (!restored) state.text = model().writes ? FIRST.writes : FIRST.text;
  if (model().own && !restored) state.methods = ["own"];
  form.addEventListener("submit", (event) => { event.preventDefault(); submit(); });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); submit(); }
    if (event.key === "Escape") running?.abort();
  });
  window.addEventListener("hashchange", () => { if (restore()) { open(state.view); if (state.view !== "runs") submit(); } });
  open(state.view);
  if (restored && state.view !== "runs") submit();
}

begin();
