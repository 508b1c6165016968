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
export function isSteps(result: unknown): result is Steps<unknown> {
  return typeof result === "object" && result !== null && Symbol.iterator in result && "throw" in result;
}

/** Runs steps whose answers are there, and returns the result. */
export function runStepsNow<Result>(steps: Steps<Result>): Result {
  const { done, value } = steps.next();
  if (done !== true) throw new Error("a store in this process had to be waited for");
  return value;
}

/** Runs steps whose answers may be promises. A rejected promise is thrown inside the steps. */
export async function runSteps<Result>(steps: Steps<Result>): Promise<Result> {
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
export type RunMethods<Methods> = {
  [Name in keyof Methods]: Methods[Name] extends (...values: infer Values) => Steps<infer Result>
    ? (...values: Values) => Result
    : Methods[Name];
};
