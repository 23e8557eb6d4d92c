/** Where notifications go, and what became of them; addresses and secrets stay on the server. */

import { get, listen } from "../api.js";
import { fill, h, table } from "../dom.js";

export async function show(main) {
  async function draw() {
    const { items } = await get("targets");
    fill(main, h("h1", {}, "Targets"),
      h("p.note", {}, "Changes of results are sent here. ", h("code", {}, "pyverno ui test-target NAME"), " sends a sample."),
      items.length ? table("Targets", ["target", "type", "when", "resolved", "sent", "failed", "dropped", "last error"], items.map(each => [
        each.name, each.type, when(each), each.resolved ? "sent" : "not sent",
        count(each.sent), count(each.failed), count(each.dropped), each.problem || "none",
      ]), [4, 5, 6]) : h("p", {}, "There are no targets."));
  }
  await draw();
  return listen(draw);
}

function when({ digestSeconds, groupBy }) {
  const digest = digestSeconds ? `every ${digestSeconds} s` : "at once";
  return groupBy ? `${digest}, by ${groupBy}` : digest;
}

/** Counts are left out for those who do not see every namespace. */
function count(number) {
  return number === undefined ? "–" : number.toLocaleString();
}
