/**
 * Tells two bodies apart: 53 bits, of which 32 are CRC-32 and 21 a multiplicative hash. It decides whether a publisher that
 * uses a counter again says the same; whoever makes two bodies collide on purpose loses a message of its own.
 */
import { crc32 } from "node:zlib";

const seed = 0x9747b28c;

/** A whole number from 0 to 2^53 - 1. */
export function fingerprintOf(body: Uint8Array): number {
  const words = body.byteLength >>> 2;
  let hash = seed ^ body.byteLength;
  const view = new DataView(body.buffer, body.byteOffset, body.byteLength);
  for (let word = 0; word < words; word++) hash = mix(hash, view.getUint32(word * 4, true));
  for (let at = words * 4; at < body.byteLength; at++) hash = mix(hash, view.getUint8(at));
  hash ^= hash >>> 16;
  hash = Math.imul(hash, 0x85ebca6b);
  hash ^= hash >>> 13;
  return (hash & 0x1fffff) * 2 ** 32 + crc32(body);
}

function mix(hash: number, word: number): number {
  const mixed = hash ^ Math.imul(word, 0xcc9e2d51);
  return Math.imul((mixed << 13) | (mixed >>> 19), 5) + 0x6b64e6b5 | 0;
}
