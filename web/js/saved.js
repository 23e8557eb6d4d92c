/** Named states of the playground, kept in this browser. */

const KEY = "playground.saved";

/** @returns {Record<string, Record<string, string>>} */
export function savedStates() {
  try {
    const found = JSON.parse(localStorage.getItem(KEY) ?? "{}");
    return found && typeof found === "object" && !Array.isArray(found) ? found : {};
  } catch {
    return {};
  }
}

/** Keep a state under a name; without a state the name is forgotten. */
export function keepState(name, state) {
  const next = { ...savedStates(), [name]: state };
  if (!state) delete next[name];
  localStorage.setItem(KEY, JSON.stringify(next));
}
