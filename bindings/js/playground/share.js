// Input of the page as the fragment of its address. Browsers do not send fragments anywhere.

/** Most characters of the JSON text in a link, also when it is unpacked. */
const LONGEST = 4_200_000;

/** Marks of the form: compressed, or plain where the browser cannot compress. */
const PACKED = "1=";
const PLAIN = "0=";

/** Fragment of a value, with its `#`. */
export async function fragmentOf(value) {
  const bytes = new TextEncoder().encode(JSON.stringify(value));
  if (typeof CompressionStream === "undefined") return `#${PLAIN}${encode(bytes)}`;
  const stream = new Blob([bytes]).stream().pipeThrough(new CompressionStream("deflate-raw"));
  return `#${PACKED}${encode(new Uint8Array(await new Response(stream).arrayBuffer()))}`;
}

/** Value of a fragment; `null` if it has none, or one that is malformed or unpacks to too much. */
export async function valueOf(fragment) {
  const form = fragment.slice(1, 3);
  if (form !== PACKED && form !== PLAIN) return null;
  try {
    const bytes = decode(fragment.slice(3));
    const text = new TextDecoder().decode(form === PACKED ? await unpack(bytes) : bytes);
    const value = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value) ? value : null;
  } catch {
    return null;
  }
}

/** Decompresses at most `LONGEST` characters of up to three bytes; throws above. */
async function unpack(bytes) {
  const reader = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw")).getReader();
  const parts = [];
  let size = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return new Uint8Array(await new Blob(parts).arrayBuffer());
    size += value.length;
    if (size > LONGEST * 3) {
      await reader.cancel();
      throw new RangeError("the link unpacks to too much");
    }
    parts.push(value);
  }
}

/** Base64 for addresses. */
function encode(bytes) {
  let binary = "";
  for (let start = 0; start < bytes.length; start += 32_768) {
    binary += String.fromCharCode(...bytes.subarray(start, start + 32_768));
  }
  return btoa(binary).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}

function decode(text) {
  const binary = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
  return Uint8Array.from(binary, (letter) => letter.charCodeAt(0));
}
