/** Runs a command that has a body as its stdin, under a guard and within a time; baton's own signals are not for it. */
import { closeSync } from "node:fs";
import { superviseChild, type SuperviseOptions } from "../../src/process/supervise/supervise_child.ts";
import type { ChildOutcome } from "../../src/process/spawn/child_outcome.ts";
import type { BatonError } from "../../src/errors.ts";
import { openBodyFile } from "../../src/process/spawn/input_file.ts";
import { type CommandEnd, commandEndOf } from "./command_end.ts";

export interface InputOptions
  extends Pick<SuperviseOptions, "command" | "env" | "lease" | "clock" | "guard" | "killAfterMs" | "beside"> {
  readonly body: Uint8Array;
  readonly timeoutMs: number;
  readonly hangUpIgnored: boolean;
  /** Where it begins; null: where baton is. */
  readonly cwd?: string | null;
}

/** What became of it. `refused`: the body could not be given to it, and nothing was begun. */
export type InputEnd =
  | { readonly kind: "refused"; readonly error: BatonError }
  | { readonly kind: "ended"; readonly outcome: ChildOutcome } & CommandEnd;

export async function superviseInput(
  { body, timeoutMs, hangUpIgnored, cwd = null, ...options }: InputOptions,
): Promise<InputEnd> {
  let input: number;
  try {
    input = openBodyFile(body);
  } catch (error) {
    return { kind: "refused", error: error as BatonError };
  }
  try {
    const outcome = await superviseChild({
      ...options,
      signals: { hangUpIgnored, listen: () => () => {} },
      descriptors: [],
      stopSignal: "SIGTERM",
      onDoubt: "ignore",
      maxHoldMs: timeoutMs,
      foreground: false,
      input,
      ...(cwd === null ? {} : { cwd }),
    });
    return { kind: "ended", outcome, ...commandEndOf(outcome, timeoutMs) };
  } finally {
    closeSync(input);
  }
}
