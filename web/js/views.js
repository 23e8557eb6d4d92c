/** Views: filters with names. Those of the server are for everybody, those saved here are kept in this browser. */

import { get, post } from "./api.js";
import { fill, h } from "./dom.js";

const KEY = "views";

/** @returns {Record<string, string>} */
function ownViews() {
  try {
    const found = JSON.parse(localStorage.getItem(KEY) ?? "{}");
    return found && typeof found === "object" && !Array.isArray(found) ? found : {};
  } catch {
    return {};
  }
}

function keepView(name, query) {
  const next = { ...ownViews(), [name]: query };
  if (query === null) delete next[name];
  localStorage.setItem(KEY, JSON.stringify(next));
}

/** A view of this browser is a filter of results, or an address of resources before its `?`. */
function link(name, query, page = "results") {
  return h("a", { href: `#/${page}${query ? `?${query}` : ""}` }, name);
}

/** Page and filter of a view of this browser. */
function parts(kept) {
  return kept.startsWith("resources?") ? ["resources", kept.slice("resources?".length)] : ["results", kept];
}

/** A section with every view, and the import of boards. */
export async function viewList() {
  const shared = await get("views");
  const place = h("section", { "aria-label": "Views" });
  const message = h("p", { role: "status" });
  const text = h("textarea.code", { "aria-label": "Views or boards", rows: "3", placeholder: "Views, or a CustomBoard of Policy Reporter, as YAML" });

  async function bringIn() {
    try {
      const { items } = await post("views", { text: text.value });
      for (const each of items) keepView(each.name, each.page === "resources" ? `resources?${each.query}` : each.query);
      fill(message, [`${items.length} saved.`, ...items.flatMap(each => each.notes.map(note => `${each.name}: ${note}.`))].join(" "));
      text.value = "";
      draw();
    } catch (error) {
      fill(message, String(error.message ?? error));
    }
  }

  function draw() {
    const own = ownViews();
    fill(place, h("h2", {}, "Views"),
      h("ul.saved", {},
        shared.items.map(each => h("li", {}, link(each.name, each.query, each.page))),
        Object.keys(own).sort().map(name => h("li", {}, link(name, ...parts(own[name]).reverse()), " ",
          h("button.quiet", { type: "button", "aria-label": `Delete ${name}`, onclick: () => { keepView(name, null); draw(); } }, "×")))),
      h("details", {}, h("summary", {}, "Import"),
        h("form", { onsubmit: event => { event.preventDefault(); bringIn(); } }, text, h("div.tools", {}, h("button", {}, "Import")))), message);
  }
  draw();
  return place;
}

/** A form that saves the filter of a page. */
export function saveForm(query) {
  const name = h("input", { "aria-label": "Name of the view", placeholder: "Name", required: true, maxlength: "100" });
  const message = h("span", { role: "status" });
  return h("form.tools", { onsubmit: event => {
    event.preventDefault();
    const kept = new URLSearchParams([...query].filter(([key]) => key !== "cursor"));
    keepView(name.value, kept.toString());
    fill(message, `Saved as ${name.value}.`);
    name.value = "";
  } }, name, h("button", {}, "Save view"), message);
}
