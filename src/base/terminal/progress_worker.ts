/** The thread that shows the progress of work in another thread, which the work blocks. */
import { writeSync } from "node:fs";
import { parentPort, workerData } from "node:worker_threads";
import { printable } from "../support/text.ts";
import {
  type ProgressDisplayData,
  progressFlagIndex,
  type ProgressPartMessage,
  progressPartText,
  stderrPen,
} from "./progress_parts.ts";
import { showProgressAfterMs, updateProgressEveryMs } from "./progress_text.ts";

const port = parentPort;
if (port === null) throw new Error("The display thread was started as a program");

const { shared: { flags, count }, form, columns } = workerData as ProgressDisplayData;
const everyMs = form === "terminal" ? updateProgressEveryMs.terminal : updateProgressEveryMs.lines;
let current: ProgressPartMessage | null = null;
let firstMs = 0;

port.on("message", (message: ProgressPartMessage) => {
  current = message;
  if (firstMs === 0) firstMs = message.startedMs;
});

setInterval(() => {
  if (current === null || Date.now() - firstMs < showProgressAfterMs) return;
  if (Atomics.compareExchange(flags, progressFlagIndex.pen, stderrPen.free, stderrPen.held) !== stderrPen.free) return;
  try {
    const text = printable(progressPartText(current, count[0] ?? 0));
    writeSync(2, form === "terminal" ? `\r\x1b[K${text.slice(0, Math.max(1, columns - 1))}` : `baton: ${text}\n`);
    Atomics.store(flags, progressFlagIndex.hasWritten, 1);
  } catch {
    // stderr is closed or full: the work goes on
  } finally {
    Atomics.compareExchange(flags, progressFlagIndex.pen, stderrPen.held, stderrPen.free);
  }
}, everyMs);
