/** Describes how a supervised command ended. baton's exit codes are in src/base/exit_codes.ts. */
import { constants } from "node:os";

export type ChildEnd =
  | { readonly kind: "exited"; readonly code: number }
  /** `signal` is the name, or `SIG` and the number if it has none. */
  | { readonly kind: "signaled"; readonly signal: string; readonly signalNumber: number }
  /** The command has ended, and its status is unknown. Never a success. */
  | { readonly kind: "unreadable"; readonly why: string };

export type ChildEnding =
  /** The command ended by itself. */
  | ChildEnd
  /**
   * baton stopped the command: the lock was lost or about to be, was revoked, or the time limit was over. `child` says
   * how the command then ended.
   */
  | { readonly kind: "lost" | "revoked" | "time_limit"; readonly child: ChildEnd | null }
  /**
   * baton could not confirm in time that all processes were dead. `isDead`: all are dead now, as after a suspend of the
   * machine; otherwise the lock must not be released, and its session must expire.
   */
  | {
    readonly kind: "breach";
    readonly child: ChildEnd | null;
    readonly survivors: readonly number[];
    readonly isDead: boolean;
  }
  /** No process was started. */
  | { readonly kind: "not_found" | "not_executable" | "start_failed"; readonly message: string }
  /** `signal` was aborted before the start; no process was started. */
  | { readonly kind: "cancelled" };

export type ChildOutcome = ChildEnding & {
  readonly pid: number | null;
  /** Time from the grant to the end of the supervision, when the lock may be released. */
  readonly heldMs: number;
};

/** Returns the failure as the end of a sentence; null for a success. */
export function describeChildFailure(end: ChildEnd): string | null {
  switch (end.kind) {
    case "exited":
      return end.code === 0 ? null : `exited with ${end.code}`;
    case "signaled":
      return `was ended by ${end.signal}`;
    case "unreadable":
      return `has ended with an unknown status: ${end.why}`;
  }
}

/** Converts the runtime's report. `signal` is a name, or a number if it has none (Bun, for a real-time signal). */
export function toChildEnd(code: number | null, signal: string | number | null): ChildEnd {
  if (typeof signal === "number") return { kind: "signaled", signal: `SIG${signal}`, signalNumber: signal };
  const signalNumber = signal === null ? undefined : constants.signals[signal as NodeJS.Signals];
  if (signal !== null && signalNumber !== undefined) return { kind: "signaled", signal, signalNumber };
  if (signal === null && code !== null) return { kind: "exited", code };
  return { kind: "unreadable", why: `the system reported the exit code ${code} and the signal ${signal}` };
}
