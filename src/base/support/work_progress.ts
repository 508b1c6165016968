/** How a long operation reports what it has done. The code that works does not know whether it is shown, and how. */

/** A part of an operation. A later part replaces an earlier one. */
export interface WorkPart {
  /** The noun of what is counted, in the singular; `byte` is shown as a size. Null if nothing can be counted. */
  readonly noun: string | null;
  /** The participle of the work: `checked`; without a noun what is being done: `checking the index`. */
  readonly verb: string;
  /** The total number; null if it is unknown. */
  readonly total: number | null;
  /** A file that grows with the work: its size is what was done. */
  readonly file: string | null;
}

export interface WorkProgress {
  startPart(part: WorkPart): void;
  add(count: number): void;
}

export const noProgress: WorkProgress = { startPart() {}, add() {} };
