/** Pages about the values of one field: all of them, or one with its results. */

import { get, listen } from "./api.js";
import { fill, h, meter, STATUSES, table } from "./dom.js";
import { searchBox } from "./filters.js";
import { resultTable } from "./pages/results.js";
import { trendChart } from "./trend.js";

/** @param {{page: string, field: string, title: string, about?: ((name: string) => HTMLElement) | null}} what `about` describes one value */
export async function showGroups(main, { rest, query }, { page, field, title, about }) {
  let described = null;
  async function drawAll() {
    const found = await get("summary", new URLSearchParams([...query, ["by", field]]));
    fill(main, h("h1", {}, title), searchBox(page, query),
      table(title, [field, ...STATUSES, "share"], found.groups.map(row => [
        h("a", { href: `#/${page}/${encodeURIComponent(row.name)}` }, row.name === "-" ? "(none)" : row.name),
        ...STATUSES.map(name => row[name]), meter(row)]), [1, 2, 3, 4, 5]));
  }
  async function drawOne(name) {
    const filter = { [field]: name };
    const [results, other, trend] = await Promise.all([
      get("results", filter), get("summary", { ...filter, by: field === "policy" ? "namespace" : "policy" }), get("trend", { ...filter, days: "30" }),
    ]);
    const second = field === "policy" ? "namespace" : "policy";
    fill(main, h("h1", {}, name === "-" ? `No ${field}` : name), h("p", {}, h("a", { href: `#/${page}` }, `All ${title.toLowerCase()}`), " · ",
      h("a", { href: `#/results?${new URLSearchParams(filter)}` }, "All results and filters")),
      h("h2", {}, "Last 30 days"), trendChart(trend),
      table(`By ${second}`, [second, ...STATUSES, "share"], other.groups.slice(0, 20).map(row => [
        h("a", { href: `#/results?${new URLSearchParams({ ...filter, [second]: row.name })}` }, row.name === "-" ? "(none)" : row.name),
        ...STATUSES.map(each => row[each]), meter(row)]), [1, 2, 3, 4, 5]),
      h("h2", {}, "Results"), resultTable(results.items),
      name === "-" ? null : described ??= about?.(name) ?? null);
  }
  const draw = () => (rest.length ? drawOne(rest.join("/")) : drawAll());
  await draw();
  return listen(draw);
}
