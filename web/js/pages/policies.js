/** Every policy with its results by status; one policy with its results and history. */

import { showGroups } from "../groups.js";

export function show(main, here) {
  return showGroups(main, here, { page: "policies", field: "policy", title: "Policies" });
}
