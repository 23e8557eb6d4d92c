/** Every policy with its results by status; one policy with its results, history, and its text as the clusters have it. */

import { get } from "../api.js";
import { fill, h, table } from "../dom.js";
import { showGroups } from "../groups.js";

export function show(main, here) {
  const canAsk = document.documentElement.dataset.features?.split(" ").includes("cluster");
  return showGroups(main, here, { page: "policies", field: "policy", title: "Policies", about: canAsk ? about : null });
}

/** What the clusters say of a policy; it is asked once, and stays when results change. */
function about(key) {
  const place = h("section", { "aria-label": "The policy" }, h("p.note", {}, "Asking the cluster…"));
  describe(place, key);
  return place;
}

async function describe(place, key) {
  try {
    const { items, problems } = await get(`policies/${key.split("/").map(encodeURIComponent).join("/")}`);
    fill(place, problems.map(text => h("p", { role: "alert" }, text)), items.map(policy => [
      h("h2", {}, `${policy.title ?? policy.name} (${policy.kind}, ${policy.cluster})`),
      policy.description ? h("p", {}, policy.description) : null,
      h("p.note", {}, [policy.category, policy.severity && `severity ${policy.severity}`, policy.created && `since ${new Date(policy.created).toLocaleDateString()}`].filter(Boolean).join(" · ")),
      policy.kinds.length ? h("p", {}, `Matches ${policy.kinds.join(", ")}.`) : h("p", {}, "It matches no kind that this cluster serves."),
      policy.conditions.length ? table("Conditions", ["type", "status", "reason", "message"], policy.conditions.map(each => [each.type, each.status, each.reason, each.message])) : null,
      policy.exceptions.length ? h("p", {}, "Exceptions: ", policy.exceptions.map(each => [h("a", { href: "#/exceptions" }, [each.namespace, each.name].filter(Boolean).join("/")), " "])) : h("p", {}, "There is no exception for it."),
      h("details", { open: true }, h("summary", {}, "Text"), h("pre", { tabindex: "0" }, policy.text)),
    ]), items.length || problems.length ? null : h("p", {}, "No cluster has this policy now."));
  } catch (error) {
    fill(place, h("p", { role: "alert" }, String(error.message ?? error)));
  }
}
