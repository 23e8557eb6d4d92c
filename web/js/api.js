/** The server's API; addresses are relative, so that a proxy may serve the pages below any path. */

async function read(response) {
  const body = await response.json().catch(() => ({ error: `the server answered ${response.status}` }));
  if (!response.ok) throw new Error(body.error ?? `the server answered ${response.status}`);
  return body;
}

/** @param {string} path @param {URLSearchParams | Record<string, string>} [query] */
export async function get(path, query = {}) {
  const text = new URLSearchParams(query).toString();
  return read(await fetch(`api/v1/${path}${text ? `?${text}` : ""}`));
}

async function send(path, body) {
  const response = await fetch(`api/v1/${path}`, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
  return response.ok ? response : read(response);
}

/** @param {string} path @param {any} body */
export async function post(path, body) {
  return read(await send(path, body));
}

/** @param {string} path @param {any} body @returns {Promise<Blob>} */
export async function postForFile(path, body) {
  return (await send(path, body)).blob();
}

/** Call back whenever results change; returns what ends it. */
export function listen(changed) {
  const source = new EventSource("api/v1/events");
  source.addEventListener("results", changed);
  return () => source.close();
}
