/**
 * Computes the fingerprint of a message's body. The fingerprint shows whether a put with a known counter is a
 * duplicate. It consists of 32 bits of a CRC-32 and 21 bits of a multiplicative hash. A publisher that causes a
 * collision on purpose loses only its own message.
 */
import { crc32 } from "node:zlib";

const seed = 0x9747b28c;
/** The largest buffer of which the last view is kept, in bytes. It is kept because many bodies share one buffer. */
const keptBytesMax = 1 << 20;
let lastView: DataView = new DataView(new ArrayBuffer(0));

/** Returns the fingerprint of a body: an integer from 0 to 2^53 - 1. */
export function fingerprintMessage(body: Uint8Array): number {
  const words = body.byteLength >>> 2;
  let hash = seed ^ body.byteLength;
  const view = viewOf(body.buffer);
  const start = body.byteOffset;
  for (let word = 0; word < words; word++) hash = mix(hash, view.getUint32(start + word * 4, true));
  for (let at = words * 4; at < body.byteLength; at++) hash = mix(hash, view.getUint8(start + at));
  hash ^= hash >>> 16;
  hash = Math.imul(hash, 0x85ebca6b);
  hash ^= hash >>> 13;
  return (hash & 0x1fffff) * 2 ** 32 + crc32(body);
}

function viewOf(buffer: ArrayBufferLike): DataView {
  if (lastView.buffer === buffer) return lastView;
  const view = new DataView(buffer);
  if (buffer.byteLength <= keptBytesMax) lastView = view;
  return view;
}

function mix(hash: number, word: number): number {
  const mixed = hash ^ Math.imul(word, 0xcc9e2d51);
  return Math.imul((mixed << 13) | (mixed >>> 19), 5) + 0x6b64e6b5 | 0;
}
