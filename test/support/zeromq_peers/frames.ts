/** Frames as the tests write them, and the labels by which received ones are compared. The drivers share the rules. */
import { createHash } from "node:crypto";
import type { Frame } from "./peer_protocol.ts";

/** Longer frames are compared by size and hash. */
const labelBytesMax = 1024;

/** Of a pattern; a prime, so that no power of two divides it and a piece that moved is seen. */
const blockBytes = 251;

/** The frame's octets. A pattern's octet i is (7 · (i mod 251) + seed) mod 256. */
export function frameBytes(frame: Frame): Uint8Array {
  if (typeof frame === "string") return Buffer.from(frame, "latin1");
  const block = Uint8Array.from({ length: blockBytes }, (_, at) => at * 7 + frame.seed);
  return Buffer.alloc(frame.size, block);
}

/** A short frame is its own label, as text of octets; a long one has its size and hash. */
export function label(frame: Uint8Array): string {
  if (frame.byteLength <= labelBytesMax) return Buffer.from(frame).toString("latin1");
  return `${frame.byteLength} bytes, sha256 ${createHash("sha256").update(frame).digest("hex").slice(0, 16)}`;
}

/** What `receive` says of these frames. */
export function labels(frames: readonly Frame[]): string[] {
  return frames.map((frame) => label(frameBytes(frame)));
}

/** The message with a number, counted from 0, at the start of its last frame. */
export function numberedMessage(frames: readonly Uint8Array[], number: number): Uint8Array[] {
  const last = frames.at(-1) ?? new Uint8Array();
  const digits = Buffer.from(`${number} `, "latin1");
  return [...frames.slice(0, -1), Buffer.concat([digits, last])];
}
