/**
 * The interface through which a long operation reports its progress. It does not know whether and how baton shows it.
 */

/** A part of an operation. A later part replaces an earlier one. */
export interface WorkPart {
  /** The noun of what is counted, in the singular. Null if nothing can be counted. */
  readonly noun: string | null;
  /** The participle of the work: `checked`. If nothing can be counted, what is being done: `checking the index`. */
  readonly verb: string;
  /** The total number; null if it is unknown. */
  readonly total: number | null;
}

export interface WorkProgress {
  startPart(part: WorkPart): void;
  add(count: number): void;
}

export const noProgress: WorkProgress = { startPart() {}, add() {} };
