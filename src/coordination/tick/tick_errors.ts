/** The reasons why a call gets no tick, for the code that called. */
import { BatonError } from "../../errors.ts";

/** Thrown by a call that is a little early: the next tick, or a further try of the last one, begins after this time. */
export class TickIsNear extends Error {
  readonly waitMs: number;

  constructor(waitMs: number) {
    super(`The next tick begins in ${waitMs} ms`);
    this.waitMs = waitMs;
  }
}

/** No tick is for this call: TICK_DONE_ELSEWHERE or TICK_NOT_DUE. */
export class TickSettled extends BatonError {
  /** A try runs, or failed and may be tried again: a later call may have to take it. */
  readonly isOpen: boolean;
  /** The time of the servers from which on a try may begin; null: it is not known. */
  readonly againMs: number | null;

  constructor(
    code: "TICK_DONE_ELSEWHERE" | "TICK_NOT_DUE",
    message: string,
    { isOpen, againMs }: Pick<TickSettled, "isOpen" | "againMs">,
  ) {
    super(code, message);
    this.isOpen = isOpen;
    this.againMs = againMs;
  }
}

/** The lock was busy when a tick was due; the tick is recorded as skipped. */
export class TickFoundBusy extends Error {
  readonly tick: string;

  constructor(tick: string) {
    super(`The tick ${tick} is skipped: the lock is busy`);
    this.tick = tick;
  }
}
