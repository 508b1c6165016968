/** Pushes random streams, cut anywhere, into the ZMTP state machine and judges what it does. */
import { zmtpFrameOverheadBytes } from "../../../../src/protocols/zeromq/zmtp/zmtp_limits.ts";
import { nullSecurityMechanism } from "../../../../src/protocols/zeromq/zmtp/null_mechanism.ts";
import { ZmtpError } from "../../../../src/protocols/zeromq/zmtp/zmtp_error.ts";
import { ZmtpPeer } from "../../../../src/protocols/zeromq/zmtp/zmtp_peer.ts";
import { fuzzLimits, pick, randomStream, type Stream } from "./stream.ts";

export interface FuzzFigures {
  streams: number;
  frames: number;
  messages: number;
  /** Streams that ended with a protocol error, by its reason. */
  errors: Record<string, number>;
  /** The most that one connection has held, in bytes. */
  heldBytesMax: number;
}

/** Beyond the limits: the room for a body that has only been announced, and for one that grows. */
const heldBytesMax = 2 * fuzzLimits.messageBytesMax + fuzzLimits.framesMax * zmtpFrameOverheadBytes +
  fuzzLimits.commandBytesMax + (64 << 10);

/** Throws with a sentence at the first thing that is not as it should be. */
export function runFuzz({ random, frames }: { readonly random: () => number; readonly frames: number }): FuzzFigures {
  const figures: FuzzFigures = { streams: 0, frames: 0, messages: 0, errors: {}, heldBytesMax: 0 };
  while (figures.frames < frames) {
    const stream = randomStream({ random, frames: 2 + pick(random, 200) });
    runStream(stream, random, figures);
    figures.streams++;
    figures.frames += stream.frames;
  }
  return figures;
}

function runStream({ bytes, messages: expected }: Stream, random: () => number, figures: FuzzFigures): void {
  const messages: Uint8Array[][] = [];
  const stops = random() < 0.2;
  const peer = new ZmtpPeer({
    socketType: "DEALER",
    identity: new Uint8Array(0),
    mechanism: nullSecurityMechanism,
    limits: fuzzLimits,
  }, {
    onReady: () => ({ prefix: null, wantsMore: true }),
    onMessage: (frames) => messages.push(frames) > 0 && !stops,
    onPing: () => true,
  });
  const chunkBytesMax = random() < 0.3 ? 8 : random() < 0.5 ? 300 : 65_536;
  let sentBytes = 0;
  let error: ZmtpError | null = null;
  for (let from = 0; from < bytes.length && error === null;) {
    const to = Math.min(bytes.length, from + 1 + pick(random, chunkBytesMax));
    const chunk = bytes.slice(from, to);
    error = pushAll(peer, chunk);
    chunk.fill(0xee); // its owner may use it again
    from = to;
    figures.heldBytesMax = Math.max(figures.heldBytesMax, peer.heldBytes);
    sentBytes += peer.output.pendingBytes;
    peer.output.flush(() => false);
  }
  figures.messages += messages.length;
  if (error !== null) figures.errors[error.reason] = (figures.errors[error.reason] ?? 0) + 1;
  if (expected !== null) judge(error, messages, expected);
  if (peer.heldBytes > heldBytesMax) throw new Error(`A connection holds ${peer.heldBytes} bytes`);
  // Greeting, READY, ERROR, and no answer longer than what it answers.
  if (sentBytes > 64 + 300 + bytes.length) throw new Error(`${bytes.length} bytes were answered with ${sentBytes}`);
}

/** The error that ended it; anything else that is thrown gets through. */
function pushAll(peer: ZmtpPeer, chunk: Uint8Array): ZmtpError | null {
  try {
    for (let at = 0; at < chunk.length;) {
      const next = peer.push(chunk, at);
      if (next <= at) throw new Error(`Nothing was taken of ${chunk.length - at} bytes`);
      at = next;
    }
    return null;
  } catch (error) {
    if (error instanceof ZmtpError) return error;
    throw error;
  }
}

function judge(error: ZmtpError | null, messages: Uint8Array[][], expected: readonly (readonly Uint8Array[])[]): void {
  if (error !== null) throw new Error(`A proper stream ended: ${error.message}`, { cause: error });
  if (messages.length !== expected.length) throw new Error(`${messages.length} of ${expected.length} messages came`);
  for (const [index, frames] of expected.entries()) {
    const got = messages[index] as Uint8Array[];
    const same = got.length === frames.length &&
      frames.every((body, at) => Buffer.compare(body, got[at] as Uint8Array) === 0);
    if (!same) throw new Error(`Message ${index} came with other bytes`);
  }
}
