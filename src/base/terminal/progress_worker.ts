/** Thread that shows the progress of work in another thread, which is blocked meanwhile. */
import { writeSync } from "node:fs";
import { parentPort, workerData } from "node:worker_threads";
import { printable } from "../support/text.ts";
import { type DisplayData, flagAt, type PartMessage, partText, pen } from "./progress_parts.ts";
import { showAfterMs, updateEveryMs } from "./progress_text.ts";

const port = parentPort;
if (port === null) throw new Error("The display thread was started as a program");

const { shared: { flags, count }, form, columns } = workerData as DisplayData;
const everyMs = form === "terminal" ? updateEveryMs.terminal : updateEveryMs.lines;
let current: PartMessage | null = null;
let firstMs = 0;

port.on("message", (message: PartMessage) => {
  current = message;
  if (firstMs === 0) firstMs = message.startedMs;
});

setInterval(() => {
  if (current === null || Date.now() - firstMs < showAfterMs) return;
  if (Atomics.compareExchange(flags, flagAt.pen, pen.free, pen.held) !== pen.free) return;
  try {
    const text = printable(partText(current, count[0] ?? 0));
    writeSync(2, form === "terminal" ? `\r\x1b[K${text.slice(0, Math.max(1, columns - 1))}` : `baton: ${text}\n`);
    Atomics.store(flags, flagAt.hasWritten, 1);
  } catch {
    // stderr is closed or full: the work goes on
  } finally {
    Atomics.compareExchange(flags, flagAt.pen, pen.held, pen.free);
  }
}, everyMs);
