/** Progress of work that blocks the event loop, such as one long SQL statement: a thread shows it. */
import { statSync } from "node:fs";
import { Worker } from "node:worker_threads";
import type { WorkPart, WorkProgress } from "../support/work_progress.ts";
import type { Io } from "./io.ts";
import { type ProgressCall, progressForm, progressText } from "./progress.ts";

/** Memory that both threads use. */
export interface SharedProgress {
  /** `pen`: see there. `hasWritten`: 1 if there is something to erase. */
  readonly flags: Int32Array;
  /** The number of what was done in this part. */
  readonly count: Float64Array;
}

/** Indexes of the flags. */
export const flagAt = { pen: 0, hasWritten: 1 } as const;
/** States of the right to write to stderr: the display writes while it holds the pen; after `ended` only the thread that works. */
export const pen = { free: 0, held: 1, ended: 2 } as const;

/** The start of a part, sent to the display. */
export interface PartMessage {
  readonly part: WorkPart;
  readonly startedMs: number;
}

/** The data with which the display is started. */
export interface DisplayData {
  readonly shared: SharedProgress;
  readonly form: "terminal" | "lines";
  readonly columns: number;
}

/** Maximum time to wait for the pen: a terminal that is stopped (^S) blocks its writer. */
const penMsMax = 200;

/** The time is that of the wall clock: the clocks of threads have different starts. */
export function partText({ part: { noun, verb, total, file }, startedMs }: PartMessage, counted: number): string {
  const count = file === null ? counted : sizeOf(file);
  const elapsedMs = Math.max(0, Date.now() - startedMs);
  return progressText({ noun, verb, count, done: count, before: 0, total, countsTotal: true, elapsedMs, note: "" });
}

function sizeOf(file: string): number {
  try {
    return statSync(file).size;
  } catch {
    return 0; // not there yet
  }
}

export class ThreadProgress implements WorkProgress, Disposable {
  readonly #io: Io;
  readonly #form: ReturnType<typeof progressForm>;
  readonly #shared: SharedProgress = {
    flags: new Int32Array(new SharedArrayBuffer(8)),
    count: new Float64Array(new SharedArrayBuffer(8)),
  };
  #worker: Worker | null = null;
  #started: PartMessage | null = null;

  constructor(call: ProgressCall) {
    this.#io = call.io;
    this.#form = progressForm(call);
    if (this.#form === null) return;
    const workerData: DisplayData = { shared: this.#shared, form: this.#form, columns: call.io.columns };
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
    while (Atomics.compareExchange(flags, flagAt.pen, pen.free, pen.ended) === pen.held) {
      if (performance.now() > untilMs) break;
    }
    if (this.#form === "terminal" && Atomics.load(flags, flagAt.hasWritten) === 1) this.#io.err("\r\x1b[K");
    if (this.#form === "lines" && this.#started !== null) {
      this.#io.err(`baton: ${partText(this.#started, count[0] ?? 0)}\n`);
    }
    void this.#worker?.terminate();
  }
}
