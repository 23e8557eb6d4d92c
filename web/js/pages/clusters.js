/** Every cluster with its results by status; one cluster with its results and history. */

import { showGroups } from "../groups.js";

export function show(main, here) {
  return showGroups(main, here, { page: "clusters", field: "cluster", title: "Clusters" });
}
