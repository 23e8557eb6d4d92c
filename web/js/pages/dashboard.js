/** What is wrong now, how it went, and where most of it is. */

import { get, listen } from "../api.js";
import { fill, h, meter, status, STATUSES, table } from "../dom.js";
import { resultsHref } from "../filters.js";
import { trendChart } from "../trend.js";
import { viewList } from "../views.js";

export async function show(main) {
  const views = await viewList();
  async function draw() {
    const [byNamespace, byPolicy, bySeverity, trend] = await Promise.all([
      get("summary", { by: "namespace" }), get("summary", { by: "policy" }), get("summary", { by: "severity" }), get("trend", { days: "30" }),
    ]);
    fill(main, h("h1", {}, "Dashboard"),
      h("ul.tiles", {}, STATUSES.map(name => h("li", {}, h("a", { href: resultsHref({ status: name }) },
        h("strong", {}, byNamespace.summary[name].toLocaleString()), status(name))))),
      h("h2", {}, "Last 30 days"), trendChart(trend),
      h("div.columns", {},
        groups("Policies with most problems", "policy", byPolicy.groups),
        groups("Namespaces with most problems", "namespace", byNamespace.groups),
        groups("Severities", "severity", bySeverity.groups), views));
  }
  await draw();
  return listen(draw);
}

function groups(caption, field, rows) {
  return h("section", {}, h("h2", {}, caption),
    table(caption, [field, "fail", "warn", "share"], rows.slice(0, 10).map(row => [
      h("a", { href: resultsHref({ [field]: row.name }) }, row.name === "-" ? "(none)" : row.name),
      row.fail + row.error, row.warn, meter(row),
    ]), [1, 2]));
}
