/** A known defect, and how the simulation must show it. */

export interface Mutant {
  readonly name: string;
  readonly world: string;
  readonly changes: readonly { readonly file: string; readonly from: string; readonly to: string }[];
  /** The failures by which it may be found. */
  readonly kinds: readonly string[];
  /** The first seed; 1 when left out. */
  readonly from?: number;
  /** The number of seeds within which it is found. */
  readonly seeds: number;
  /** The file of the run that shows it, in place of seeds. */
  readonly faults?: string;
  /** Each plan runs twice. */
  readonly twice?: boolean;
}
