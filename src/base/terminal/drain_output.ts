/**
 * Writes the output that waits for its reader, while the process continues to work. Loaded only when a pipe or a
 * terminal is full, and for outputs that cannot be opened a second time.
 */
import { fstatSync, readFileSync, write, writeSync } from "node:fs";
import { errnoName } from "../errors.ts";
import { type Libc, loadLibc } from "../process/libc.ts";
import { countWithNoun } from "../support/text.ts";
import {
  isTerminal,
  type NonBlockingWrite,
  outputBurstPiecesMax,
  outputPieceBytesMax,
  reopenOutputWriter,
} from "./output_writer.ts";

/** The fields of an OutputChannel that this module uses. */
interface WaitingOutput {
  readonly fd: number;
  readonly waiting: Uint8Array[];
  lost: number;
  writeNow: NonBlockingWrite | null | undefined;
}

/**
 * The pause before baton tries to write to a full output again, in milliseconds. The pause grows while the reader takes
 * nothing.
 */
const fullMs = { first: 1, max: 50 };

/** Writes everything that waits. If messages were lost, then writes how many. Rejects with system errors. */
export async function drainOutput(output: WaitingOutput): Promise<void> {
  output.writeNow ??= await nonBlockingWriter(output.fd);
  const writePiece = output.writeNow ?? await threadWriter(output.fd);
  let pauseMs = fullMs.first;
  for (let pieces = 1; output.waiting.length > 0; pieces++) {
    const [first = new Uint8Array()] = output.waiting;
    const taken = await writePiece(first);
    if (taken === 0) await pause(pauseMs);
    else if (pieces % outputBurstPiecesMax === 0) await pause(0);
    pauseMs = taken === 0 ? Math.min(fullMs.max, pauseMs * 2) : fullMs.first;
    if (output.waiting[0] !== first) continue; // it was dropped while this code waited
    if (taken < first.length) output.waiting[0] = first.subarray(taken);
    else output.waiting.shift();
    if (output.waiting.length === 0 && output.lost > 0) {
      output.waiting.push(Buffer.from(lostMessagesNotice(output.lost)));
      output.lost = 0;
    }
  }
}

export function lostMessagesNotice(count: number): string {
  return `baton: ${countWithNoun(count, "message was", "messages were")} lost here: stderr was full\n`;
}

/** Returns a writer that does not block. Returns null if writing blocks, so that only another thread can write. */
async function nonBlockingWriter(fd: number): Promise<NonBlockingWrite | null> {
  if (isTerminal(fd)) return isControllingTerminal(fd) ? reopenOutputWriter("/dev/tty") : null;
  const libc = fstatSync(fd).isSocket() ? await loadLibc() : null;
  return libc === null ? null : socketWriter(fd, libc);
}

/**
 * Returns true if `fd` is the controlling terminal. Every user may open the controlling terminal as /dev/tty, even
 * after su, when the device belongs to another user.
 */
function isControllingTerminal(fd: number): boolean {
  try {
    const [, terminal = ""] = /\) \S+ \d+ \d+ \d+ (\d+) /.exec(readFileSync("/proc/self/stat", "latin1")) ?? [];
    return Number(terminal) === fstatSync(fd).rdev;
  } catch {
    return false; // no /proc
  }
}

function socketWriter(fd: number, libc: Libc): NonBlockingWrite {
  return (bytes) => {
    const piece = bytes.subarray(0, outputPieceBytesMax);
    const sent = libc.sendNow(fd, piece);
    if (sent >= 0) return sent;
    return libc.waitWritable(fd, 0) ? writeSync(fd, piece) : 0; // throws the error
  };
}

/**
 * Returns a writer that writes in one of the runtime's few threads. It writes only as much as a pipe takes immediately,
 * so that the thread does not block.
 */
async function threadWriter(fd: number): Promise<(bytes: Uint8Array) => Promise<number>> {
  const libc = await loadLibc();
  return async (bytes) => {
    if (libc?.waitWritable(fd, 0) === false) return 0;
    const length = Math.min(bytes.length, outputPieceBytesMax);
    return await new Promise((resolve, reject) => {
      write(fd, bytes, 0, length, null, (error, count) => {
        if (error === null) resolve(count);
        else if (errnoName(error) === "EAGAIN") resolve(0);
        else reject(error);
      });
    });
  };
}

function pause(milliseconds: number): Promise<void> {
  return new Promise((resolve) => void setTimeout(resolve, milliseconds));
}
