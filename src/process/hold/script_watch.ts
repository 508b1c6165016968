/** Notices the end of a process that is not this process's child. */
import type { Clock } from "../../support/clock.ts";
import { isScriptAlive, type ScriptProcess } from "./script_process.ts";

/** Milliseconds between checks, and so the longest delay of the release. Reading one file of /proc costs microseconds. */
const checkIntervalMs = 100;

/** The interval after a stop signal. */
const fastCheckIntervalMs = 10;

export class ScriptWatch implements Disposable {
  /** Resolves when the process has ended. */
  readonly ended: Promise<void>;

  readonly #script: ScriptProcess;
  readonly #clock: Clock;
  readonly #onCheck: () => void;
  readonly #end: () => void;
  #intervalMs = checkIntervalMs;
  #cancel: () => void = () => {};

  /** `onCheck` is called with every check that finds the process alive. */
  constructor(script: ScriptProcess, clock: Clock, onCheck: () => void = () => {}) {
    this.#script = script;
    this.#clock = clock;
    this.#onCheck = onCheck;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.ended = promise;
    this.#end = resolve;
    this.#check();
  }

  /** Checks more often from now on: the process was told to end. */
  checkFaster(): void {
    this.#intervalMs = fastCheckIntervalMs;
    this.#cancel();
    this.#check();
  }

  [Symbol.dispose](): void {
    this.#cancel();
  }

  #check(): void {
    if (!isScriptAlive(this.#script)) return this.#end();
    this.#cancel = this.#clock.after(this.#intervalMs, () => this.#check());
    this.#onCheck();
  }
}
