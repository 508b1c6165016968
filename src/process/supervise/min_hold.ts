/** The least time a lock is kept, so that of two cron jobs with clocks apart only one runs. */
import type { Lease } from "../lease.ts";
import { onAbort } from "../../support/abort.ts";
import type { Clock } from "../../support/clock.ts";
import type { SignalSource } from "./signal_source.ts";

export interface MinHoldOptions {
  readonly lease: Lease;
  readonly clock: Clock;
  readonly signals: SignalSource;
  readonly grantedAtMs: number;
  readonly minHoldMs?: number | null;
}

/** Resolves `minHoldMs` after the grant, or when the lease is lost, or at a signal that asks baton to stop. */
export function waitMinHold({ lease, clock, signals, grantedAtMs, minHoldMs }: MinHoldOptions): Promise<void> {
  const untilMs = grantedAtMs + (minHoldMs ?? 0);
  if (clock.now() >= untilMs || !lease.isHeld()) return Promise.resolve();
  return new Promise((resolve) => {
    const undo: (() => void)[] = [];
    const finish = () => {
      for (const call of undo) call();
      resolve();
    };
    undo.push(clock.after(untilMs - clock.now(), finish));
    undo.push(signals.listen(["SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT"], finish));
    undo.push(onAbort(lease.lost, finish));
  });
}
