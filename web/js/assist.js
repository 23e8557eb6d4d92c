/** Help while a text is written: completions below the cursor, and documentation of the word under the pointer. */

import { post } from "./api.js";
import { fill, h } from "./dom.js";

const LINE_HEIGHT = 19.5;
const PADDING = 8;
const PAUSE = 150;
const HOVER_PAUSE = 400;
let count = 0;

/** Line (from 1) and column (from 0) of an offset, in characters. */
function placeOf(text, offset) {
  const before = text.slice(0, offset);
  const start = before.lastIndexOf("\n") + 1;
  return { line: before.split("\n").length, column: [...before.slice(start)].length };
}

/**
 * Add help to a text field.
 *
 * @param {HTMLTextAreaElement} area
 * @param {HTMLElement} frame what scrolls the field
 * @param {HTMLElement} host the positioned element around the frame, over whose edges a list may reach
 * @param {() => Record<string, string>} context further texts of the request
 * @param {() => void} changed
 */
export function assist(area, frame, host, context, changed) {
  const id = `completions-${++count}`;
  const list = h("ul.completions", { id, role: "listbox", "aria-label": "Completions", hidden: true });
  const about = h("div.about", { role: "tooltip", hidden: true });
  host.append(list, about);
  frame.addEventListener("scroll", () => { if (!list.hidden) placeList(); });
  area.setAttribute("aria-autocomplete", "list");
  area.setAttribute("aria-controls", id);
  let items = [];
  let start = 0;
  let line = 0;
  let chosen = 0;
  let timer = null;
  let asked = 0;

  function place(element, line, column) {
    // style-src forbids attributes, not the object model
    const own = area.getBoundingClientRect();
    const around = host.getBoundingClientRect();
    const left = own.left - around.left + PADDING + column * letterWidth(area) - area.scrollLeft;
    element.style.top = `${own.top - around.top + PADDING + line * LINE_HEIGHT}px`;
    element.style.left = `${Math.max(0, Math.min(left, around.width - element.offsetWidth))}px`;
  }

  function close() {
    clearTimeout(timer);
    asked++;
    list.hidden = true;
    about.hidden = true;
    items = [];
    area.removeAttribute("aria-activedescendant");
  }

  async function ask(path, at) {
    const own = ++asked;
    try {
      const found = await post(path, { ...context(), text: area.value, line: at.line, column: at.column });
      return own === asked ? found : null;
    } catch {
      return null; // the review shows what is wrong
    }
  }

  async function complete() {
    if (area.selectionStart !== area.selectionEnd) return close();
    const at = placeOf(area.value, area.selectionStart);
    const found = await ask("complete", at);
    if (!found || document.activeElement !== area) return;
    items = found.items.slice(0, 50);
    if (!items.length) return close();
    start = found.start;
    line = at.line;
    chosen = 0;
    list.hidden = false;
    draw();
    placeList();
  }

  function placeList() {
    place(list, line, start);
  }

  function draw() {
    fill(list, items.map((each, index) => h("li", {
      id: `${id}-${index}`, role: "option", "aria-selected": String(index === chosen),
      onmousedown: event => { event.preventDefault(); chosen = index; accept(); },
    }, h("span", {}, each.label), " ", h("small", {}, each.detail))), items[chosen].text ? h("li.text", { role: "presentation" }, items[chosen].text) : null);
    area.setAttribute("aria-activedescendant", `${id}-${chosen}`);
    list.children[chosen].scrollIntoView({ block: "nearest" });
  }

  function accept() {
    const { insert } = items[chosen];
    const before = area.value.slice(0, area.selectionStart);
    const line = before.slice(before.lastIndexOf("\n") + 1);
    const from = before.length - [...line].slice(start).join("").length;
    area.setRangeText(insert, from, area.selectionStart, "end");
    close();
    changed();
  }

  async function describe(at, shown = at) {
    if (!list.hidden) return;
    const found = await ask("hover", at);
    if (!found?.title) { about.hidden = true; return; }
    fill(about, h("strong", {}, found.title), found.detail ? h("code", {}, found.detail) : null, found.text ? h("p", {}, found.text) : null);
    about.hidden = false;
    place(about, shown.line, shown.column);
  }

  area.addEventListener("input", event => {
    about.hidden = true;
    clearTimeout(timer);
    const isTyped = event.inputType === "insertText" && /[\w.({\- ]/.test(event.data ?? "");
    if (isTyped || (!list.hidden && event.inputType === "deleteContentBackward")) timer = setTimeout(complete, PAUSE);
    else close();
  });
  area.addEventListener("keydown", event => {
    if (event.ctrlKey && event.key === " ") { event.preventDefault(); complete(); return; }
    if (event.ctrlKey && event.key.toLowerCase() === "i") { event.preventDefault(); describe(placeOf(area.value, area.selectionStart)); return; }
    if (event.key === "Escape" && !(list.hidden && about.hidden)) { event.preventDefault(); event.stopImmediatePropagation(); close(); return; }
    if (list.hidden) return;
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      chosen = (chosen + (event.key === "ArrowDown" ? 1 : items.length - 1)) % items.length;
      draw();
    } else if (event.key === "Enter" || event.key === "Tab") {
      event.preventDefault();
      event.stopImmediatePropagation();
      accept();
    } else if (["ArrowLeft", "ArrowRight", "Home", "End"].includes(event.key)) close();
  });
  area.addEventListener("blur", close);
  area.addEventListener("pointermove", event => {
    if (event.pointerType !== "mouse" || !list.hidden) return;
    clearTimeout(timer);
    timer = setTimeout(() => {
      const line = Math.floor((event.offsetY - PADDING) / LINE_HEIGHT) + 1;
      const column = Math.floor((event.offsetX - PADDING + area.scrollLeft) / letterWidth(area));
      const text = area.value.split("\n")[line - 1] ?? "";
      if (column >= 0 && column < text.length && text[column].trim()) describe({ line, column });
      else about.hidden = true;
    }, HOVER_PAUSE);
  });
  area.addEventListener("pointerleave", () => { clearTimeout(timer); about.hidden = true; });
}

/** The width of a letter in a field of one width for all. */
function letterWidth(area) {
  const pen = document.createElement("canvas").getContext("2d");
  pen.font = getComputedStyle(area).font;
  return pen.measureText("0".repeat(100)).width / 100;
}
