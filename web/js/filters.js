/** The filter of a page is the query of its address; see the server's `ui.store.filters` for the grammar. */

import { h, fill } from "./dom.js";

export const FACETS = ["status", "severity", "policy", "namespace", "kind", "source", "category"];
const OTHERS = ["rule", "cluster"];
const KEY = "facets";

/** Facets to show: those of everybody, those chosen in this browser, and those of the filter. */
export function shownFacets(query) {
  const own = JSON.parse(localStorage.getItem(KEY) ?? "[]");
  const filtered = [...query.keys()].filter(key => OTHERS.includes(key) || /^(property|label)\./.test(key));
  return [...new Set([...FACETS, ...own, ...filtered])];
}

/** A choice of further facets: rule, cluster, and every property and label that the results have. */
export function facetChoice(query, keys, draw) {
  const shown = shownFacets(query);
  const left = [...OTHERS, ...keys].filter(name => !shown.includes(name));
  return h("select", { "aria-label": "Add a facet", onchange: event => {
    localStorage.setItem(KEY, JSON.stringify([...shown.filter(name => !FACETS.includes(name)), event.target.value]));
    draw();
  } }, h("option", { value: "" }, "Add a facet…"), left.map(name => h("option", { value: name }, name)));
}

/** Go to the same page with other parameters; empty ones are left out. */
export function change(page, query, changes) {
  const next = new URLSearchParams(query);
  for (const [key, value] of Object.entries(changes)) {
    if (value) next.set(key, value);
    else next.delete(key);
  }
  next.delete("cursor");
  const text = next.toString();
  location.hash = `#/${page}${text ? `?${text}` : ""}`;
}

/** The address of results with a filter. */
export function resultsHref(filter) {
  return `#/results?${new URLSearchParams(Object.entries(filter).map(([key, value]) => [key, value || "-"]))}`;
}

/** Search box and chosen filters, each of which a click takes away. */
export function searchBox(page, query) {
  const field = h("input", { type: "search", name: "search", placeholder: "Search", "aria-label": "Search", value: query.get("search") ?? "" });
  const chips = [...query.entries()].filter(([key]) => key !== "search" && key !== "order").map(([key, value]) =>
    h("button", { type: "button", "aria-label": `Remove filter ${key} ${value}`, onclick: () => change(page, query, { [key]: "" }) }, `${key}: ${value} ×`));
  return h("form.tools", { role: "search", onsubmit: event => { event.preventDefault(); change(page, query, { search: field.value }); } },
    field, h("button", {}, "Search"), h("div.chips", {}, chips));
}

/** Check boxes of every facet; a check changes the address. */
export function facetForm(page, query, facets) {
  return h("form.facets", { "aria-label": "Filters" }, shownFacets(query).filter(name => facets[name]?.length).map(name => {
    const chosen = (query.get(name) ?? "").split(",").filter(Boolean);
    return h("fieldset", {}, h("legend", {}, name), facets[name].slice(0, 12).map(({ value, count }) => {
      const word = value || "-";
      return h("label", {},
        h("input", {
          type: "checkbox", checked: chosen.includes(word),
          onchange: event => change(page, query, {
            [name]: (event.target.checked ? [...chosen, word] : chosen.filter(each => each !== word)).join(","),
          }),
        }), h("span", {}, value || "(none)"), h("span", {}, count.toLocaleString()));
    }));
  }));
}

export { fill };
