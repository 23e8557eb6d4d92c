/** Routes: the fragment names the page and holds its filter, so that every view has an address. */

import { begin, get, post } from "./api.js";
import { fill, h } from "./dom.js";

const PAGES = {
  "": { title: "Dashboard", load: () => import("./pages/dashboard.js"), feature: "results" },
  results: { title: "Results", load: () => import("./pages/results.js"), feature: "results" },
  policies: { title: "Policies", load: () => import("./pages/policies.js"), feature: "results" },
  namespaces: { title: "Namespaces", load: () => import("./pages/namespaces.js"), feature: "results" },
  clusters: { title: "Clusters", load: () => import("./pages/clusters.js"), feature: "clusters" },
  resources: { title: "Resources", load: () => import("./pages/resources.js"), feature: "results" },
  exceptions: { title: "Exceptions", load: () => import("./pages/exceptions.js"), feature: "cluster" },
  why: { title: "Why?", load: () => import("./pages/why.js"), feature: "cluster", hidden: true },
  history: { title: "History", load: () => import("./pages/history.js"), feature: "results" },
  targets: { title: "Targets", load: () => import("./pages/targets.js"), feature: "targets" },
  playground: { title: "Playground", load: () => import("./pages/playground.js"), feature: "playground" },
};
const THEMES = ["system", "light", "dark", "contrast"];
const main = document.getElementById("main");
let config = { features: [], problems: [] };
let leave = () => {};
let visit = 0;

function route() {
  const [path, query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  const [first, ...rest] = path.split("/");
  const parameters = new URLSearchParams(query);
  // a link of Kyverno's playground with the address of this server
  const name = !first && parameters.has("content") ? "playground" : first;
  return { name, rest: rest.map(decodeURIComponent), query: parameters };
}

async function show() {
  const own = ++visit;
  const here = route();
  const fallback = config.features.includes("results") ? "" : "playground";
  const name = here.name in PAGES && config.features.includes(PAGES[here.name].feature) ? here.name : fallback;
  const page = PAGES[name];
  document.title = `${page.title} · pyverno`;
  fill(document.getElementById("nav"), Object.entries(PAGES)
    .filter(([, each]) => config.features.includes(each.feature) && !each.hidden)
    .map(([key, each]) => h("a", { href: `#/${key}`, "aria-current": key === name ? "page" : null }, each.title)));
  leave();
  leave = () => {};
  try {
    const module = await page.load();
    if (own !== visit) return;
    const done = await module.show(main, here);
    if (own === visit) leave = done ?? (() => {});
    else done?.();
  } catch (error) {
    if (own === visit) fill(main, h("h1", {}, page.title), h("p", { role: "alert" }, String(error.message ?? error)));
  }
}

/** Parts of the pages that were opened stay open in this session; the playground has its own. */
function keepOpenParts() {
  const key = details => `open ${route().name} ${details.dataset.key ?? details.querySelector("summary")?.textContent}`;
  document.addEventListener("toggle", event => {
    if (route().name === "playground" || !event.target.matches?.("main details")) return;
    if (event.target.open) sessionStorage.setItem(key(event.target), "yes");
    else sessionStorage.removeItem(key(event.target));
  }, true);
  new MutationObserver(() => {
    if (route().name === "playground") return;
    for (const each of main.querySelectorAll("details:not([data-seen])")) {
      each.dataset.seen = "yes";
      if (sessionStorage.getItem(key(each))) each.open = true;
    }
  }).observe(main, { childList: true, subtree: true });
}

function nextTheme(button) {
  const now = localStorage.getItem("theme") ?? "system";
  const next = THEMES[(THEMES.indexOf(now) + 1) % THEMES.length];
  localStorage.setItem("theme", next);
  setTheme(button);
}

function setTheme(button) {
  const theme = localStorage.getItem("theme") ?? "system";
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  button.textContent = `Theme: ${theme}`;
}

document.addEventListener("keydown", event => {
  if (event.key !== "/" || event.target.closest?.("input, textarea, select")) return;
  const field = document.querySelector("input[type=search]");
  if (field) {
    event.preventDefault();
    field.focus();
  }
});
const button = document.getElementById("theme");
button.addEventListener("click", () => nextTheme(button));
setTheme(button);
keepOpenParts();
window.addEventListener("hashchange", show);
try {
  config = await get("config");
  begin(config.number);
} catch (error) {
  config = { features: ["results", "playground"], problems: [String(error.message ?? error)] };
}
if (config.banner) document.querySelector("header").prepend(h("p.banner", { id: "banner" }, config.banner));
if (config.hasLogo) document.querySelector(".brand").prepend(h("img", { src: "static/logo", alt: "" }), " ");
if (config.user) {
  const leave = !config.hasLogin ? null : h("button.quiet", { type: "button", onclick: async () => { await post("../../logout", {}); location.reload(); } }, "Log out");
  button.before(...[h("span.note", { id: "user" }, config.user), leave].filter(Boolean));
}
document.documentElement.dataset.features = config.features.join(" ");
fill(document.getElementById("problems"), config.problems.map(text => h("p", {}, text)));
await show();
