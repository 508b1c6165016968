/**
 * The file that remembers the highest fencing token, held exclusively by whoever works on what it protects. Owns the
 * descriptor and the lock on it (flock(2)): a command that was given the descriptor keeps the lock when baton is killed.
 */
import {
  closeSync,
  constants,
  fstatSync,
  fsyncSync,
  openSync,
  readFileSync,
  readSync,
  statSync,
  writeSync,
} from "node:fs";
import { dirname } from "node:path";
import { BatonError, messageOf } from "../../errors.ts";
import { throwIfAborted } from "../../support/abort.ts";
import type { Clock } from "../../support/clock.ts";
import { sleep } from "../../support/deadline.ts";
import { flushPath } from "../../storage/durable_file.ts";
import { isSameFile } from "../../support/one_file.ts";
import type { Libc } from "../../process/libc.ts";
import { type FencedToken, formatTokenSlot, readTokenSlots, slotBytes } from "./token_slots.ts";

/** Nothing tells when a lock of flock(2) is free; milliseconds between two tries. */
const tryEveryMs = 20;

export interface TokenStoreOptions {
  readonly libc: Libc;
  readonly clock: Clock;
  /** Milliseconds; undefined waits as long as it takes, 0 tries once. */
  readonly waitMs: number | undefined;
  readonly signal: AbortSignal;
  /** What this process was given: one of them may be the store's, held by a call around this one. */
  readonly descriptors: readonly number[];
}

export class TokenStore implements Disposable {
  readonly #path: string;
  readonly #fd: number;

  private constructor(path: string, fd: number) {
    this.#path = path;
    this.#fd = fd;
  }

  /**
   * Opens the store, makes it where it is not there, and waits until nobody else has it. Rejects CANNOT_CREATE,
   * LOCK_BUSY or LOCK_TIMEOUT, USAGE where it would wait for itself, IO, or with the signal's reason.
   */
  static async hold(path: string, options: TokenStoreOptions): Promise<TokenStore> {
    const { clock, waitMs } = options;
    const deadlineMs = waitMs === undefined ? Infinity : clock.now() + waitMs;
    for (;;) {
      const store = new TokenStore(path, openStore(path));
      try {
        await store.#lock(deadlineMs, options);
        // Another file may have been put in its place while it was waited for: that one is the store.
        if (store.#isThere()) return store;
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
        throw new BatonError("USAGE", `Store "${this.#path}" is held by a baton fence run around this call already`);
      }
      if (clock.now() >= deadlineMs) throw busy(this.#path, waitMs ?? 0);
      await sleep(clock, Math.min(tryEveryMs, Math.max(1, deadlineMs - clock.now())), signal);
    }
  }

  #isThere(): boolean {
    const [own, named] = [fstatSync(this.#fd), statSync(this.#path, { throwIfNoEntry: false })];
    return named !== undefined && isSameFile(named, own);
  }

  /** Linux says of a descriptor which locks it has (proc(5), /proc/pid/fdinfo); what does not say so has none. */
  #isHeldBy(fd: number): boolean {
    try {
      return isSameFile(fstatSync(this.#fd), fstatSync(fd)) &&
        /^lock:.*\bFLOCK\b/m.test(readFileSync(`/proc/self/fdinfo/${fd}`, "latin1"));
    } catch {
      return false;
    }
  }

  /**
   * Lets `token` through and remembers it, on the disk, when it is higher than all before. Throws STALE_TOKEN for a lower
   * one, BAD_DATA for a file that is no store, IO.
   */
  admit(token: FencedToken): void {
    const { highest, next } = readTokenSlots(this.#read(), this.#path);
    if (highest !== null && token.token < highest.token) {
      throw new BatonError(
        "STALE_TOKEN",
        `Token ${token.token} is stale: "${this.#path}" has seen ${highest.token}, brought by ${highest.by} at ` +
          `${highest.at}; whoever has the old one does not hold the lock any more`,
      );
    }
    if (highest?.token !== token.token) this.#write(formatTokenSlot(token), next * slotBytes);
  }

  /** A descriptor of the same lock that a child inherits. Dispose of it when the child has been started. */
  share(libc: Libc): Disposable & { readonly fd: number } {
    const fd = libc.duplicate(this.#fd);
    if (fd < 0) throw new BatonError("IO", `Cannot duplicate the descriptor of "${this.#path}"`);
    return { fd, [Symbol.dispose]: () => libc.close(fd) };
  }

  [Symbol.dispose](): void {
    closeSync(this.#fd);
  }

  #read(): string {
    try {
      const bytes = new Uint8Array(2 * slotBytes + 1);
      const length = readSync(this.#fd, bytes, 0, bytes.length, 0);
      return Buffer.from(bytes.subarray(0, length)).toString("latin1");
    } catch (error) {
      throw new BatonError("IO", `Cannot read "${this.#path}": ${messageOf(error)}`, { cause: error });
    }
  }

  #write(line: string, at: number): void {
    try {
      const written = writeSync(this.#fd, Buffer.from(line, "latin1"), 0, line.length, at);
      if (written !== line.length) throw new Error(`only ${written} of ${line.length} bytes were taken`);
      fsyncSync(this.#fd);
    } catch (error) {
      throw new BatonError("IO", `Cannot write "${this.#path}": ${messageOf(error)}`, { cause: error });
    }
  }
}

function openStore(path: string): number {
  let fd: number;
  try {
    fd = openSync(path, constants.O_RDWR | constants.O_CREAT, 0o666);
  } catch (error) {
    throw new BatonError("CANNOT_CREATE", `Cannot open the store "${path}": ${messageOf(error)}`, { cause: error });
  }
  const stat = fstatSync(fd);
  if (!stat.isFile()) {
    closeSync(fd);
    throw new BatonError("CANNOT_CREATE", `The store "${path}" is not a file`);
  }
  if (stat.size === 0) flushFolder(dirname(path));
  return fd;
}

/** A file that is new has to be found again after a power failure too. */
function flushFolder(folder: string): void {
  try {
    flushPath(folder);
  } catch {
    // a folder that may not be read, or a file system without the notion
  }
}

function busy(path: string, waitMs: number): BatonError {
  const why = "somebody works under it, or its file system has no flock(2)";
  if (waitMs === 0) return new BatonError("LOCK_BUSY", `Store "${path}" is busy: ${why}`);
  return new BatonError("LOCK_TIMEOUT", `Store "${path}" was not free within ${waitMs} ms: ${why}`);
}
