/** How a promise failed, in one word, for tests that compare it. */
import { BatonError } from "../../src/base/errors.ts";

/** The failure's code, "AbortError", or whatever else it says; "none" when it did not fail. */
export function failureCode(promise: Promise<unknown>): Promise<string> {
  return promise.then(() => "none", (reason: unknown) => {
    if (reason instanceof BatonError) return reason.code;
    return reason instanceof Error && reason.name === "AbortError" ? reason.name : String(reason);
  });
}
