/**
 * Work that may have to wait for answers, as a generator that yields each promise it waits for. The same code serves a
 * store in the process, whose answers are there, so the work never yields, and a database, whose answers are promises.
 */

/** A result, or the promise of one. */
export type Answer<Value> = Value | Promise<Value>;

export type Steps<Result = void, Piece = never> = Generator<Promise<unknown> | Piece, Result, unknown>;

/** Waits for the answer if it is a promise. */
export function* awaitAnswer<Value>(answer: Answer<Value>): Steps<Value> {
  return answer instanceof Promise ? (yield answer) as Value : answer;
}

/** Whether a method returned steps to run, not their result. */
export function isSteps<Result>(result: Steps<Result> | Answer<Result>): result is Steps<Result> {
  return typeof result === "object" && result !== null && Symbol.iterator in result && "throw" in result;
}

/** Runs steps whose answers are there, and returns the result; an answer is returned as it is. */
export function runStepsNow<Result>(work: Steps<Result> | Answer<Result>): Result {
  if (!isSteps(work)) {
    if (work instanceof Promise) throw hadToWait();
    return work;
  }
  const { done, value } = work.next();
  if (done !== true) throw hadToWait();
  return value;
}

function hadToWait(): Error {
  return new Error("a store in this process had to be waited for");
}

/** Runs steps whose answers may be promises, or waits for an answer. A rejected promise is thrown inside the steps. */
export async function runSteps<Result>(work: Steps<Result> | Answer<Result>): Promise<Result> {
  if (!isSteps(work)) return await work;
  let step = work.next();
  while (step.done !== true) {
    let value: unknown;
    try {
      value = await step.value;
    } catch (error) {
      step = work.throw(error);
      continue;
    }
    step = work.next(value);
  }
  return step.value;
}

/** The methods of an object as they appear when their steps are run: they return results. */
export type RunMethods<Methods> = {
  [Name in keyof Methods]: Methods[Name] extends (...values: infer Values) => Steps<infer Result>
    ? (...values: Values) => Result
    : Methods[Name];
};
