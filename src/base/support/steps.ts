/**
 * Lets the same code work with a store in this process, which answers immediately, and with a database, which answers
 * with promises. The code is a generator that yields each promise for which it must wait.
 */

/** A result, or a promise of the result. */
export type ValueOrPromise<Value> = Value | Promise<Value>;

export type StepGenerator<Result = void, Piece = never> = Generator<Promise<unknown> | Piece, Result, unknown>;

/** Returns the answer. If the answer is a promise, waits for it first. */
export function* awaitAnswer<Value>(answer: ValueOrPromise<Value>): StepGenerator<Value> {
  return answer instanceof Promise ? (yield answer) as Value : answer;
}

/** Returns true if a method returned steps that must still run; false if it returned a result. */
export function isStepGenerator<Result>(
  result: StepGenerator<Result> | ValueOrPromise<Result>,
): result is StepGenerator<Result> {
  return typeof result === "object" && result !== null && Symbol.iterator in result && "throw" in result;
}

/** Runs steps that never have to wait, and returns their result. If `work` is a result already, returns it. */
export function runStepsNow<Result>(work: StepGenerator<Result> | ValueOrPromise<Result>): Result {
  if (!isStepGenerator(work)) {
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

/**
 * Runs steps, and waits for each promise that they yield. The reason of a rejected promise is thrown inside the steps.
 */
export async function runSteps<Result>(work: StepGenerator<Result> | ValueOrPromise<Result>): Promise<Result> {
  if (!isStepGenerator(work)) return await work;
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

/**
 * The methods of an object whose methods return steps, as callers see them that run the steps: each method returns its
 * result.
 */
export type RunStepMethods<Methods> = {
  [Name in keyof Methods]: Methods[Name] extends (...values: infer Values) => StepGenerator<infer Result>
    ? (...values: Values) => Result
    : Methods[Name];
};
