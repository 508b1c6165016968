/**
 * The Unix socket through which `baton release` asks a holder process to release its lock. The socket is in a folder of
 * mode 0700, and its name identifies the holder process and the script:
 *
 *   /tmp/baton-hold-UID/HOLDER.TICKS-SCRIPT.TICKS-ID      pids with start times as in /proc/PID/stat, and the holder ID
 *
 * A requester sends one line of JSON and receives one. A killed holder process leaves the file behind, and the next
 * holder process removes it.
 */
import { lstatSync, mkdirSync, readdirSync, rmSync } from "node:fs";
import { basename } from "node:path";
import process from "node:process";
import { BatonError, errnoName, systemCallErrorReason } from "../../base/errors.ts";
import { isSameProcessAlive, type ProcessIdentity, readProcess } from "../../base/process/proc/process_table.ts";
import type { Connection } from "../../base/sockets/connection.ts";
import { dial } from "../../base/sockets/dial.ts";
import { listen } from "../../base/sockets/listen.ts";
import { type Clock, systemClock } from "../../base/support/clock.ts";
import { deadlineAfter } from "../../base/support/deadline.ts";
import { processSystem } from "../../base/support/own_process.ts";

export interface HolderReleaseRequest {
  readonly requester: ProcessIdentity;
  /** If true, first stops the processes that were started under the lock and still run. */
  readonly stopsProcesses: boolean;
}

export interface HolderReleaseResponse {
  /**
   * `released`: the servers have confirmed the release. `unknown`: no server has responded. `not_stopped`: a process
   * could not be stopped, and the lock is still held. The other values tell how the hold had already ended; the script
   * is being stopped.
   */
  readonly result: "released" | "unknown" | "not_stopped" | "lost" | "revoked" | "time_limit";
  /** The processes that were started under the lock and still run. If there are many, the others are only counted. */
  readonly running: readonly { readonly pid: number; readonly command: string }[];
  readonly more: number;
}

/** A request to a holder process, which responds once. */
export interface ReceivedReleaseRequest extends HolderReleaseRequest {
  respond(response: HolderReleaseResponse): void;
}

/** The holder process's socket. Disposing of it also removes the file. */
export interface OwnReleaseSocket extends Disposable {
  readonly path: string;
}

export type OpenReleaseSocket = (
  owner: { readonly holderId: string; readonly script: ProcessIdentity },
  onRequest: (request: ReceivedReleaseRequest) => void,
) => Promise<OwnReleaseSocket>;

/** The folders in which the sockets' folder may be. All other temporary folders are cleared when the user logs out. */
const places = ["/tmp", "/var/tmp"];

/** The longest line, in bytes: far more than 20 command lines. */
const lineBytesMax = 64 * 1024;

/** The most requesters at the same time. */
const connectionsMax = 100;

/** Listens for requests, and removes the files of killed holder processes. Throws CANNOT_CREATE. */
export const openReleaseSocket: OpenReleaseSocket = async ({ holderId, script }, onRequest) => {
  const folder = makeFolder();
  const { pid } = processSystem;
  const ticks = readProcess(pid)?.startTicks ?? 0;
  const path = `${folder}/${pid}.${ticks}-${script.pid}.${script.startTicks}-${holderId}`;
  let open = 0;
  const accept = (connection: Connection) => {
    if (++open > connectionsMax) connection.destroy();
    const onLine = (line: string) => {
      const request = parseLine<HolderReleaseRequest>(line);
      if (request === null) return connection.destroy();
      onRequest({ ...request, respond: (response) => sendLine(connection, response) });
    };
    return { onData: lineReader(onLine, () => connection.destroy()), onClosed: () => void open-- };
  };
  try {
    await removeLeftFiles(folder);
    const listener = await listen({ kind: "unix", path }, accept);
    return {
      path,
      [Symbol.dispose]() {
        void listener.close();
        rmSync(path, { force: true });
      },
    };
  } catch (error) {
    throw cannotCreate(`Cannot listen at ${path}: ${systemCallErrorReason(error)}`, error);
  }
};

/** The owner of a socket, as its path identifies it. */
export interface ReleaseSocketOwner {
  readonly holder: ProcessIdentity;
  readonly script: ProcessIdentity;
  readonly id: string;
}

/** Parses the path of a release socket. Returns null for other paths. */
export function parseReleaseSocketPath(path: string): ReleaseSocketOwner | null {
  const [, pid, ticks, scriptPid, scriptTicks, id] = /^(\d+)\.(\d+)-(\d+)\.(\d+)-([0-9a-f]+)$/.exec(basename(path)) ??
    [];
  if (id === undefined) return null;
  return {
    holder: { pid: Number(pid), startTicks: Number(ticks) },
    script: { pid: Number(scriptPid), startTicks: Number(scriptTicks) },
    id,
  };
}

/** Returns true if the holder process of a socket may be alive and may still hold its lock. */
export function isReleaseSocketUsable(path: string): boolean {
  const owner = parseReleaseSocketPath(path);
  if (owner === null || !isSameProcessAlive(owner.holder)) return false;
  try {
    return lstatSync(path, { throwIfNoEntry: false }) !== undefined;
  } catch {
    return true; // another user owns the socket
  }
}

/** Returns the paths of this user's sockets. */
export function listReleaseSockets(): string[] {
  return places.map(folderIn).filter(isOwnFolder).flatMap((folder) =>
    readdirSync(folder).map((name) => `${folder}/${name}`)
  );
}

/**
 * Asks a holder process to release its lock. Resolves with null if the process has already ended or released the lock,
 * "killed" if it ended without a response, or "late" if no response came in time. Throws REFUSED if it belongs to
 * another user.
 */
export async function requestRelease(
  path: string,
  request: HolderReleaseRequest,
  { waitMs, clock = systemClock() }: { readonly waitMs: number; readonly clock?: Clock },
): Promise<HolderReleaseResponse | "killed" | "late" | null> {
  const response = Promise.withResolvers<HolderReleaseResponse | "killed" | "late" | null>();
  const onLine = (line: string) => response.resolve(parseLine<HolderReleaseResponse>(line) ?? "killed");
  // A holder process that ends normally removes its file before it closes the connection.
  const onClosed = () => response.resolve(lstatSync(path, { throwIfNoEntry: false }) === undefined ? null : "killed");
  using deadline = deadlineAfter(clock, waitMs, { reason: () => new Error("late") });
  deadline.signal.addEventListener("abort", () => response.resolve("late"));
  let connection: Connection;
  try {
    const handlers = { onData: lineReader(onLine, () => response.resolve("killed")), onClosed };
    connection = await dial({ kind: "unix", path }, handlers, { signal: deadline.signal });
  } catch (error) {
    if (deadline.signal.aborted) return "late";
    if (["ENOENT", "ECONNREFUSED", "ENOTDIR"].includes(errnoName(error) ?? "")) return null;
    throw new BatonError(
      "REFUSED",
      `Cannot send a request to the holder process at ${path}: ${systemCallErrorReason(error)}`,
      {
        cause: error,
      },
    );
  }
  sendLine(connection, request);
  return await response.promise.finally(() => connection.destroy());
}

function makeFolder(): string {
  for (const folder of places.map(folderIn)) {
    try {
      mkdirSync(folder, { mode: 0o700 });
    } catch {
      // The folder exists already, or cannot be created; the check below finds out.
    }
    if (isOwnFolder(folder)) return folder;
  }
  throw cannotCreate(
    `Cannot create a folder for the socket of baton hold: neither ${
      places.map(folderIn).join(" nor ")
    } is a folder of ` +
      "this user's alone",
  );
}

function folderIn(place: string): string {
  return `${place}/baton-hold-${process.geteuid?.() ?? 0}`;
}

/**
 * Returns true if the folder belongs to this user alone. Another user may have created a folder or link with this name.
 */
function isOwnFolder(folder: string): boolean {
  try {
    const stat = lstatSync(folder);
    return stat.isDirectory() && stat.uid === process.geteuid?.() && (stat.mode & 0o077) === 0;
  } catch {
    return false;
  }
}

/**
 * Removes the files of killed holder processes. A holder process in another PID namespace responds if it is alive; its
 * file stays.
 */
async function removeLeftFiles(folder: string): Promise<void> {
  for (const name of readdirSync(folder)) {
    const owner = parseReleaseSocketPath(name);
    if (owner === null || isSameProcessAlive(owner.holder)) continue;
    const { clearSocketPath } = await import("../../base/sockets/clear_socket_path.ts"); // few calls need this module
    await clearSocketPath(`${folder}/${name}`).catch(() => {}); // a process listens there
  }
}

function cannotCreate(message: string, cause?: unknown): BatonError {
  return new BatonError("CANNOT_CREATE", message, { cause });
}

function sendLine(connection: Connection, message: unknown): void {
  connection.write(new TextEncoder().encode(JSON.stringify(message) + "\n"));
}

/** Returns a receiver of bytes. It calls `onLine` for the first line, or `onTooLong` if the first line is too long. */
function lineReader(onLine: (line: string) => void, onTooLong: () => void): (chunk: Uint8Array) => void {
  const decoder = new TextDecoder();
  let text = "";
  let isOver = false;
  return (chunk) => {
    if (isOver) return;
    text += decoder.decode(chunk, { stream: true });
    const end = text.indexOf("\n");
    isOver = end >= 0 || text.length > lineBytesMax;
    if (end >= 0) onLine(text.slice(0, end));
    else if (isOver) onTooLong();
  };
}

/** Parses a line of JSON. Returns null for text that is not a message. */
function parseLine<T extends object>(line: string): T | null {
  try {
    const value: unknown = JSON.parse(line);
    return typeof value === "object" ? value as T : null;
  } catch {
    return null;
  }
}
