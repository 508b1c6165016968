/**
 * Data that the working thread shares with the thread that displays its progress: messages, memory, and the text for
 * one part of the work.
 */
import { statSync } from "node:fs";
import type { WorkPart } from "../support/work_progress.ts";
import { progressText } from "./progress_text.ts";

/** Memory that both threads use. */
export interface SharedProgress {
  /**
   * Values by `progressFlagIndex`: a state of `stderrPen`, and 1 in `hasWritten` if the display has written something.
   */
  readonly flags: Int32Array;
  /** The count of what was done in this part. */
  readonly count: Float64Array;
}

/** Indexes of the flags. */
export const progressFlagIndex = { pen: 0, hasWritten: 1 } as const;
/**
 * States of the right to write to stderr: the display writes while it holds the pen; after `ended`, only the working
 * thread writes.
 */
export const stderrPen = { free: 0, held: 1, ended: 2 } as const;

/** The start of a part, sent to the display. */
export interface ProgressPartMessage {
  readonly part: WorkPart;
  readonly startedMs: number;
}

/** The data with which the display is started. */
export interface ProgressDisplayData {
  readonly shared: SharedProgress;
  readonly form: "terminal" | "lines";
  readonly columns: number;
}

/** Returns the text of one part. Uses the wall clock, because the monotonic clocks of threads have different starts. */
export function progressPartText(
  { part: { noun, verb, total, file }, startedMs }: ProgressPartMessage,
  counted: number,
): string {
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
