/** The interface through which a long operation reports its progress, whether or not baton shows it. */

/** A part of an operation. A new part replaces the previous one. */
export interface WorkProgressPart {
  /** The singular noun of what is counted; null if nothing can be counted. */
  readonly noun: string | null;
  /**
   * The participle of the work, such as `checked`. If there is no noun, what is being done, such as `checking the
   * index`.
   */
  readonly verb: string;
  /** The total; null if it is unknown. */
  readonly total: number | null;
}

export interface WorkProgress {
  startPart(part: WorkProgressPart): void;
  add(count: number): void;
}

export const noProgress: WorkProgress = { startPart() {}, add() {} };
