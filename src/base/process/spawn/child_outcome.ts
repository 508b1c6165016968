/** Describes how a supervised command ended. baton's exit codes are in src/base/exit_codes.ts. */
import { constants } from "node:os";

export type ChildExitStatus =
  | { readonly kind: "exited"; readonly code: number }
  /** `signal` is the name of the signal; if the signal has no name, `SIG` and its number. */
  | { readonly kind: "signaled"; readonly signal: string; readonly signalNumber: number }
  /** The command has ended with an unknown status, which never counts as success. */
  | { readonly kind: "unreadable"; readonly why: string };

export type SupervisedChildEnding =
  | ChildExitStatus
  /**
   * baton stopped the command: it lost the lock or was about to lose it, the lock was broken, or the time limit had
   * passed. `child` says how the command then ended.
   */
  | { readonly kind: "lost" | "revoked" | "time_limit"; readonly child: ChildExitStatus | null }
  /**
   * baton could not confirm in time that all processes were dead. `isDead` is true if all are dead now, for example
   * after the machine was suspended. If some are alive, baton must not release the lock, and lets the session expire.
   */
  | {
    readonly kind: "breach";
    readonly child: ChildExitStatus | null;
    readonly survivors: readonly number[];
    readonly isDead: boolean;
  }
  | { readonly kind: "not_found" | "not_executable" | "start_failed"; readonly message: string }
  /** `signal` aborted before the start, so no process was started. */
  | { readonly kind: "cancelled" };

export type ChildOutcome = SupervisedChildEnding & {
  readonly pid: number | null;
  /** The time from the grant until the lock may be released, in milliseconds. */
  readonly heldMs: number;
};

/** Returns the description of a failure as the end of a sentence; null for a success. */
export function describeChildFailure(end: ChildExitStatus): string | null {
  switch (end.kind) {
    case "exited":
      return end.code === 0 ? null : `exited with ${end.code}`;
    case "signaled":
      return `was ended by ${end.signal}`;
    case "unreadable":
      return `has ended with an unknown status: ${end.why}`;
  }
}

/**
 * Converts the exit code and the signal that the runtime reports. `signal` is a name; Bun passes a number for a
 * real-time signal, which has no name.
 */
export function toChildExitStatus(code: number | null, signal: string | number | null): ChildExitStatus {
  if (typeof signal === "number") return { kind: "signaled", signal: `SIG${signal}`, signalNumber: signal };
  const signalNumber = signal === null ? undefined : constants.signals[signal as NodeJS.Signals];
  if (signal !== null && signalNumber !== undefined) return { kind: "signaled", signal, signalNumber };
  if (signal === null && code !== null) return { kind: "exited", code };
  return { kind: "unreadable", why: `the system reported the exit code ${code} and the signal ${signal}` };
}
