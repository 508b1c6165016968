/** Joins several messages into one value of a row, because one row per message costs ten times as much. Pure. */
import { ByteReader, ByteWriter } from "../bytes.ts";

export interface JoinedBodies {
  /** Lengths of the messages, 32 bits each, big-endian; null if there is only one. */
  readonly lengths: Uint8Array | null;
  readonly bytes: Uint8Array;
}

/** Joins bodies. A single body is not copied. */
export function joinBodies(bodies: readonly Uint8Array[]): JoinedBodies {
  const [first] = bodies;
  if (first !== undefined && bodies.length === 1) return { lengths: null, bytes: first };
  const lengths = new ByteWriter(4 * bodies.length);
  let sum = 0;
  for (const { byteLength } of bodies) {
    lengths.i32(byteLength);
    sum += byteLength;
  }
  const bytes = new Uint8Array(sum);
  let at = 0;
  for (const body of bodies) {
    bytes.set(body, at);
    at += body.byteLength;
  }
  return { lengths: lengths.finish(), bytes };
}

/** Returns views of `bytes`. Throws PROTOCOL if the lengths do not match. */
export function splitBodies({ lengths, bytes }: JoinedBodies): Uint8Array[] {
  if (lengths === null) return [bytes];
  const reader = new ByteReader(lengths);
  const content = new ByteReader(bytes);
  const bodies: Uint8Array[] = [];
  while (reader.remaining > 0) bodies.push(content.view(reader.i32()));
  content.end();
  return bodies;
}
