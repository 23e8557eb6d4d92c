/** Controls of the playground that bring texts in and keep them: saved states, and files and links of others. */

import { post } from "./api.js";
import { fill, h } from "./dom.js";
import { keepState, savedStates } from "./saved.js";

/**
 * @param {() => Record<string, string>} current the texts on the screen
 * @param {(state: Record<string, string>, notes: string[]) => void} load
 */
export function storedStates(current, load) {
  const message = h("p", { role: "status" });
  const list = h("ul.saved", {});
  const name = h("input", { "aria-label": "Name", placeholder: "Name", required: true, maxlength: "100" });
  const text = h("textarea.code", { "aria-label": "Link or file", rows: "3", placeholder: "A link of Kyverno's playground, or the text of its export file" });
  const file = h("input", { type: "file", "aria-label": "File", accept: ".yaml,.yml,.json,.txt", onchange: async () => {
    const chosen = file.files[0];
    if (!chosen) return;
    text.value = await chosen.text();
    await bringIn();
  } });

  function draw() {
    const states = savedStates();
    fill(list, Object.keys(states).sort().map(each => h("li", {},
      h("button", { type: "button", onclick: () => load(states[each], []) }, each), " ",
      h("button.quiet", { type: "button", "aria-label": `Delete ${each}`, onclick: () => { keepState(each, null); draw(); } }, "×"))));
  }

  async function bringIn() {
    const own = ownState(text.value);
    try {
      const { profiles } = own ? { profiles: [{ state: own, notes: [] }] } : await post("import", { text: text.value });
      if (profiles.length > 1) for (const each of profiles) keepState(each.name, each.state);
      if (profiles.length) load(profiles[0].state, profiles[0].notes);
      fill(message, profiles.length > 1 ? `${profiles.length} states are saved.` : profiles.length ? "" : "The file holds nothing.");
      draw();
    } catch (error) {
      fill(message, error.message);
    }
  }

  draw();
  return h("section.columns", { hidden: true, "aria-label": "Saved and imported" },
    h("div", {}, h("h2", {}, "Saved in this browser"),
      h("form.tools", { onsubmit: event => { event.preventDefault(); keepState(name.value, current()); draw(); } }, name, h("button", {}, "Save")), list),
    h("div", {}, h("h2", {}, "Import"),
      h("form", { onsubmit: event => { event.preventDefault(); bringIn(); } }, text, h("div.tools", {}, h("button", {}, "Import"), file)), message));
}

/** The state of a file that this playground wrote; null for anything else. */
function ownState(text) {
  try {
    const found = JSON.parse(text);
    if (typeof found.policies !== "string") return null;
    return Object.fromEntries(Object.entries(found).filter(([, value]) => typeof value === "string"));
  } catch {
    return null;
  }
}
