/** Shows the progress of work that blocks the event loop, such as one long SQL statement, in another thread. */
import { Worker } from "node:worker_threads";
import type { WorkPart, WorkProgress } from "../support/work_progress.ts";
import type { Io } from "./io.ts";
import { chooseProgressForm, type ProgressCall } from "./progress.ts";
import {
  type ProgressDisplayData,
  progressFlagIndex,
  type ProgressPartMessage,
  progressPartText,
  type SharedProgress,
  stderrPen,
} from "./progress_parts.ts";

/** The longest wait for the pen, in milliseconds: a terminal that is stopped (^S) blocks its writer. */
const penMsMax = 200;

export class ThreadProgress implements WorkProgress, Disposable {
  readonly #io: Io;
  readonly #form: ReturnType<typeof chooseProgressForm>;
  readonly #shared: SharedProgress = {
    flags: new Int32Array(new SharedArrayBuffer(8)),
    count: new Float64Array(new SharedArrayBuffer(8)),
  };
  #worker: Worker | null = null;
  #started: ProgressPartMessage | null = null;

  constructor(call: ProgressCall) {
    this.#io = call.io;
    this.#form = chooseProgressForm(call);
    if (this.#form === null) return;
    const workerData: ProgressDisplayData = { shared: this.#shared, form: this.#form, columns: call.io.columns };
    this.#worker = new Worker(new URL("./progress_worker.ts", import.meta.url), { workerData });
    this.#worker.on("error", () => this.#worker = null); // the work itself is not affected
    this.#worker.unref();
  }

  startPart(part: WorkPart): void {
    this.#shared.count[0] = 0;
    this.#started = { part, startedMs: Date.now() };
    this.#worker?.postMessage(this.#started);
  }

  add(count: number): void {
    this.#shared.count[0] = (this.#shared.count[0] ?? 0) + count;
  }

  [Symbol.dispose](): void {
    const { flags, count } = this.#shared;
    const untilMs = performance.now() + penMsMax;
    while (Atomics.compareExchange(flags, progressFlagIndex.pen, stderrPen.free, stderrPen.ended) === stderrPen.held) {
      if (performance.now() > untilMs) break;
    }
    if (this.#form === "terminal" && Atomics.load(flags, progressFlagIndex.hasWritten) === 1) {
      this.#io.err("\r\x1b[K", "display");
    }
    if (this.#form === "lines" && this.#started !== null) {
      this.#io.err(`baton: ${progressPartText(this.#started, count[0] ?? 0)}\n`);
    }
    void this.#worker?.terminate();
  }
}
