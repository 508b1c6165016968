/** A list of topics, in the body of PERIODIC and of the response to TOPICS: encoded names separated by blanks. */
import { bodyBytesMax } from "./message_limits.ts";
import { decodeNameToken, encodeNameToken } from "./name_token.ts";

const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/**
 * Encodes a list of topics. Throws RangeError for a name that no header can contain, and for a list that is too long
 * for a body.
 */
export function encodeTopicList(topics: Iterable<string>): Uint8Array {
  const bytes = new TextEncoder().encode(Array.from(topics, encodeNameToken).join(" "));
  if (bytes.byteLength > bodyBytesMax) throw new RangeError(`A list of topics has ${bytes.byteLength} bytes`);
  return bytes;
}

/** Decodes a list of topics. Returns undefined for an invalid list. */
export function decodeTopicList(body: Uint8Array | undefined): string[] | undefined {
  if (body === undefined || body.byteLength === 0) return [];
  const topics: string[] = [];
  try {
    for (const word of decoder.decode(body).split(" ")) {
      const topic = decodeNameToken(word);
      if (topic === undefined) return undefined;
      topics.push(topic);
    }
  } catch {
    return undefined;
  }
  return topics;
}
