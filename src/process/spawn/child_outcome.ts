/** How a supervised command ended. Says nothing about exit codes: commands/exit_codes.ts does. */

export type ChildEnd =
  | { readonly kind: "exited"; readonly code: number }
  /** `signal` is its name, or `SIG` and the number where it has none. */
  | { readonly kind: "signaled"; readonly signal: string; readonly signalNumber: number }
  /** It has ended, and nobody can tell how. Never a success. */
  | { readonly kind: "unreadable"; readonly why: string };

export type ChildEnding =
  /** The command ended by itself. */
  | ChildEnd
  /** It was stopped because the lock was about to be lost, was lost, was taken back, or the time limit was over. `child`: how it then ended. */
  | { readonly kind: "lost" | "revoked" | "time_limit"; readonly child: ChildEnd | null }
  /** Some processes could not be confirmed dead in time. The lock must not be given back in an orderly way. */
  | { readonly kind: "breach"; readonly child: ChildEnd | null; readonly survivors: readonly number[] }
  /** Nothing was started. */
  | { readonly kind: "not_found" | "not_executable" | "start_failed"; readonly message: string }
  /** `signal` was aborted before the start; nothing was started. */
  | { readonly kind: "cancelled" };

export type ChildOutcome = ChildEnding & {
  readonly pid: number | null;
  /** From the grant to the end of the supervision, which is when the lock may be released. */
  readonly heldMs: number;
};
