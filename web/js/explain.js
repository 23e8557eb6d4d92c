/** Explanations: the lines of a rule as a tree, each leading to its place in a text. */

import { h } from "./dom.js";

/**
 * @param {{depth: number, text: string, word: string, place: {input: string, line: number} | null}[]} lines
 * @param {(place: {input: string, line: number}) => void} goTo
 */
export function explanation(lines, goTo) {
  return h("ul.lines", {}, lines.map(({ depth, text, word, place }) =>
    h(`li.depth-${Math.min(depth, 8)}`, {},
      h(WORDS.has(word) ? `span.${word === "skip" ? "skip-status" : word}` : "span", {}, text),
      place ? [" ", h("button.place", { type: "button", "aria-label": `${place.input}:${place.line}: go to line ${place.line} of ${place.input}`, onclick: () => goTo(place) }, `${place.input}:${place.line}`)] : null)));
}

const WORDS = new Set(["fail", "error", "warn", "skip", "pass"]);

/** The rule of a result among the explained ones. */
export function ruleOf(rules, { policy, rule }) {
  return rules?.find(each => each.policy === policy && each.rule === rule && each.matched && !each.isOld);
}

/** Marks for the lines that an explanation names: places with their texts. */
export function marksOf(lines) {
  return lines.filter(line => line.place).map(line => ({ ...line.place, kind: line.word || "note", text: line.text }));
}
