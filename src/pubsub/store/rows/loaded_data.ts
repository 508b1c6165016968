/**
 * Work that needs rows in memory: if they are not there, they are loaded, and the work begins again. While it waits,
 * nothing else happens to its topics.
 */
import { BatonError } from "../../../base/errors.ts";
import { type Answer, awaitAnswer, type Steps } from "../../../base/support/steps.ts";
import type { MissingTopicData } from "./topic_rows.ts";

/** Data is not in memory. The work that needs it has changed nothing, and runs again after `load` has loaded it. */
export class DataNotLoaded extends Error {
  readonly lack: MissingTopicData;

  constructor(lack: MissingTopicData) {
    super(`not in memory: ${lack.kind}`);
    this.lack = lack;
  }
}

/** Data could not be loaded: the database does not respond, or refuses. The work has changed nothing. */
export class RowsUnavailable extends BatonError {
  constructor(why: string, cause?: unknown) {
    super("UNREACHABLE", why, { cause });
    this.name = "RowsUnavailable";
  }
}

/** Runs work that changes nothing, again and again until all data that it needs is loaded. */
export function* withLoadedData<Result>(
  rows: { readonly load: (lacks: readonly MissingTopicData[]) => Answer<void> },
  work: () => Result,
): Steps<Result> {
  for (;;) {
    try {
      return work();
    } catch (error) {
      if (!(error instanceof DataNotLoaded)) throw error;
      yield* awaitAnswer(rows.load([error.lack]));
    }
  }
}
