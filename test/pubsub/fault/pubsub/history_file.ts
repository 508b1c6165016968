/** A history on the disk: a file for each process, a line for each event. */
import { closeSync, openSync, readdirSync, readFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import type { History, HistoryEvent } from "./history.ts";
import { historyOf, HistoryRecorder } from "./history_recorder.ts";
import { monotonicMs } from "./monotonic.ts";

const extension = ".jsonl";

/** Each event is with the kernel when its method returns. */
export class HistoryWriter extends HistoryRecorder implements Disposable {
  readonly #file: number;

  /** `path` ends in .jsonl; no other process writes to it. */
  constructor(path: string) {
    const file = openSync(path, "ax");
    super(monotonicMs, (event) => void writeSync(file, `${JSON.stringify(event)}\n`));
    this.#file = file;
  }

  [Symbol.dispose](): void {
    closeSync(this.#file);
  }
}

/** All files of the folder. A line that was cut off by a kill is passed over; a whole one that is no event throws. */
export function readHistory(folder: string): History {
  const names = readdirSync(folder).filter((name) => name.endsWith(extension)).sort();
  return historyOf(
    new Map(
      names.map((name) => [name.slice(0, -extension.length), eventsIn(readFileSync(join(folder, name), "utf8"))]),
    ),
  );
}

function eventsIn(text: string): HistoryEvent[] {
  const lines = text.split("\n");
  lines.pop(); // behind the last newline: nothing, or a line that was cut off
  return lines.map((line) => JSON.parse(line) as HistoryEvent);
}
