/**
 * Starts a user's keeper if none is running. If several processes start keepers at the same time, the first keeper that
 * locks the data directory serves, and the others exit. The keeper is independent of the process that starts it.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, fstatSync, openSync, readFileSync, renameSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { BatonError, errnoName, type ErrorCode, systemCallErrorReason } from "../../../base/errors.ts";
import type { Connection } from "../../../base/sockets/connection.ts";
import { dial } from "../../../base/sockets/dial.ts";
import { rejectOnAbort } from "../../../base/support/abort.ts";
import { backoffMs } from "../../../base/support/backoff.ts";
import { formatDuration } from "../../../base/support/duration.ts";
import { keeperProcessVariable, registerChildProcess } from "../../../base/support/own_process.ts";
import { ownProgramCommand } from "../../../base/support/self_exec.ts";
import { createKeeperFolders, type KeeperLocation, keeperLogFileName } from "./keeper_location.ts";

export interface EnsureKeeperOptions {
  readonly signal?: AbortSignal;
  /** The time limit in milliseconds; 10,000 by default. */
  readonly withinMs?: number;
  /** How long the keeper stays without sessions before it ends; `5m` by default. */
  readonly idleExit?: string;
  /** The command that runs baton, without arguments; this program by default. */
  readonly command?: readonly string[];
}

/** The exit code of a keeper that found that another keeper owns the data directory. */
const ownedExitCode = 75;
const failureCodes: Readonly<Record<number, ErrorCode>> = { 73: "CANNOT_CREATE", 74: "IO", 78: "CONFIG" };
const logBytesMax = 1 << 20;
/**
 * How long other processes wait for the process that is starting a keeper, before they may start one themselves, in
 * milliseconds.
 */
const startClaimMs = 250;
/** How long to wait for the response of a keeper that has accepted a connection, in milliseconds. */
const answerMsMax = 1_000;

/**
 * Starts the keeper if necessary, and resolves when it responds. Rejects UNREACHABLE if that takes too long,
 * CANNOT_CREATE or IO if its folder cannot be written, or with the signal's reason. If the keeper cannot start, rejects
 * with the keeper's own error code and message.
 */
export function ensureKeeper(location: KeeperLocation, options: EnsureKeeperOptions = {}): Promise<void> {
  let start = starting.get(location.socketPath);
  if (start === undefined) {
    start = connectOrStart(location, options).finally(() => starting.delete(location.socketPath));
    starting.set(location.socketPath, start);
  }
  return rejectOnAbort(start, options.signal);
}

/** The starts in progress, by socket path. Many sessions of one process thus share one start. */
const starting = new Map<string, Promise<void>>();

async function connectOrStart(location: KeeperLocation, options: EnsureKeeperOptions): Promise<void> {
  const { dir, socketPath } = location;
  if (await keeperServes(socketPath)) return;
  if (dir !== null) createKeeperFolders({ ...location, dir });
  const withinMs = options.withinMs ?? 10_000;
  const deadlineMs = performance.now() + withinMs;
  let leftForAnother: LeftForAnother | null = null;
  for (let attempt = 0;; attempt++) {
    if (dir !== null && (leftForAnother === null || leftForAnother()) && claimStart(dir)) {
      leftForAnother = startDetached({ dir, socketPath }, options);
    }
    await pause(5 + backoffMs(attempt, { firstMs: 10, maxMs: 50, jitter: 1 }));
    if (await keeperServes(socketPath)) return;
    if (performance.now() <= deadlineMs) continue;
    const waited = formatDuration(withinMs);
    throw new BatonError(
      "UNREACHABLE",
      dir === null
        ? `The machine's keeper at ${socketPath} did not respond within ${waited}; root must restart it`
        : `No keeper responded at ${socketPath} within ${waited}`,
    );
  }
}

/** Returns true if the started keeper has exited because another keeper owns the data. Throws if the keeper failed. */
type LeftForAnother = () => boolean;

function startDetached(
  location: { dir: string; socketPath: string },
  { idleExit = "5m", command = ownProgramCommand() }: EnsureKeeperOptions,
): LeftForAnother {
  const logPath = join(location.dir, keeperLogFileName);
  const log = openLog(logPath);
  try {
    const logStart = fstatSync(log).size;
    const files = ["--data-dir", location.dir, "--listen", `unix:${location.socketPath}`];
    const words = ["keeper", ...files, "--on-demand", "--idle-exit", idleExit];
    const [executable = "", ...args] = [...withoutDescriptors(), ...command, ...words];
    const child = spawn(executable, args, {
      cwd: "/",
      // The keeper gets its own kernel session and process group: ending the command then does not end the keeper.
      detached: true,
      // Removes variables. With them, baton would take the keeper for a process of the command, and the keeper would
      // know the command's secrets.
      env: {
        PATH: process.env["PATH"] ?? "/usr/bin:/bin",
        HOME: process.env["HOME"] ?? "/",
        [keeperProcessVariable]: "1",
      },
      stdio: ["ignore", log, log],
    });
    child.unref();
    if (child.pid !== undefined) child.once("exit", registerChildProcess(child.pid, "helper"));
    return startedKeeper(child, logPath, () => readFileSync(logPath).subarray(logStart).toString("utf8").trim());
  } finally {
    closeSync(log);
  }
}

function startedKeeper(child: ChildProcess, logPath: string, said: () => string): LeftForAnother {
  let failure: Error | null = null;
  child.on("error", (error) => failure = error);
  return () => {
    if (failure !== null) throw new BatonError("CANNOT_CREATE", `Cannot start the keeper: ${failure.message}`);
    if (child.exitCode === null && child.signalCode === null) return false;
    if (child.exitCode === ownedExitCode || child.exitCode === 0) return true;
    const how = child.signalCode ?? `exit code ${child.exitCode}`;
    const code = failureCodes[child.exitCode ?? -1] ?? "UNREACHABLE";
    // If the disk is full, a keeper that cannot write its data cannot write its log either.
    const silence = code === "IO" ? `it wrote nothing to ${logPath}; is the disk full?` : "it printed nothing";
    throw new BatonError(code, `The keeper could not start (${how}): ${said().split("\n").at(-1) || silence}`);
  };
}

/** Returns a shell command that closes inherited descriptors under Deno. Bun closes them itself. */
function withoutDescriptors(): string[] {
  if (!("Deno" in globalThis)) return [];
  return ["/bin/sh", "-c", 'exec 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&-; exec "$0" "$@"'];
}

/** Opens the log file. If the file is larger than a megabyte, renames it and opens a new one. */
function openLog(path: string): number {
  try {
    if ((statSync(path, { throwIfNoEntry: false })?.size ?? 0) > logBytesMax) renameSync(path, `${path}.1`);
    return openSync(path, "a", 0o600);
  } catch (error) {
    throw cannotWriteError(path, error);
  }
}

/**
 * Returns true if this process may start a keeper now. This only limits how many keepers the waiting processes start;
 * several keepers do no harm, because only one gets the data. Throws CANNOT_CREATE or IO if no process could start a
 * keeper, because the disk is full or read-only.
 */
function claimStart(dir: string): boolean {
  const path = join(dir, "starting");
  try {
    const stat = statSync(path, { throwIfNoEntry: false });
    const ageMs = stat === undefined ? Infinity : Date.now() - stat.mtimeMs;
    if (ageMs >= 0 && ageMs < startClaimMs) return false;
    rmSync(path, { force: true });
    closeSync(openSync(path, "wx", 0o600));
    return true;
  } catch (error) {
    if (errnoName(error) === "EEXIST") return false; // another process was faster
    throw cannotWriteError(path, error);
  }
}

function cannotWriteError(path: string, error: unknown): BatonError {
  const code = errnoName(error) === "EIO" ? "IO" : "CANNOT_CREATE";
  const message = `Cannot start the keeper: cannot write ${path}: ${systemCallErrorReason(error)}`;
  return new BatonError(code, message, { cause: error });
}

/**
 * Returns true if a keeper serves at this socket. Accepting a connection is no proof, because a keeper that is ending
 * may still accept connections. A keeper that accepts, but neither responds nor closes the connection, counts as
 * serving: it owns the data, so another keeper could not start.
 */
function keeperServes(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    let answered = false;
    let connection: Connection | null = null;
    const dialling = new AbortController();
    const settle = (result: boolean) => {
      clearTimeout(giveUp);
      dialling.abort();
      connection?.destroy();
      resolve(result);
    };
    const giveUp = setTimeout(settle, answerMsMax, true);
    const handlers = { onData: () => void (answered = true), onClosed: () => settle(answered) };
    dial({ kind: "unix", path }, handlers, dialling).then((made) => {
      connection = made;
      made.write(new TextEncoder().encode("ruok"));
    }, () => settle(false));
  });
}

function pause(milliseconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}
