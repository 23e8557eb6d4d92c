/** Every exception: what it is for, which results it explains, and when it ends. */

import { get, listen } from "../api.js";
import { fill, h, table } from "../dom.js";

const SOON = 14 * 24 * 3600 * 1000;

export async function show(main) {
  async function draw() {
    const { items, problems } = await get("exceptions");
    const open = new Set([...main.querySelectorAll("details[open]")].map(each => each.dataset.key));
    fill(main, h("h1", {}, "Exceptions"),
      problems.map(text => h("p", { role: "alert" }, text)),
      h("p.note", {}, "An exception without results is for nothing that violates its policies now: it may be unused."),
      items.length ? table("Exceptions", ["exception", "cluster", "policies", "results", "ends", "remarks"], items.map(each => [
        text(each, open), each.cluster, policies(each.policies), each.uses.toLocaleString(), ends(each), remarks(each),
      ]), [3]) : h("p", {}, "There are no exceptions."));
  }
  await draw();
  return listen(draw);
}

/** The policies that an exception is for, with links. */
export function policies(items) {
  return h("ul.plain", {}, items.map(({ name, rules }) => h("li", {},
    h("a", { href: `#/policies/${encodeURIComponent(name)}` }, name), rules.length ? ` / ${rules.join(", ")}` : "")));
}

function text(each, open) {
  const key = [each.cluster, each.namespace, each.name].join("/");
  return h("details", { "data-key": key, open: open.has(key) }, h("summary", {}, [each.namespace, each.name].filter(Boolean).join("/")),
    h("pre", { tabindex: "0" }, each.text));
}

function ends({ expires }) {
  return expires ? h("time", { datetime: expires }, new Date(expires).toLocaleString()) : "never";
}

function remarks(each) {
  const missing = each.policies.filter(({ exists }) => !exists).map(({ name }) => name);
  const left = each.expires ? new Date(each.expires) - Date.now() : Infinity;
  return h("ul.plain", {}, [
    missing.length ? `no policy ${missing.join(", ")}` : "",
    each.uses ? "" : "unused",
    left < 0 ? "has ended" : left < SOON ? "ends soon" : "",
  ].filter(Boolean).map(remark => h("li", {}, remark)));
}
