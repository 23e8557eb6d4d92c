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

let known;

/** Note the number of the latest change before what a page shows is loaded. */
export function begin(number) {
  known = number;
}

/** Call back whenever results change, and when they did before the connection was there; returns what ends it. */
export function listen(changed) {
  const source = new EventSource("api/v1/events");
  const update = number => {
    if (number === known) return;
    known = number;
    changed();
  };
  source.addEventListener("results", event => update(JSON.parse(event.data).number));
  source.addEventListener("open", async () => {
    const config = await get("config").catch(() => null);
    if (config && source.readyState === EventSource.OPEN) update(config.number);
  });
  return () => source.close();
}
