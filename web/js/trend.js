/** Problems over time as a line for each status, with the figures as a table for those who cannot see it. */

import { h, table } from "./dom.js";

const SHOWN = ["fail", "error", "warn"];
const WIDTH = 800;
const HEIGHT = 140;

/** @param {{day: string}[]} days */
export function trendChart(days) {
  const most = Math.max(1, ...days.flatMap(day => SHOWN.map(name => day[name])));
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("viewBox", `0 0 ${WIDTH} ${HEIGHT}`);
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", `Problems from ${days[0].day} to ${days.at(-1).day}, at most ${most}`);
  const step = days.length > 1 ? WIDTH / (days.length - 1) : 0;
  for (const name of SHOWN) {
    const points = days.map((day, index) => [index * step, HEIGHT - 4 - (day[name] / most) * (HEIGHT - 12)]);
    const line = document.createElementNS("http://www.w3.org/2000/svg", "path");
    const path = points.map(([x, y], index) => `${index ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join("");
    line.setAttribute("d", days.length > 1 ? path : `M0 ${points[0][1]}L${WIDTH} ${points[0][1]}`);
    line.setAttribute("fill", "none");
    line.setAttribute("stroke", `var(--${name})`);
    line.setAttribute("stroke-width", "2");
    svg.append(line);
  }
  const figures = table("Open problems at the end of each day", ["day", ...SHOWN], days.map(day => [day.day, ...SHOWN.map(name => day[name])]), [1, 2, 3]);
  return h("figure", {}, svg, h("details", {}, h("summary", {}, "Figures"), figures));
}
