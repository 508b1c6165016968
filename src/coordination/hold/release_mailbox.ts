/**
 * The file through which a holder process is asked to release its lock. It has no name and is in memory; both sides
 * read and write it through /proc. It ends with the holder, so that nothing is left to clean up, and only processes
 * that may inspect the holder may open it. Contents:
 *
 *      0   baton-hold ID            the holder's id
 *    128   script PID TICKS         the script's process
 *    256   one line of JSON         the last request
 *   2048   one line of JSON         the holder's response to the request of that id
 */
import { closeSync, constants, readSync, writeSync } from "node:fs";
import process from "node:process";
import { BatonError, errorReason } from "../../base/errors.ts";
import { openThroughProc, openUnnamedFile } from "../../base/process/spawn/unnamed_file.ts";
import type { ScriptProcess } from "./script_process.ts";

export interface HolderReleaseRequest {
  /** Random; the response repeats it. */
  readonly id: string;
  readonly requester: ScriptProcess;
  /** Stop the processes first that were started under the lock and still run. */
  readonly stopsProcesses: boolean;
}

export interface HolderReleaseResponse {
  readonly id: string;
  /**
   * `released`: durably. `unknown`: no server has responded. `not_stopped`: a process could not be stopped, and the
   * lock is still held. Otherwise the hold had ended before (lost, revoked, time limit), and the script is being
   * stopped.
   */
  readonly result: "released" | "unknown" | "not_stopped" | "lost" | "revoked" | "time_limit";
  /** Processes that were started under the lock and still run, and the number of those that are not listed. */
  readonly running: readonly { readonly pid: number; readonly command: string }[];
  readonly more: number;
}

const scriptOffset = 128;
const requestOffset = 256;
const responseOffset = 2048;
const requestBytesMax = responseOffset - requestOffset;
const responseBytesMax = 64 * 1024;
/**
 * Allocated when the file is made, so that a release does not fail because memory for files is full. Enough for 20
 * command lines.
 */
const fileBytes = 8192;

/** The holder's side. */
export type OwnHolderMailbox = Pick<HolderReleaseMailbox, "path" | "nextRequest" | "respond" | typeof Symbol.dispose>;

export class HolderReleaseMailbox implements Disposable {
  readonly #fd: number;
  /** Valid while this process lives. */
  readonly path: string;
  #lastRequestId = "";
  #isClosed = false;

  private constructor(fd: number) {
    this.#fd = fd;
    this.path = `/proc/${process.pid}/fd/${fd}`;
  }

  /** Throws CANNOT_CREATE where no such file can be made. */
  static open(holderId: string, script: ScriptProcess): HolderReleaseMailbox {
    const content = new Uint8Array(fileBytes);
    content.set(new TextEncoder().encode(ownerLine(holderId)));
    content.set(new TextEncoder().encode(`script ${script.pid} ${script.startTicks}\n`), scriptOffset);
    const fd = openUnnamedFile(content);
    if (fd === null) {
      throw new BatonError(
        "CANNOT_CREATE",
        `Cannot create the unnamed file of ${fileBytes} bytes that baton hold needs, neither in /dev/shm nor ` +
          "in /tmp: no O_TMPFILE there, disk full, or ulimit -f",
      );
    }
    return new HolderReleaseMailbox(fd);
  }

  /** The request that has no response yet, or null; each is returned once. */
  nextRequest(): HolderReleaseRequest | null {
    if (this.#isClosed) return null;
    const request = readJson(this.#fd, requestOffset, requestBytesMax) as HolderReleaseRequest | null;
    if (request === null || request.id === this.#lastRequestId) return null;
    this.#lastRequestId = request.id;
    return request;
  }

  /** Does nothing after it was closed: the descriptor's number may be another file's. */
  respond(response: HolderReleaseResponse): void {
    if (!this.#isClosed) writeAt(this.#fd, JSON.stringify(response) + "\n", responseOffset);
  }

  [Symbol.dispose](): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    closeSync(this.#fd);
  }
}

/** The requester's side. It stays readable when the holder has ended. */
export class HolderReleaseClient implements Disposable {
  readonly #fd: number;
  /** The holder process, from the path. */
  readonly holderPid: number;

  private constructor(fd: number, path: string) {
    this.#fd = fd;
    this.holderPid = Number(path.split("/")[2]);
  }

  /** Null when the holder has ended or released. Throws REFUSED when it is another user's. */
  static open(path: string, holderId: string): HolderReleaseClient | null {
    let fd: number | null;
    try {
      fd = openThroughProc(path, constants.O_RDWR);
    } catch (error) {
      throw new BatonError("REFUSED", `Cannot send a request to the holder process at ${path}: ${errorReason(error)}`, {
        cause: error,
      });
    }
    if (fd === null) return null;
    const client = new HolderReleaseClient(fd, path);
    if (client.#belongsTo(holderId)) return client;
    client[Symbol.dispose]();
    return null;
  }

  /** False also for a file that cannot be read. */
  #belongsTo(holderId: string): boolean {
    const owner = ownerLine(holderId);
    try {
      return readText(this.#fd, 0, owner.length) === owner && this.readResponse()?.result !== "released";
    } catch {
      return false;
    }
  }

  send(request: HolderReleaseRequest): void {
    writeAt(this.#fd, JSON.stringify(request) + "\n", requestOffset);
  }

  /** The last response, to any requester; null when there is none, or it is only partly written. */
  readResponse(): HolderReleaseResponse | null {
    return readJson(this.#fd, responseOffset, responseBytesMax) as HolderReleaseResponse | null;
  }

  [Symbol.dispose](): void {
    closeSync(this.#fd);
  }
}

/** The owner and the script of a mailbox; null for another file. */
export function readMailboxOwner(path: string): { readonly id: string; readonly script: ScriptProcess } | null {
  let fd: number | null = null;
  try {
    fd = openThroughProc(path, constants.O_RDONLY);
    if (fd === null) return null;
    const [, id] = /^baton-hold ([0-9a-f]+)\n/.exec(readText(fd, 0, scriptOffset)) ?? [];
    const [, pid, ticks] = /^script (\d+) (\d+)\n/.exec(readText(fd, scriptOffset, requestOffset - scriptOffset)) ?? [];
    return id === undefined || pid === undefined
      ? null
      : { id, script: { pid: Number(pid), startTicks: Number(ticks) } };
  } catch {
    return null; // another user's
  } finally {
    if (fd !== null) closeSync(fd);
  }
}

function ownerLine(holderId: string): string {
  return `baton-hold ${holderId}\n`;
}

/** Writes bytes, not a string: Deno writes a string at the file's current position. */
function writeAt(fd: number, text: string, offset: number): void {
  const bytes = new TextEncoder().encode(text);
  writeSync(fd, bytes, 0, bytes.length, offset);
}

function readText(fd: number, offset: number, bytesMax: number): string {
  const bytes = Buffer.alloc(bytesMax);
  return bytes.toString("utf8", 0, readSync(fd, bytes, 0, bytesMax, offset));
}

/** Reads up to the first line end: the rest of a longer, older line may follow it. */
function readJson(fd: number, offset: number, bytesMax: number): unknown {
  const text = readText(fd, offset, bytesMax);
  const end = text.indexOf("\n");
  if (end <= 0) return null;
  try {
    return JSON.parse(text.slice(0, end));
  } catch {
    return null; // only partly written
  }
}
