/** Every namespace with its results by status; one namespace with its results and history. */

import { showGroups } from "../groups.js";

export function show(main, here) {
  return showGroups(main, here, { page: "namespaces", field: "namespace", title: "Namespaces" });
}
