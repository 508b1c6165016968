/** Notices the end of a process that is not this process's child. */
import type { Clock } from "../../support/clock.ts";
import { isScriptAlive, type ScriptProcess } from "./script_process.ts";

/** Milliseconds between checks, and so the longest delay of the release. Reading one file of /proc costs microseconds. */
const checkIntervalMs = 100;

/** The interval after a stop signal. */
const fastCheckIntervalMs = 10;

export class ScriptWatch implements Disposable {
  readonly #end = Promise.withResolvers<void>();
  /** Resolves when the process has ended. */
  readonly ended = this.#end.promise;
  readonly #script: ScriptProcess;
  readonly #clock: Clock;
  readonly #onCheck: () => void;
  #intervalMs = checkIntervalMs;
  #cancel: () => void = () => {};

  /** `onCheck` is called with every check that finds the process alive. */
  constructor(script: ScriptProcess, clock: Clock, onCheck: () => void = () => {}) {
    this.#script = script;
    this.#clock = clock;
    this.#onCheck = onCheck;
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
    if (!isScriptAlive(this.#script)) return this.#end.resolve();
    this.#cancel = this.#clock.startTimer(this.#intervalMs, () => this.#check());
    this.#onCheck();
  }
}
