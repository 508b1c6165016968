/** One finding of `baton doctor`. */

export interface DoctorFinding {
  /** `warning`: the object works now, but may stop working. `problem`: the object does not work correctly. */
  readonly kind: "warning" | "problem";
  /** The object of the finding, such as `lock "nightly"`. */
  readonly where: string;
  /** A sentence without a full stop. */
  readonly what: string;
}
