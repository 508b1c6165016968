/**
 * Runs work that needs rows in memory. If rows are missing, loads them and runs the work again. While rows are being
 * loaded, nothing else is done to the topics of the work.
 */
import { BatonError } from "../../../base/errors.ts";
import { awaitAnswer, type StepGenerator, type ValueOrPromise } from "../../../base/support/steps.ts";
import type { MissingTopicData } from "./topic_rows.ts";

/** Thrown if data is not in memory. The work that needs the data has changed nothing, and runs again after `load`. */
export class DataNotLoadedError extends Error {
  readonly lack: MissingTopicData;

  constructor(lack: MissingTopicData) {
    super(`not in memory: ${lack.kind}`);
    this.lack = lack;
  }
}

/**
 * Thrown if data could not be loaded because the database does not respond or refuses. The work has changed nothing.
 */
export class RowsUnavailable extends BatonError {
  constructor(why: string, cause?: unknown) {
    super("UNREACHABLE", why, { cause });
    this.name = "RowsUnavailable";
  }
}

/** Runs work that changes nothing, and repeats the work until all data that it needs is loaded. */
export function* runWithLoadedData<Result>(
  rows: { readonly load: (lacks: readonly MissingTopicData[]) => ValueOrPromise<void> },
  work: () => Result,
): StepGenerator<Result> {
  for (;;) {
    try {
      return work();
    } catch (error) {
      if (!(error instanceof DataNotLoadedError)) throw error;
      yield* awaitAnswer(rows.load([error.lack]));
    }
  }
}
