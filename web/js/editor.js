/** A text field with line numbers, and marks on lines. */

import { assist } from "./assist.js";
import { fill, h } from "./dom.js";

/**
 * @param {string} title
 * @param {string} text
 * @param {(text: string) => void} changed
 * @param {(() => Record<string, string>) | null} [context] with it, the server helps to write; see `assist`
 */
export function editor(title, text, changed, context = null) {
  const numbers = h("ol", { "aria-hidden": "true" });
  const area = h("textarea.code", { "aria-label": title, spellcheck: "false", autocapitalize: "off", rows: "12", oninput: () => { layOut(); changed(area.value); } });
  let marks = [];

  function layOut() {
    const lines = area.value.split("\n").length;
    area.rows = Math.max(12, lines + 1);
    const byLine = Map.groupBy(marks, mark => mark.line);
    fill(numbers, Array.from({ length: lines }, (_, index) => {
      const own = byLine.get(index + 1) ?? [];
      const kind = own.find(mark => mark.kind !== "note")?.kind ?? "note";
      return h(own.length ? `li.${kind}` : "li", { title: own.map(mark => mark.text).join("\n") || null }, `${own.length ? "● " : ""}${index + 1}`);
    }));
  }

  function set(value) {
    area.value = value;
    marks = [];
    layOut();
    changed(value);
  }

  const frame = h("div.editor", {}, numbers, area);
  // its keys come first: with a list of completions, Tab and Escape belong to the list
  const element = h("section.writing", {}, h("h2", {}, title), frame);
  if (context) assist(area, frame, element, context, () => { layOut(); changed(area.value); });
  area.addEventListener("keydown", event => {
    // Tab indents; Escape before it leaves the field as everywhere else
    if (event.key === "Escape") area.dataset.leave = "yes";
    else if (event.key === "Tab" && !event.shiftKey && !area.dataset.leave) {
      event.preventDefault();
      area.setRangeText("  ", area.selectionStart, area.selectionEnd, "end");
      layOut();
      changed(area.value);
    }
  });
  area.addEventListener("focus", () => delete area.dataset.leave);
  area.value = text;
  layOut();
  return {
    element,
    set,
    /** Put the cursor at a line, and the line into view. */
    goTo(line) {
      const start = area.value.split("\n").slice(0, line - 1).reduce((sum, each) => sum + each.length + 1, 0);
      const end = area.value.indexOf("\n", start);
      area.focus();
      area.setSelectionRange(start, end < 0 ? area.value.length : end);
      numbers.children[line - 1]?.scrollIntoView({ block: "center" });
    },
    mark(found) {
      marks = found;
      layOut();
    },
  };
}
