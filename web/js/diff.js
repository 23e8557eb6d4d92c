/** Two texts line by line: what went and what came. */

import { h } from "./dom.js";

const MOST = 2000;

/** @param {string} before @param {string} after */
export function diff(before, after) {
  const old = before.split("\n"), now = after.split("\n");
  if (old.length > MOST || now.length > MOST) return h("pre", {}, after);
  // lengths of the longest common subsequences, from the end
  const width = now.length + 1;
  const lengths = new Uint16Array((old.length + 1) * width);
  for (let i = old.length - 1; i >= 0; i--) {
    for (let j = now.length - 1; j >= 0; j--) {
      lengths[i * width + j] = old[i] === now[j] ? lengths[(i + 1) * width + j + 1] + 1 : Math.max(lengths[(i + 1) * width + j], lengths[i * width + j + 1]);
    }
  }
  const lines = [];
  let i = 0, j = 0;
  while (i < old.length || j < now.length) {
    if (i < old.length && j < now.length && old[i] === now[j]) { lines.push(`  ${old[i]}\n`); i++; j++; }
    else if (i < old.length && (j === now.length || lengths[(i + 1) * width + j] >= lengths[i * width + j + 1])) lines.push(h("del", {}, `- ${old[i++]}`));
    else lines.push(h("ins", {}, `+ ${now[j++]}`));
  }
  return h("pre.diff", {}, lines);
}
