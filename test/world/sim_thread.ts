/**
 * A simulated storage thread: messages are cloned and queued, work takes the time that the disk needs, replies come in
 * order.
 */
import type { StorageParentPort, StorageWorker } from "../../src/base/storage/storage_thread.ts";
import type { SimProcess } from "./sim_process.ts";

export class SimStorageThread implements StorageWorker {
  readonly #process: SimProcess;
  readonly #lockedMs: () => number;
  #requests: unknown[] = [];
  #isBusy = false;
  #isOver = false;
  /** The begin of the work that is done last, and how long it takes. */
  #work = { beganMs: 0, elapsedMs: 0 };
  #serve: (request: unknown) => void = () => {};
  #onReply: (reply: unknown) => void = () => {};
  /** The thread's own end. */
  readonly parent: StorageParentPort = {
    postMessage: (reply) => {
      const cloned: unknown = structuredClone(reply);
      this.#process.schedule("disk", this.#leftMs, () => this.#isOver || this.#onReply(cloned));
    },
    on: (_, listener) => {
      this.#serve = listener;
    },
  };

  /** `lockedMs`: the time for which other processes keep the store locked. */
  constructor(process: SimProcess, lockedMs: () => number = () => 0) {
    this.#process = process;
    this.#lockedMs = lockedMs;
  }

  /** Called by the work of the thread, also that of its timers: it waits for the disk. */
  spendMs(delayMs: number): void {
    if (this.#leftMs === 0) this.#work = { beganMs: this.#process.world.nowMs, elapsedMs: 0 };
    this.#work.elapsedMs += delayMs;
  }

  postMessage(request: unknown): void {
    this.#requests.push(structuredClone(request));
    this.#next(0.01);
  }

  /** Takes a request that has arrived, before it is served. */
  take(): unknown {
    return this.#requests.shift();
  }

  on(event: "message" | "error" | "exit", listener: (value: unknown) => void): void {
    if (event === "message") this.#onReply = listener;
  }

  terminate(): Promise<void> {
    this.#isOver = true;
    return Promise.resolve();
  }

  /** The time until the thread has done its work. */
  get #leftMs(): number {
    const { beganMs, elapsedMs } = this.#work;
    const { nowMs } = this.#process.world;
    return nowMs === beganMs ? elapsedMs : Math.max(0, beganMs + elapsedMs - nowMs);
  }

  #next(afterMs: number): void {
    if (this.#isBusy || this.#requests.length === 0) return;
    this.#isBusy = true;
    this.#process.schedule("disk", afterMs, () => this.#serveNext());
  }

  #serveNext(): void {
    if (this.#isOver) return;
    const waitMs = Math.max(this.#leftMs, this.#lockedMs());
    if (waitMs > 0) return void this.#process.schedule("disk", waitMs, () => this.#serveNext());
    this.#work = { beganMs: this.#process.world.nowMs, elapsedMs: 0.005 };
    this.#serve(this.#requests.shift());
    this.#process.schedule("disk", this.#work.elapsedMs, () => {
      this.#isBusy = false;
      this.#next(0);
    });
  }
}
