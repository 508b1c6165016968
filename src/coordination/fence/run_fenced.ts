/**
 * Runs a command while baton holds a fencing store: the file with the highest token that was used. Checks the token,
 * runs the command, and releases the store. The command inherits the store's descriptor with its flock(2), so the store
 * stays held even if baton is killed.
 */
import { BatonError, systemCallErrorReason } from "../../base/errors.ts";
import { openOutputFile } from "../../base/support/open_output.ts";
import type { Clock } from "../../base/support/clock.ts";
import type { ChildExitStatus } from "../../base/process/spawn/child_outcome.ts";
import {
  type SignalSource,
  signalsWhileCommandRuns,
  StopRequestListener,
} from "../../base/process/supervise/signal_source.ts";
import { type Libc, loadLibc } from "../../base/process/libc.ts";
import { sendSignal } from "../../base/process/proc/process_table.ts";
import { runsCommandInForeground } from "../../base/process/supervise/supervise_child.ts";
import { childEnvironment, type CommandSpawnResult, spawnChild } from "../../base/process/spawn/spawn_child.ts";
import { formatFencingTokenSlot, readFencingTokenSlots, tokenSlotBytes, type UsedFencingToken } from "./token_slots.ts";
import { closeSync, fstatSync, fsyncSync, readFileSync, readSync, statSync, writeSync } from "node:fs";
import { dirname } from "node:path";
import { CleanupScope, throwIfAborted } from "../../base/support/abort.ts";
import { sleep } from "../../base/support/deadline.ts";
import { flushPath } from "../../base/storage/durable_file.ts";
import { isSameFile } from "../../base/support/one_file.ts";

interface RunFencedOptions {
  readonly storePath: string;
  readonly token: UsedFencingToken;
  /** The longest wait in milliseconds. Undefined means no limit; 0 means a single try. */
  readonly waitMs: number | undefined;
  readonly command: readonly string[];
  /** The result of `inheritedDescriptors()` at the start of this process. */
  readonly descriptors: readonly number[];
  readonly clock: Clock;
  readonly signals: SignalSource;
}

export type FencedCommandEnd = ChildExitStatus | Exclude<CommandSpawnResult, { kind: "started" | "cancelled" }>;

/**
 * Runs the command. Returns how it ended, or why it was not started. Rejects with STALE_TOKEN, LOCK_BUSY, LOCK_TIMEOUT,
 * CANNOT_CREATE, BAD_DATA, USAGE or IO, or with StoppedBySignal after a signal before the start.
 */
export async function runFencedCommand(options: RunFencedOptions): Promise<FencedCommandEnd> {
  const { storePath, token, clock, waitMs, signals, descriptors } = options;
  const libc = await loadLibc();
  if (libc === null) {
    throw new BatonError(
      "START_FAILED",
      "The store needs flock(2), but baton cannot call the C library on this system; " +
        "docs/limits.md lists supported systems",
    );
  }
  using stop = new StopRequestListener(signals);
  using store = await TokenStore.openLocked(storePath, { libc, clock, waitMs, signal: stop.signal, descriptors });
  store.admit(token);
  const ownGroup = !runsCommandInForeground("auto", libc);
  const spawned = await spawnWith(store, libc, { ...options, ownGroup, signal: stop.signal });
  if (spawned.kind === "cancelled") throw stop.signal.reason;
  if (spawned.kind !== "started") return spawned;
  return await waitForwardingSignals(spawned, ownGroup, signals);
}

/**
 * Starts the command with the store's locked descriptor, so that the command holds the store even if baton is killed.
 */
async function spawnWith(
  store: TokenStore,
  libc: Libc,
  { command, descriptors, signals, ownGroup, signal }: RunFencedOptions & {
    readonly ownGroup: boolean;
    readonly signal: AbortSignal;
  },
): Promise<CommandSpawnResult> {
  using shared = store.duplicateDescriptor(libc);
  return await spawnChild(command, {
    env: childEnvironment({}),
    ownGroup,
    descriptors: [...descriptors, shared.fd].sort((a, b) => a - b),
    hangUpIgnored: signals.hangUpIgnored,
    signal,
  });
}

async function waitForwardingSignals(
  { pid, ended }: Extract<CommandSpawnResult, { kind: "started" }>,
  ownGroup: boolean,
  signals: SignalSource,
): Promise<ChildExitStatus> {
  using _listeners = new CleanupScope(
    ...signalsWhileCommandRuns(ownGroup).map(({ signal, forwarded }) =>
      signals.listen([signal], () => forwarded && sendSignal(ownGroup ? -pid : pid, signal))
    ),
  );
  return await ended;
}

/** The pause between two tries in milliseconds; flock(2) does not report when a lock is free. */
const tryEveryMs = 20;

interface TokenStoreOptions {
  readonly libc: Libc;
  readonly clock: Clock;
  /** The longest wait in milliseconds. Undefined means no limit; 0 means a single try. */
  readonly waitMs: number | undefined;
  readonly signal: AbortSignal;
  /** Inherited descriptors. An enclosing `baton fence run` may hold the store's lock through one of them. */
  readonly descriptors: readonly number[];
}

class TokenStore implements Disposable {
  readonly #path: string;
  readonly #fd: number;

  private constructor(path: string, fd: number) {
    this.#path = path;
    this.#fd = fd;
  }

  /**
   * Opens or creates the store, and waits until no other process holds it. Rejects with CANNOT_CREATE, LOCK_BUSY,
   * LOCK_TIMEOUT or IO, with USAGE if an enclosing call holds the store, or with the signal's reason.
   */
  static async openLocked(path: string, options: TokenStoreOptions): Promise<TokenStore> {
    const { clock, waitMs } = options;
    const deadlineMs = waitMs === undefined ? Infinity : clock.now() + waitMs;
    for (;;) {
      const store = new TokenStore(path, openStore(path));
      try {
        await store.#lock(deadlineMs, options);
        // The file may have been replaced during the wait. In that case, the new file is the store.
        if (store.#isCurrent()) return store;
      } catch (thrown) {
        store[Symbol.dispose]();
        throw thrown;
      }
      store[Symbol.dispose]();
    }
  }

  async #lock(deadlineMs: number, { libc, clock, waitMs, signal, descriptors }: TokenStoreOptions): Promise<void> {
    for (let tries = 0;; tries++) {
      throwIfAborted(signal);
      if (libc.lockFile(this.#fd)) return;
      if (tries === 0 && descriptors.some((fd) => this.#isHeldBy(fd))) {
        throw new BatonError("USAGE", `Store "${this.#path}" is already held by a baton fence run around this call`);
      }
      if (clock.now() >= deadlineMs) throw storeBusyError(this.#path, waitMs ?? 0);
      await sleep(clock, Math.min(tryEveryMs, Math.max(1, deadlineMs - clock.now())), signal);
    }
  }

  #isCurrent(): boolean {
    const own = fstatSync(this.#fd);
    const named = statSync(this.#path, { throwIfNoEntry: false });
    return named !== undefined && isSameFile(named, own);
  }

  /** Returns true if a descriptor holds the lock. Reads /proc/self/fdinfo (proc(5)). */
  #isHeldBy(fd: number): boolean {
    try {
      return isSameFile(fstatSync(this.#fd), fstatSync(fd)) &&
        /^lock:.*\bFLOCK\b/m.test(readFileSync(`/proc/self/fdinfo/${fd}`, "latin1"));
    } catch {
      return false;
    }
  }

  /**
   * Checks `token`, and writes it to disk if it is higher than all earlier tokens. Throws STALE_TOKEN for a lower
   * token, BAD_DATA for a file that is not a store, or IO.
   */
  admit(token: UsedFencingToken): void {
    const { highest, next } = readFencingTokenSlots(this.#read(), this.#path);
    if (highest !== null && token.token < highest.token) {
      throw new BatonError(
        "STALE_TOKEN",
        `Token ${token.token} is stale: "${this.#path}" has ${highest.token}, used by ${highest.by} at ` +
          `${highest.at}; the holder of the old token no longer holds the lock`,
      );
    }
    if (highest?.token !== token.token) this.#write(formatFencingTokenSlot(token), next * tokenSlotBytes);
  }

  /**
   * Returns a descriptor with the same lock, for the command to inherit. The caller disposes of it after the command
   * has started.
   */
  duplicateDescriptor(libc: Libc): Disposable & { readonly fd: number } {
    const fd = libc.duplicate(this.#fd);
    if (fd < 0) throw new BatonError("IO", `Cannot duplicate the descriptor of "${this.#path}"`);
    return { fd, [Symbol.dispose]: () => libc.close(fd) };
  }

  [Symbol.dispose](): void {
    closeSync(this.#fd);
  }

  #read(): string {
    try {
      const bytes = new Uint8Array(2 * tokenSlotBytes + 1);
      const length = readSync(this.#fd, bytes, 0, bytes.length, 0);
      return Buffer.from(bytes.subarray(0, length)).toString("latin1");
    } catch (error) {
      throw new BatonError("IO", `Cannot read "${this.#path}": ${systemCallErrorReason(error)}`, { cause: error });
    }
  }

  #write(line: string, at: number): void {
    try {
      const written = writeSync(this.#fd, Buffer.from(line, "latin1"), 0, line.length, at);
      if (written !== line.length) throw new Error(`only ${written} of ${line.length} bytes were written`);
      fsyncSync(this.#fd);
    } catch (error) {
      throw new BatonError("IO", `Cannot write "${this.#path}": ${systemCallErrorReason(error)}`, { cause: error });
    }
  }
}

function openStore(path: string): number {
  let fd: number;
  try {
    fd = openOutputFile(path, "update");
  } catch (error) {
    throw new BatonError("CANNOT_CREATE", `Cannot open the store "${path}": ${systemCallErrorReason(error)}`, {
      cause: error,
    });
  }
  const stat = fstatSync(fd);
  if (!stat.isFile()) {
    closeSync(fd);
    throw new BatonError("CANNOT_CREATE", `The store "${path}" is not a file`);
  }
  if (stat.size === 0) flushFolder(dirname(path));
  return fd;
}

/** Flushes the folder of a new file, so that the file exists after a power failure. */
function flushFolder(folder: string): void {
  try {
    flushPath(folder);
  } catch {
    // The folder cannot be read, or the file system cannot flush folders.
  }
}

function storeBusyError(path: string, waitMs: number): BatonError {
  const why = "another process holds it, or the file system does not support flock(2)";
  if (waitMs === 0) return new BatonError("LOCK_BUSY", `Store "${path}" is busy: ${why}`);
  return new BatonError("LOCK_TIMEOUT", `Store "${path}" was not free within ${waitMs} ms: ${why}`);
}
