/**
 * Work on a store's memory that may have to wait for its rows: a generator that yields each promise it waits for. Rows
 * that are in the same process, as those of SQLite, are never waited for: the work runs to its end without a yield.
 * Nothing else happens to the topics of the work while it waits.
 */
import { BatonError } from "../../../base/errors.ts";
import type { MissingTopicData, RowsAnswer } from "./topic_rows.ts";

export type StoreSteps<Result = void, Piece = never> = Generator<Promise<unknown> | Piece, Result, unknown>;

/** Data is not in memory; the work that needs it has changed nothing, and is done again when `load` has brought it. */
export class DataNotLoaded extends Error {
  readonly lack: MissingTopicData;

  constructor(lack: MissingTopicData) {
    super(`not in memory: ${lack.kind}`);
    this.lack = lack;
  }
}

/** Data could not be brought: the database does not respond, or refuses. The work that needs it has changed nothing. */
export class RowsUnavailable extends BatonError {
  constructor(why: string, cause?: unknown) {
    super("UNREACHABLE", why, { cause });
    this.name = "RowsUnavailable";
  }
}

/** Waits for an answer, if it is not there yet. */
export function* awaitRowsAnswer<Value>(answer: RowsAnswer<Value>): StoreSteps<Value> {
  return answer instanceof Promise ? (yield answer) as Value : answer;
}

/** Does work that changes nothing, as often as it needs data that `load` has to bring. */
export function* withLoadedData<Result>(
  rows: { readonly load: (lacks: readonly MissingTopicData[]) => RowsAnswer<void> },
  work: () => Result,
): StoreSteps<Result> {
  for (;;) {
    try {
      return work();
    } catch (error) {
      if (!(error instanceof DataNotLoaded)) throw error;
      yield* awaitRowsAnswer(rows.load([error.lack]));
    }
  }
}

/** Whether a method returned work, and not its result. */
export function isStoreSteps(result: unknown): result is StoreSteps<unknown> {
  return typeof result === "object" && result !== null && Symbol.iterator in result && "throw" in result;
}

/** Runs work whose rows answer immediately. */
export function runStoreStepsNow<Result>(steps: StoreSteps<Result>): Result {
  const { done, value } = steps.next();
  if (done !== true) throw new Error("a store in this process had to be waited for");
  return value;
}

/** Runs work whose rows may be elsewhere. A rejection is thrown inside the work. */
export async function runStoreSteps<Result>(steps: StoreSteps<Result>): Promise<Result> {
  let step = steps.next();
  while (step.done !== true) {
    let value: unknown;
    try {
      value = await step.value;
    } catch (error) {
      step = steps.throw(error);
      continue;
    }
    step = steps.next(value);
  }
  return step.value;
}

/** The methods of an object, those that are steps run to their end. */
export type RunStoreMethods<Methods> = {
  [Name in keyof Methods]: Methods[Name] extends (...values: infer Values) => StoreSteps<infer Result>
    ? (...values: Values) => Result
    : Methods[Name];
};
