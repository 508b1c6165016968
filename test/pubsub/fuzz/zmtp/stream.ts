/** A random ZMTP connection as its peer would write it, and what the peer did wrong in it, if anything. */
import { command, frame, greeting, join, ready, text } from "../../../support/zmtp_bytes.ts";

export interface Stream {
  readonly bytes: Uint8Array;
  /** Frames that were written into it. */
  readonly frames: number;
  /** What has to come out of it; null where bytes were changed afterwards and anything may. */
  readonly messages: readonly (readonly Uint8Array[])[] | null;
}

/** Limits of the side under test; some of what is written goes over them. */
export const fuzzLimits = { messageBytesMax: 4096, framesMax: 8, commandBytesMax: 512 };

export interface StreamOptions {
  readonly random: () => number;
  /** About how many frames. */
  readonly frames: number;
}

type Tamper = (bytes: Uint8Array, random: () => number) => Uint8Array;

const tampers: readonly Tamper[] = [
  (bytes, random) => {
    const changed = bytes.slice();
    for (let times = 1 + random() * 4; times > 0; times--) changed[pick(random, bytes.length)] = random() * 256;
    return changed;
  },
  (bytes, random) => bytes.slice(0, pick(random, bytes.length)),
  (bytes, random) => join([bytes.slice(0, pick(random, bytes.length)), noise(random, 300)]),
  (bytes, random) => {
    const from = pick(random, bytes.length);
    return join([bytes.slice(0, from), bytes.slice(from + pick(random, 20))]);
  },
  (_bytes, random) => noise(random, 500),
];

export function randomStream({ random, frames }: StreamOptions): Stream {
  const parts = [greeting({ minor: pick(random, 3) }), ready(random() < 0.5 ? "ROUTER" : "DEALER", noise(random, 20))];
  const messages: Uint8Array[][] = [];
  let count = 1;
  while (count < frames) {
    if (random() < 0.1) {
      parts.push(command(random() < 0.8 ? "PING" : "SUBSCRIBE", noise(random, 20, 2)));
      count++;
      continue;
    }
    const message = randomMessage(random);
    messages.push(message);
    message.forEach((body, index) => {
      parts.push(frame(index < message.length - 1 ? 1 : 0, body, random() < 0.2 ? true : undefined));
      count++;
      // As libzmq does.
      if (index < message.length - 1 && random() < 0.02) parts.push(command("PING", text("\0\0")));
    });
  }
  const bytes = join(parts);
  const tamper = random() < 0.5 ? tampers[pick(random, tampers.length)] : undefined;
  if (tamper === undefined) return { bytes, frames: count, messages };
  return { bytes: tamper(bytes, random), frames: count, messages: null };
}

/** Within the limits: 8 frames of up to 500 bytes. */
function randomMessage(random: () => number): Uint8Array[] {
  const frames = random() < 0.6 ? 1 : 1 + pick(random, fuzzLimits.framesMax);
  return Array.from({ length: frames }, () => noise(random, random() < 0.7 ? 40 : 500));
}

export function pick(random: () => number, count: number): number {
  return Math.floor(random() * count);
}

function noise(random: () => number, lengthMax: number, lengthMin = 0): Uint8Array {
  const bytes = new Uint8Array(lengthMin + pick(random, lengthMax - lengthMin + 1));
  // Mostly small numbers: they are flags and lengths where a reader has lost its place.
  const range = random() < 0.5 ? 8 : 256;
  for (let at = 0; at < bytes.length; at++) bytes[at] = random() * range;
  return bytes;
}
