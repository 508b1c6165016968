/**
 * Where a holder is asked to give its lock back: a file without a name, in memory, that the two of them write and read
 * through /proc. It is gone with the holder, nobody has to clean it up, and only who may look into the holder's process may
 * open it. Bytes of the file:
 *
 *      0   baton-hold ID            whose it is
 *    256   one line of JSON         the request, by whoever releases
 *   2048   one line of JSON         the holder's answer to the request of that id
 */
import { closeSync, constants, readSync, writeSync } from "node:fs";
import process from "node:process";
import { BatonError, messageOf } from "../../errors.ts";
import { openThroughProc } from "../spawn/open_through_proc.ts";
import { openUnnamedFile } from "../spawn/unnamed_file.ts";
import type { ScriptProcess } from "./script_process.ts";

export interface ReleaseRequest {
  /** Random; the answer names it. */
  readonly id: string;
  /** Who asks. */
  readonly asking: ScriptProcess;
  /** End first what was started under the lock and still runs. */
  readonly sweeps: boolean;
}

export interface ReleaseAnswer {
  readonly id: string;
  /**
   * `released`: durably. `unknown`: no server has answered. `unswept`: something could not be ended, and the lock is held
   * on. Else it was over before: lost, taken back, out of time; the script is being stopped.
   */
  readonly result: "released" | "unknown" | "unswept" | "lost" | "revoked" | "time_limit";
  /** Processes that were started under the lock and run, and how many more there are. */
  readonly running: readonly { readonly pid: number; readonly command: string }[];
  readonly more: number;
}

const requestAt = 256;
const answerAt = 2048;
const requestBytesMax = answerAt - requestAt;
const answerBytesMax = 64 * 1024;
/** Taken at once: a release must not fail because the memory for files is full by then. What 20 command lines need, and more. */
const roomBytes = 8192;

/** The holder's side. */
export class ReleaseBox implements Disposable {
  readonly #fd: number;
  #answered = "";
  #isClosed = false;

  private constructor(fd: number) {
    this.#fd = fd;
  }

  /** Throws CANNOT_CREATE where there can be no such file. */
  static open(holderId: string): ReleaseBox {
    const content = new Uint8Array(roomBytes);
    content.set(new TextEncoder().encode(ownerLine(holderId)));
    const fd = openUnnamedFile(content);
    if (fd === null) {
      const why = "no such files there, full, or ulimit -f";
      throw new BatonError(
        "CANNOT_CREATE",
        `Neither /dev/shm nor /tmp takes a file without a name of ${roomBytes} bytes, which baton hold needs: ${why}`,
      );
    }
    return new ReleaseBox(fd);
  }

  /** As long as this process lives. */
  get path(): string {
    return `/proc/${process.pid}/fd/${this.#fd}`;
  }

  /** A request without an answer yet; each is given once. */
  next(): ReleaseRequest | null {
    if (this.#isClosed) return null;
    const request = readJson(this.#fd, requestAt, requestBytesMax) as ReleaseRequest | null;
    if (request === null || request.id === this.#answered) return null;
    this.#answered = request.id;
    return request;
  }

  /** Nothing once it is closed: the number may be another file's. */
  answer(answer: ReleaseAnswer): void {
    if (!this.#isClosed) writeAt(this.#fd, JSON.stringify(answer) + "\n", answerAt);
  }

  [Symbol.dispose](): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    closeSync(this.#fd);
  }
}

/** The side of whoever asks. It stays readable when the holder has ended. */
export class ReleaseDoor implements Disposable {
  readonly #fd: number;
  /** The holder's process, as the path says. */
  readonly holderPid: number;

  private constructor(fd: number, path: string) {
    this.#fd = fd;
    this.holderPid = Number(path.split("/")[2]);
  }

  /** Null when the holder is gone, or has released. Throws REFUSED when it is another user's. */
  static open(path: string, holderId: string): ReleaseDoor | null {
    let fd: number | null;
    try {
      fd = openThroughProc(path, constants.O_RDWR);
    } catch (error) {
      throw new BatonError("REFUSED", `Cannot ask the holder at ${path}: ${messageOf(error)}`, { cause: error });
    }
    if (fd === null) return null;
    const door = new ReleaseDoor(fd, path);
    if (door.#isOf(holderId)) return door;
    door[Symbol.dispose]();
    return null;
  }

  /** What cannot be read is no holder's. */
  #isOf(holderId: string): boolean {
    const owner = ownerLine(holderId);
    try {
      return readText(this.#fd, 0, owner.length) === owner && this.answer()?.result !== "released";
    } catch {
      return false;
    }
  }

  ask(request: ReleaseRequest): void {
    writeAt(this.#fd, JSON.stringify(request) + "\n", requestAt);
  }

  /** The last one, to whosever request; null when there is none, or it is just being written. */
  answer(): ReleaseAnswer | null {
    return readJson(this.#fd, answerAt, answerBytesMax) as ReleaseAnswer | null;
  }

  [Symbol.dispose](): void {
    closeSync(this.#fd);
  }
}

function ownerLine(holderId: string): string {
  return `baton-hold ${holderId}\n`;
}

/** As bytes: Deno writes a text where the file happens to stand. */
function writeAt(fd: number, text: string, at: number): void {
  const bytes = new TextEncoder().encode(text);
  writeSync(fd, bytes, 0, bytes.length, at);
}

function readText(fd: number, at: number, bytesMax: number): string {
  const bytes = Buffer.alloc(bytesMax);
  return bytes.toString("utf8", 0, readSync(fd, bytes, 0, bytesMax, at));
}

/** What is written over a longer line leaves the end of that one behind its own. */
function readJson(fd: number, at: number, bytesMax: number): unknown {
  const text = readText(fd, at, bytesMax);
  const end = text.indexOf("\n");
  if (end <= 0) return null;
  try {
    return JSON.parse(text.slice(0, end));
  } catch {
    return null; // half of it is there
  }
}
