/** Sees that a process which is nobody's child here has ended. */
import type { Clock } from "../../support/clock.ts";
import { isThere, type ScriptProcess } from "./script_process.ts";

/** Between two looks, in milliseconds: the lock is free so much later at most. Reading one file of /proc costs microseconds. */
const lookEveryMs = 100;

/** While its end is waited for. */
const hurriedLookEveryMs = 10;

export class ScriptWatch implements Disposable {
  /** Resolves when the process is gone. */
  readonly ended: Promise<void>;

  readonly #script: ScriptProcess;
  readonly #clock: Clock;
  readonly #onLook: () => void;
  readonly #end: () => void;
  #everyMs = lookEveryMs;
  #cancel: () => void = () => {};

  /** `onLook` is called with every look that finds it alive. */
  constructor(script: ScriptProcess, clock: Clock, onLook: () => void = () => {}) {
    this.#script = script;
    this.#clock = clock;
    this.#onLook = onLook;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.ended = promise;
    this.#end = resolve;
    this.#look();
  }

  /** It has been told to end. */
  hurry(): void {
    this.#everyMs = hurriedLookEveryMs;
    this.#cancel();
    this.#look();
  }

  [Symbol.dispose](): void {
    this.#cancel();
  }

  #look(): void {
    if (!isThere(this.#script)) return this.#end();
    this.#cancel = this.#clock.after(this.#everyMs, () => this.#look());
    this.#onLook();
  }
}
