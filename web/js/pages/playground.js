/** The playground: texts in, what the engine says out, on the lines it is about; the texts stay in the browser. */

import { get, post, postForFile } from "../api.js";
import { diff } from "../diff.js";
import { fill, h, status, table } from "../dom.js";
import { editor } from "../editor.js";
import { explanation, marksOf, ruleOf } from "../explain.js";
import { fromFragment, toFragment } from "../share.js";
import { storedStates } from "../stored.js";

const TABS = [
  ["policies", "Policies"], ["resources", "Resources"], ["oldResources", "Old resources"], ["clusterResources", "Cluster"],
  ["exceptions", "Exceptions"], ["values", "Values"], ["userInfo", "User"], ["context", "Context"], ["crds", "CRDs"],
];
const VERSIONS = Array.from({ length: 11 }, (_, index) => `1.${37 - index}`);
const KEY = "playground";

/** The texts to begin with: those of a link, of a link of Kyverno's playground, or the latest of this browser. */
async function firstState(rest, query) {
  if (rest.length) return fromFragment(rest[0]);
  if (query.has("content")) return (await post("import", { text: query.get("content") })).profiles[0].state;
  return JSON.parse(localStorage.getItem(KEY) ?? "{}");
}

export async function show(main, { rest, query }) {
  const state = { operation: "", ...await firstState(rest, query) };
  const editors = {};
  const answer = h("section", { "aria-label": "Answer" });
  const problems = h("div", { role: "status" });
  let waiting = null;
  let asked = 0;
  let marks = {};
  const goTo = place => editors[place.input]?.goTo(place.line);

  async function review() {
    const own = ++asked;
    localStorage.setItem(KEY, JSON.stringify(state));
    if (!state.policies?.trim() || !state.resources?.trim()) {
      fill(answer, h("p.note", {}, "Write or choose a policy and a resource."));
      return;
    }
    try {
      const found = await post("review", { ...state, explain: true });
      if (own === asked) draw(found);
    } catch (error) {
      if (own === asked) fill(answer, h("p", { role: "alert" }, error.message));
    }
  }

  function soon() {
    clearTimeout(waiting);
    waiting = setTimeout(review, 300);
  }

  function draw(found) {
    marks = Object.fromEntries(TABS.map(([name]) => [name, []]));
    for (const each of found.problems) marks[each.input]?.push({ line: each.line, kind: each.severity === "error" ? "error" : "warn", text: each.message });
    for (const one of found.reviews) for (const each of one.results) {
      if (each.status === "pass" || each.status === "skip") continue;
      marks.resources.push({ line: each.place.line, kind: each.status, text: `${each.policy}: ${each.message}` });
      marks.policies.push({ line: each.rulePlace.line, kind: each.status, text: each.message });
    }
    for (const [name, list] of Object.entries(marks)) editors[name]?.mark(list);
    fill(problems, found.problems.map(each =>
      h(`p.${each.severity === "error" ? "error" : "warn"}`, {}, `${each.input}:${each.line}:${each.column} ${each.path ? `${each.path}: ` : ""}${each.message}`)));
    fill(answer, found.reviews.map(drawReview), found.reviews.length ? null : h("p.note", {}, "No policy could be evaluated."));
  }

  /** Show on the lines of the texts what an open explanation says about them. */
  function showOnLines(lines, isOpen) {
    for (const mark of marksOf(lines)) {
      const own = (marks[mark.input] ?? []).filter(each => each.by !== lines);
      marks[mark.input] = own;
    }
    if (isOpen) for (const mark of marksOf(lines)) marks[mark.input]?.push({ ...mark, by: lines });
    for (const name of new Set(lines.map(line => line.place?.input))) editors[name]?.mark(marks[name]);
  }

  function why(rule, number) {
    if (!rule) return null;
    const change = h("div", {});
    const isBad = rule.statuses.some(name => ["fail", "error", "warn"].includes(name));
    return h("details", { ontoggle: event => showOnLines(rule.lines, event.target.open) },
      h("summary", {}, rule.matched ? "Why" : `${rule.policy}${rule.rule ? ` / ${rule.rule}` : ""}`), explanation(rule.lines.slice(1), goTo),
      isBad ? h("button", { type: "button", onclick: () => findChange(rule, number, change) }, "What would change it?") : null, change);
  }

  async function findChange(rule, number, target) {
    fill(target, h("p.note", {}, "Searching…"));
    try {
      const found = await post("review", { ...state, change: { resource: number, policy: rule.policy, rule: rule.rule } });
      const lines = found.reviews[number]?.rules.find(each => each.change)?.change;
      fill(target, lines ? explanation(lines, goTo) : h("p.note", {}, "The texts have changed since."));
    } catch (error) {
      fill(target, h("p", { role: "alert" }, error.message));
    }
  }

  function drawReview(one, number) {
    const name = [one.resource.namespace, one.resource.kind, one.resource.name].filter(Boolean).join("/");
    return h("article", {},
      h("h2", {}, `${name} · ${one.operation} · `, status(one.allowed ? "pass" : "fail"), one.allowed ? " admitted" : " denied"),
      one.message ? h("pre", {}, one.message) : null,
      one.warnings.map(text => h("p.warn", {}, `Warning: ${text}`)),
      table(`Results for ${name}`, ["status", "policy", "rule", "type", "message"], one.results.map(each => [
        status(each.status), each.policy, each.rule, each.type, h("td.message", {}, each.message, why(ruleOf(one.rules, each), number))])),
      drawLeft((one.rules ?? []).filter(each => !each.matched), number),
      one.before ? [h("h3", {}, "Changes"), diff(one.before, one.after)] : null,
      one.effects.map(each => h("section", {},
        h("h3", {}, `${each.type} ${[each.resource.namespace, each.resource.kind, each.resource.name].filter(Boolean).join("/")} by ${each.policy}`),
        each.text ? h("pre", {}, each.text) : null, each.before ? diff(each.before, each.after) : null)));
  }

  function drawLeft(rules, number) {
    return rules.length ? h("details", {}, h("summary", {}, rules.length === 1 ? "1 rule does not match" : `${rules.length} rules do not match`), rules.map(rule => why(rule, number))) : null;
  }

  async function testSuite() {
    try {
      save(await postForFile("testcase", state), "playground.zip");
    } catch (error) {
      fill(problems, h("p.error", { role: "alert" }, error.message));
    }
  }

  const examples = h("select", { "aria-label": "Examples", onchange: async event => {
    if (!event.target.value) return;
    const found = await get(`examples/${event.target.value}`);
    load({ ...found, kubernetesVersion: state.kubernetesVersion }, found.title ? [found.title] : []);
  } }, h("option", { value: "" }, "Examples…"));
  get("examples").then(list => examples.append(...list.map(each => h("option", { value: each.name, title: each.title }, each.name)))).catch(() => {});

  function load(next, notes) {
    for (const [name] of TABS) editors[name].set(next[name] ?? "");
    operation.value = state.operation = next.operation ?? "";
    version.value = state.kubernetesVersion = next.kubernetesVersion ?? "";
    fill(told, notes.map(text => h("p.note", {}, text)));
    soon();
  }

  const told = h("div", { role: "status" });
  const stored = storedStates(() => ({ ...state }), load);
  const operation = h("select", { onchange: event => { state.operation = event.target.value; soon(); } },
    ["", "CREATE", "UPDATE", "DELETE", "CONNECT"].map(name => h("option", { value: name, selected: state.operation === name }, name || "automatic")));
  const version = h("select", { onchange: event => { state.kubernetesVersion = event.target.value; soon(); } },
    ["", ...VERSIONS].map(name => h("option", { value: name, selected: (state.kubernetesVersion ?? "") === name }, name || "newest")));
  const more = h("div.columns", { hidden: true });
  for (const [name, title] of TABS) {
    editors[name] = editor(title, state[name] ?? "", text => { state[name] = text; soon(); }, () => ({ crds: state.crds ?? "", kubernetesVersion: state.kubernetesVersion ?? "" }));
    if (!["policies", "resources"].includes(name)) more.append(editors[name].element);
  }
  fill(main, h("h1", {}, "Playground"),
    h("div.tools", {}, examples,
      h("label", {}, "Operation ", operation), h("label", {}, "Kubernetes ", version),
      opener("More inputs", more), opener("Saved and import", stored),
      h("button", { type: "button", onclick: async () => { location.hash = `#/playground/${encodeURIComponent(await toFragment(state))}`; } }, "Share"),
      h("button", { type: "button", onclick: () => save(new Blob([JSON.stringify(state, null, 2)], { type: "application/json" }), "playground.json") }, "Download"),
      h("button", { type: "button", onclick: testSuite }, "Test suite"),
      h("button", { type: "button", onclick: () => load({}, []) }, "Clear")),
    told, stored,
    h("div.columns", {}, editors.policies.element, editors.resources.element), more, problems, answer);
  await review();
  return () => clearTimeout(waiting);
}

/** A button that shows and hides a part of the page. */
function opener(title, part) {
  return h("button", { type: "button", "aria-expanded": "false", onclick: event => {
    part.hidden = !part.hidden;
    event.target.setAttribute("aria-expanded", String(!part.hidden));
  } }, title);
}

function save(blob, name) {
  const url = URL.createObjectURL(blob);
  h("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}
