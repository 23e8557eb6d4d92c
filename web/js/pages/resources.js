/** Objects with their counts; one object with what is open and what was resolved. */

import { get } from "../api.js";
import { fill, h, status, STATUSES, table } from "../dom.js";
import { searchBox } from "../filters.js";
import { resultTable } from "./results.js";

export async function show(main, { rest, query }) {
  if (rest.length) return showOne(main, rest[0]);
  const found = await get("resources", query);
  fill(main, h("h1", {}, "Resources"), searchBox("resources", query),
    table("Resources", ["resource", "cluster", ...STATUSES], found.items.map(each => [
      h("a", { href: `#/resources/${each.id}` }, [each.namespace, each.kind, each.name].filter(Boolean).join("/") || "(no resource)"),
      each.cluster, ...STATUSES.map(name => each.status[name])]), [2, 3, 4, 5, 6]),
    found.next ? h("p", {}, h("button", { type: "button", onclick: () => { location.hash = `#/resources?${new URLSearchParams([...query].filter(([key]) => key !== "offset").concat([["offset", found.next]]))}`; } }, "Next")) : null);
}

async function showOne(main, id) {
  const found = await get(`resources/${id}`);
  fill(main, h("h1", {}, [found.namespace, found.kind, found.name].filter(Boolean).join("/") || "(no resource)"),
    h("p.note", {}, `${found.apiVersion ?? ""} in ${found.cluster}`),
    h("ul.tiles", {}, STATUSES.map(name => h("li", {}, h("strong", {}, found.status[name]), status(name)))),
    h("h2", {}, "Open"), resultTable(found.results),
    found.resolved.length ? [h("h2", {}, "Resolved"), resultTable(found.resolved)] : null);
}
