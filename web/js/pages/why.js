/** Why a result is what it is: policy and object as the cluster has them now, and a draft of an exception. */

import { get } from "../api.js";
import { fill, h, status, table } from "../dom.js";
import { explanation } from "../explain.js";
import { toFragment } from "../share.js";

export async function show(main, { rest }) {
  const result = await get(`results/${rest[0]}`);
  const { resource } = result;
  const answer = h("div", { role: "status", "aria-busy": "true" }, "Asking the cluster…");
  fill(main, h("h1", {}, "Why?"),
    h("p", {}, status(result.status), " ", h("a", { href: `#/policies/${encodeURIComponent(result.policy)}` }, result.policy), result.rule ? ` / ${result.rule}` : "",
      " · ", h("a", { href: `#/resources/${result.resourceId}` }, [resource?.namespace, resource?.kind, resource?.name].filter(Boolean).join("/") || "-")),
    h("p.message", {}, result.message ?? ""), answer);
  try {
    const found = await get(`results/${rest[0]}/explanation`);
    fill(answer, await explained(found, result));
  } catch (error) {
    fill(answer, h("p", { role: "alert" }, String(error.message ?? error)));
  }
  answer.removeAttribute("aria-busy");
}

async function explained(found, result) {
  const texts = { policies: lines("policies", found.policies), resources: lines("resources", found.resources) };
  const goTo = ({ input, line }) => {
    const row = texts[input]?.children[line - 1];
    document.querySelectorAll(".numbered .current").forEach(each => each.classList.remove("current"));
    row?.classList.add("current");
    row?.scrollIntoView({ block: "center" });
  };
  const own = found.rules.filter(each => each.policy === result.policy && each.rule === result.rule && each.matched && !each.isOld);
  const chosen = own.length ? own : found.rules;
  const address = `#/playground/${await toFragment({ policies: found.policies, resources: found.resources })}`;
  return [
    chosen.length ? chosen.map(rule => [h("h2", {}, `${rule.policy}${rule.rule ? ` / ${rule.rule}` : ""}`),
      explanation(rule.lines, goTo),
      rule.change?.length ? [h("h3", {}, "Smallest change"), explanation(rule.change, goTo)] : null])
      : h("p", {}, "The policy has no rule for this object any more."),
    h("p.tools", {}, h("a.button", { href: address }, "Open in the playground"), ["fail", "warn"].includes(result.status) ? draftButton(result) : null),
    h("div.pair", {},
      h("section", {}, h("h2", {}, "Policy"), texts.policies),
      h("section", {}, h("h2", {}, "Object"), texts.resources)),
  ];
}

function lines(name, text) {
  return h("pre.numbered", { tabindex: "0", "aria-label": name }, text.replace(/\n$/, "").split("\n").map(line => h("span.line", {}, `${line}\n`)));
}

function draftButton(result) {
  const place = h("div", { role: "status" });
  const button = h("button", {
    type: "button", onclick: async () => {
      button.disabled = true;
      try {
        const found = await get(`results/${result.id}/exception`);
        fill(place, h("h2", {}, "Draft of an exception"),
          h("p.note", {}, "It is for this object and rule only. Write the reason into it before it is applied."),
          h("pre", { tabindex: "0" }, found.exception),
          table("Effect", ["policy", "rule", "without", "with"], found.before.map((each, index) => [
            each.policy, each.rule, status(each.status), found.after[index] ? status(found.after[index].status) : "-"])));
      } catch (error) {
        fill(place, h("p", { role: "alert" }, String(error.message ?? error)));
      }
      button.disabled = false;
    },
  }, "Draft an exception");
  return [button, place];
}
