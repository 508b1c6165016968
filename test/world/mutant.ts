/** A known defect, and how the simulation must show it. */

export interface MutantChange {
  /**
   * The module and the function, method or inner function: `lock_contender:Contender.#request`; a module alone for what
   * is in none.
   */
  readonly in: string;
  /** A text that is there once; white space does not count. */
  readonly from: string;
  readonly to: string;
}

export interface Mutant {
  readonly name: string;
  readonly world: string;
  readonly changes: readonly MutantChange[];
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
