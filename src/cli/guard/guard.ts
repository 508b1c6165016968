/**
 * baton's side of the guard: starts it, keeps its deadline fresh, hears whether it struck, and starts another one when
 * it dies while there is something to guard.
 */
import { BatonError } from "../../errors.ts";
import { abortable } from "../../support/abort.ts";
import { type Libc, loadLibc } from "../child/libc.ts";
import { type GuardProcess, type StartGuardProcess, startGuardProcess } from "./guard_process.ts";
import { childLine, type GuardedChild, renewLine, watchLine } from "./guard_state.ts";

export interface Guard {
  /** The guard of the moment; 0 while there is none. */
  pid(): number;
  /**
   * From now on everything that carries `cookie` dies with baton, or when `remainingMs()` was 0 once. Resolves when a
   * guard that has said it is there was told: it reads what is in its pipe before it finds the end of it. Rejects
   * START_FAILED if there is no guard, or with the signal's reason.
   */
  watch(cookie: string, options: WatchOptions): Promise<void>;
  /** Tells of the command, once it runs. */
  child(child: GuardedChild): void;
  /**
   * How many milliseconds after the deadline nothing was left alive, in the words of a guard that struck; null for one
   * that did not, or does not answer.
   */
  clearedAfterMs(signal: AbortSignal): Promise<number | null>;
  /** There is nothing left to guard: it ends without a blow. Also for a guard that never had anything to watch. */
  done(): void;
}

export interface WatchOptions {
  readonly remainingMs: () => number;
  /** Calls the listener whenever `remainingMs` may have changed, up to `done()`. Returns what takes it off. */
  readonly subscribe: (listener: () => void) => () => void;
  /** The guard strikes: it has seen the deadline pass. */
  readonly onStrike: () => void;
  /** The guard was gone and another one watches, or, after too many, none does. */
  readonly onReplaced: (replaced: boolean) => void;
  readonly signal?: AbortSignal;
}

/** Somebody who kills guard after guard wants none; baton itself still keeps every deadline. */
const replacementsMax = 5;

/** Starts the guard and returns at once: its start runs beside the wait for the lock. */
export function startGuard(start: StartGuardProcess = startGuardProcess): Guard {
  setImmediate(() => void loadLibc()); // half a millisecond that is free now, while the servers are being reached
  return new GuardKeeper(start);
}

class GuardKeeper implements Guard {
  readonly #start: StartGuardProcess;
  readonly #cleared = Promise.withResolvers<number | null>();
  /** Of the guard of the moment: it has said that it reads. */
  #ready = Promise.withResolvers<void>();
  #isReady = false;
  #process: GuardProcess | null = null;
  #watch: { cookie: string; libc: Libc | null; options: WatchOptions } | null = null;
  #child: GuardedChild | null = null;
  #isWatching = false;
  /** The order to watch is on its way into the pipe. */
  #told: Promise<void> | undefined;
  #struck = false;
  #done = false;
  #replacements = 0;
  #unsubscribe = () => {};

  constructor(start: StartGuardProcess) {
    this.#start = start;
    this.#launch();
  }

  pid(): number {
    return this.#process?.pid ?? 0;
  }

  async watch(cookie: string, options: WatchOptions): Promise<void> {
    this.#watch = { cookie, libc: await loadLibc(), options };
    this.#sendAll();
    // At once, not when the command runs: a guard may be slow to be there, and a command to start.
    if (!this.#done) this.#unsubscribe = options.subscribe(() => this.#renew());
    await abortable(this.#ready.promise, options.signal);
    if (this.#told !== undefined) await abortable(this.#told, options.signal);
    this.#isWatching = true;
  }

  child(child: GuardedChild): void {
    this.#child = child;
    this.#process?.send(childLine(child));
  }

  clearedAfterMs(signal: AbortSignal): Promise<number | null> {
    return abortable(this.#cleared.promise, signal).catch(() => null);
  }

  done(): void {
    this.#done = true;
    this.#unsubscribe();
    this.#process?.send("done\n"); // it ends by that: ending the pipe as well costs Bun two threads
  }

  #launch(): void {
    if (this.#isReady) this.#ready = Promise.withResolvers();
    this.#isReady = false;
    this.#ready.promise.catch(() => {}); // asked for by watch() alone, which may never be called
    const started = this.#start((line) => this.#heard(line));
    if (started instanceof Promise) started.then((guard) => this.#launched(guard), () => this.#ended());
    else this.#launched(started);
  }

  #launched(guard: GuardProcess): void {
    this.#process = guard;
    guard.ended.then(() => this.#ended());
    if (this.#done) this.done();
    else this.#sendAll();
  }

  #sendAll(): void {
    if (this.#watch === null) return;
    this.#told = this.#process?.send(watchLine(this.#watch.cookie, deadlineOf(this.#watch)));
    if (this.#child !== null) this.#process?.send(childLine(this.#child));
  }

  #renew(): void {
    if (this.#watch !== null) this.#process?.send(renewLine(deadlineOf(this.#watch)));
  }

  #heard(line: string): void {
    const [word, number] = line.split(" ");
    if (word === "ready") {
      if (this.#isWatching) this.#watch?.options.onReplaced(true);
      this.#isReady = true;
      this.#ready.resolve();
    } else if (word === "struck") {
      this.#struck = true;
      this.#watch?.options.onStrike();
    } else if (word === "cleared") {
      this.#cleared.resolve(Number(number));
    }
  }

  #ended(): void {
    this.#process = null;
    if (this.#done || this.#struck) return this.#cleared.resolve(null);
    if (this.#replacements++ < replacementsMax) return this.#launch();
    const message = `Cannot keep a guard process running: it ended ${
      replacementsMax + 1
    } times without having been asked to`;
    this.#ready.reject(new BatonError("START_FAILED", message));
    this.#cleared.resolve(null);
    this.#watch?.options.onReplaced(false);
  }
}

/** On the boot clock, which is read first: a pause between the two makes the deadline early. Without libc there is no guard. */
function deadlineOf({ libc, options }: { readonly libc: Libc | null; readonly options: WatchOptions }): number {
  return (libc?.bootTimeMs() ?? 0) + options.remainingMs();
}
