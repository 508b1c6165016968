/**
 * Work on a store that may have to wait for rows, as a generator that yields each promise it waits for. The same code
 * serves SQLite, whose rows are in the process, so the work never yields, and PostgreSQL. While the work waits, nothing
 * else happens to its topics.
 */
import { BatonError } from "../../../base/errors.ts";
import type { MissingTopicData, RowsAnswer } from "./topic_rows.ts";

export type StoreSteps<Result = void, Piece = never> = Generator<Promise<unknown> | Piece, Result, unknown>;

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

/** Waits for the answer of a rows interface if it is a promise. */
export function* awaitRowsAnswer<Value>(answer: RowsAnswer<Value>): StoreSteps<Value> {
  return answer instanceof Promise ? (yield answer) as Value : answer;
}

/** Runs work that changes nothing, again and again until all data that it needs is loaded. */
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

/** Whether a method returned steps to run, not their result. */
export function isStoreSteps(result: unknown): result is StoreSteps<unknown> {
  return typeof result === "object" && result !== null && Symbol.iterator in result && "throw" in result;
}

/** Runs steps whose rows answer immediately, and returns the result. */
export function runStoreStepsNow<Result>(steps: StoreSteps<Result>): Result {
  const { done, value } = steps.next();
  if (done !== true) throw new Error("a store in this process had to be waited for");
  return value;
}

/** Runs steps whose rows may have to be loaded. A rejected promise is thrown inside the steps. */
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

/** The methods of an object as they appear when their steps are run: they return results. */
export type RunStoreMethods<Methods> = {
  [Name in keyof Methods]: Methods[Name] extends (...values: infer Values) => StoreSteps<infer Result>
    ? (...values: Values) => Result
    : Methods[Name];
};
