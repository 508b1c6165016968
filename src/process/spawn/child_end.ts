/** How a process ended, from what the runtimes say of it. Pure. */
import { constants } from "node:os";
import type { ChildEnd } from "./child_outcome.ts";

/** `signal`: its name, or its number where it has none; Bun gives a real-time signal so. */
export function childEndOf(code: number | null, signal: string | number | null): ChildEnd {
  if (typeof signal === "number") return { kind: "signaled", signal: `SIG${signal}`, signalNumber: signal };
  const signalNumber = signal === null ? undefined : constants.signals[signal as NodeJS.Signals];
  if (signal !== null && signalNumber !== undefined) return { kind: "signaled", signal, signalNumber };
  if (signal === null && code !== null) return { kind: "exited", code };
  return { kind: "unreadable", why: `the system gave the exit code ${code} and the signal ${signal}` };
}
