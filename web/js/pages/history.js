/** What changed, from the latest: new problems, other statuses, resolved ones. */

import { get, listen } from "../api.js";
import { fill, h, status, table } from "../dom.js";
import { searchBox } from "../filters.js";

export async function show(main, { query }) {
  async function draw() {
    const changes = await get("history", query);
    fill(main, h("h1", {}, "History"), searchBox("history", query),
      changes.length ? table("Changes", ["when", "before", "after", "policy", "resource"], changes.map(each => [
        h("time", { datetime: each.at }, new Date(each.at).toLocaleString()),
        each.before ? status(each.before) : "new", each.after ? status(each.after) : "resolved",
        `${each.result.policy}${each.result.rule ? ` / ${each.result.rule}` : ""}`,
        h("a", { href: `#/resources/${each.result.resourceId}` }, [each.result.resource?.namespace, each.result.resource?.kind, each.result.resource?.name].filter(Boolean).join("/")),
      ])) : h("p.note", {}, "Nothing has changed since the results were first read."));
  }
  await draw();
  return listen(draw);
}
