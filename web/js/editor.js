/** A text field with line numbers, and marks on lines. */

import { fill, h } from "./dom.js";

/**
 * @param {string} title
 * @param {string} text
 * @param {(text: string) => void} changed
 */
export function editor(title, text, changed) {
  const numbers = h("ol", { "aria-hidden": "true" });
  const area = h("textarea.code", { "aria-label": title, spellcheck: "false", autocapitalize: "off", rows: "12", oninput: () => { layOut(); changed(area.value); } });
  const list = h("ul", {});
  let marks = [];

  function layOut() {
    const lines = area.value.split("\n").length;
    area.rows = Math.max(12, lines + 1);
    const byLine = new Map(marks.map(mark => [mark.line, mark]));
    fill(numbers, Array.from({ length: lines }, (_, index) => {
      const mark = byLine.get(index + 1);
      return h(mark ? `li.${mark.kind}` : "li", { title: mark?.text }, `${mark ? "● " : ""}${index + 1}`);
    }));
  }

  function set(value) {
    area.value = value;
    marks = [];
    layOut();
    changed(value);
  }

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
    element: h("section", {}, h("h2", {}, title), h("div.editor", {}, numbers, area), list),
    set,
    mark(found) {
      marks = found;
      layOut();
    },
  };
}
