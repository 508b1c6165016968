/** One result of `baton doctor`. */

export interface DoctorFinding {
  /** `warning`: it works, but may stop working. `problem`: it does not work correctly. */
  readonly kind: "warning" | "problem";
  /** Object of the finding: `lock "nightly"`. */
  readonly where: string;
  /** Sentence without a full stop. */
  readonly what: string;
}
