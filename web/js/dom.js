/** Elements from data. Text always becomes text: nothing here reads markup, so nothing in a report can become any. */

/**
 * @param {string} name tag, with classes after dots: `td.number`
 * @param {Record<string, any>} [properties] `on…` adds a listener; null and false leave an attribute out
 * @param {...any} children elements, texts, lists of them; null and false are left out
 * @returns {HTMLElement}
 */
export function h(name, properties = {}, ...children) {
  const [tag, ...classes] = name.split(".");
  const element = document.createElement(tag);
  element.classList.add(...classes);
  for (const [key, value] of Object.entries(properties)) {
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (value === true) element.setAttribute(key, "");
    else if (value !== null && value !== undefined && value !== false) element.setAttribute(key, String(value));
  }
  element.append(...children.flat(Infinity).filter(child => child !== null && child !== undefined && child !== false));
  return element;
}

/** Put new children in the place of the old ones. */
export function fill(element, ...children) {
  element.replaceChildren(...children.flat(Infinity).filter(child => child !== null && child !== undefined && child !== false));
  return element;
}

export const STATUSES = ["fail", "error", "warn", "skip", "pass"];
const SYMBOLS = { fail: "✖", error: "⚠", warn: "▲", skip: "○", pass: "✔" };

/** A status as symbol and word. */
export function status(name) {
  return h(`span.status.${name === "skip" ? "skip-status" : name}`, {}, `${SYMBOLS[name] ?? "?"} ${name}`);
}

/** A bar with the share of each status. */
export function meter(counts) {
  const total = STATUSES.reduce((sum, name) => sum + (counts[name] ?? 0), 0);
  const text = STATUSES.map(name => `${counts[name] ?? 0} ${name}`).join(", ");
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("viewBox", "0 0 100 1");
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", text);
  let left = 0;
  for (const name of STATUSES) {
    const width = total ? (100 * (counts[name] ?? 0)) / total : 0;
    const part = document.createElementNS("http://www.w3.org/2000/svg", "rect");
    part.setAttribute("x", String(left));
    part.setAttribute("width", String(width));
    part.setAttribute("height", "1");
    part.setAttribute("fill", `var(--${name})`);
    svg.append(part);
    left += width;
  }
  return h("div.meter", { title: text }, svg);
}

/**
 * A table with caption and headers; `numbers` are the columns of numbers.
 *
 * On small screens each row is a card whose cells show their header: the roles keep it a table for screen readers.
 */
export function table(caption, headers, rows, numbers = []) {
  const name = (tag, index) => (numbers.includes(index) ? `${tag}.number` : tag);
  return h("div.table", { tabindex: "0", role: "region", "aria-label": caption },
    h("table", { role: "table" },
      h("caption.note", {}, caption),
      h("thead", { role: "rowgroup" }, h("tr", { role: "row" }, headers.map((title, index) =>
        h(name("th", index), { scope: "col", role: "columnheader" }, title)))),
      h("tbody", { role: "rowgroup" }, rows.map(cells => h("tr", { role: "row" }, cells.map((content, index) => {
        const cell = content instanceof HTMLTableCellElement ? content : h(name("td", index), {}, content);
        cell.setAttribute("role", "cell");
        cell.dataset.header = headers[index];
        return cell;
      }))))));
}
