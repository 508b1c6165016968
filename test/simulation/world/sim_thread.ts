/** A simulated storage thread: messages are cloned and queued, work takes the time that the disk needs, replies come in order. */
import type { StorageParentPort, StorageWorker } from "../../../src/storage/storage_thread.ts";
import type { SimProcess } from "./sim_process.ts";

export class SimStorageThread implements StorageWorker {
  readonly #process: SimProcess;
  #requests: unknown[] = [];
  #isBusy = false;
  #isOver = false;
  #elapsedMs = 0;
  #serve: (request: unknown) => void = () => {};
  #onReply: (reply: unknown) => void = () => {};
  /** The thread's own end. */
  readonly parent: StorageParentPort = {
    postMessage: (reply) => {
      const cloned: unknown = structuredClone(reply);
      this.#process.schedule("disk", this.#elapsedMs, () => this.#isOver || this.#onReply(cloned));
    },
    on: (_, listener) => {
      this.#serve = listener;
    },
  };

  constructor(process: SimProcess) {
    this.#process = process;
  }

  /** Called by the work of the thread: it waits for the disk. */
  spendMs(delayMs: number): void {
    this.#elapsedMs += delayMs;
  }

  postMessage(request: unknown): void {
    this.#requests.push(structuredClone(request));
    this.#next(0.01);
  }

  on(event: "message" | "error" | "exit", listener: (value: unknown) => void): void {
    if (event === "message") this.#onReply = listener;
  }

  terminate(): Promise<void> {
    this.#isOver = true;
    return Promise.resolve();
  }

  #next(afterMs: number): void {
    if (this.#isBusy || this.#requests.length === 0) return;
    this.#isBusy = true;
    this.#process.schedule("disk", afterMs, () => {
      if (this.#isOver) return;
      this.#elapsedMs = 0.005;
      this.#serve(this.#requests.shift());
      const busyMs = this.#elapsedMs;
      this.#process.schedule("disk", busyMs, () => {
        this.#isBusy = false;
        this.#next(0);
      });
    });
  }
}
