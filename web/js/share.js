/** Share links: the texts, compressed, in the fragment of the address, which no server gets to see. */

async function pipe(bytes, stream) {
  return new Uint8Array(await new Response(new Blob([bytes]).stream().pipeThrough(stream)).arrayBuffer());
}

/** @param {Record<string, string>} state */
export async function toFragment(state) {
  const kept = Object.fromEntries(Object.entries(state).filter(([, value]) => value));
  const bytes = await pipe(new TextEncoder().encode(JSON.stringify(kept)), new CompressionStream("deflate-raw"));
  let text = "";
  for (const byte of bytes) text += String.fromCharCode(byte);
  return btoa(text).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

/** @param {string} text */
export async function fromFragment(text) {
  try {
    const bytes = Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), each => each.charCodeAt(0));
    const found = JSON.parse(new TextDecoder().decode(await pipe(bytes, new DecompressionStream("deflate-raw"))));
    return Object.fromEntries(Object.entries(found).filter(([, value]) => typeof value === "string"));
  } catch {
    throw new Error("the link is damaged: it may have been cut");
  }
}
