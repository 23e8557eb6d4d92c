/** Results with facets on everything; the address is the filter, exports are those of the filter. */

import { get, listen } from "../api.js";
import { fill, h, status, table } from "../dom.js";
import { change, facetChoice, facetForm, searchBox, shownFacets } from "../filters.js";
import { saveForm } from "../views.js";

const FORMATS = ["csv", "json", "sarif", "html", "junit", "markdown"];

export async function show(main, { query }) {
  let items = [];
  const save = saveForm(query);
  async function draw(cursor = "") {
    const filter = new URLSearchParams(query);
    const own = new URLSearchParams(filter);
    own.delete("order");
    const [page, facets, keys] = await Promise.all([
      get("results", cursor ? new URLSearchParams([...filter, ["cursor", cursor]]) : filter),
      get("facets", new URLSearchParams([...own, ["fields", shownFacets(query).join(",")]])), get("facets/keys", own),
    ]);
    items = cursor ? [...items, ...page.items] : page.items;
    const form = facetForm("results", query, facets);
    const more = h("div.facets", {}, facetChoice(query, keys.items, draw));
    fill(main, h("h1", {}, "Results"), searchBox("results", query),
      h("div.split", {},
        h("div", {}, h("button.only-small", { type: "button", onclick: () => { form.classList.toggle("shown"); more.classList.toggle("shown"); } }, "Filters"), form, more),
        h("div", {},
          h("div.tools", {},
            h("span", { role: "status" }, `${page.total.toLocaleString()}${page.isLowerBound ? "+" : ""} ${page.total === 1 ? "result" : "results"}`),
            h("label", {}, "Order ", h("select", { onchange: event => change("results", query, { order: event.target.value }) },
              ["worst", "latest", "oldest"].map(name => h("option", { selected: (query.get("order") ?? "worst") === name }, name)))),
            h("span", {}, "Export: ", FORMATS.map(form => [h("a", { href: exportHref(own, form), download: true }, form), " "])), save),
          resultTable(items),
          page.cursor ? h("p", {}, h("button", { type: "button", onclick: () => draw(page.cursor) }, "More")) : null)));
  }
  await draw();
  return listen(() => { if (items.length <= 50) draw(); });
}

function exportHref(filter, format) {
  return `api/v1/export?${new URLSearchParams([...filter, ["format", format]])}`;
}

/** A table of results. */
export function resultTable(items) {
  const canAsk = document.documentElement.dataset.features?.split(" ").includes("cluster");
  return table("Results", ["status", "severity", "policy", "resource", "message", "since"], items.map(each => [
    h("span", {}, status(each.status), canAsk && each.cluster !== "files" && !each.resolved ? [" ", h("a.why", { href: `#/why/${each.id}`, "aria-label": `Why ${each.status}: ${each.policy}` }, "why?")] : null), each.severity ?? "",
    h("span", {}, h("a", { href: `#/policies/${encodeURIComponent(each.policy)}` }, each.policy), each.rule ? ` / ${each.rule}` : ""),
    h("a", { href: `#/resources/${each.resourceId}` }, [each.resource?.namespace, each.resource?.kind, each.resource?.name].filter(Boolean).join("/") || "-"),
    h("td.message", {}, each.message ?? ""),
    h("time", { datetime: each.firstSeen }, new Date(each.firstSeen).toLocaleString()),
  ]));
}
