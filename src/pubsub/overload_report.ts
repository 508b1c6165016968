/** Tells the operator that a socket refuses or closes connections. Reports again after a minute if it continues. */
import type { ZeroMqSocketEvent } from "../protocols/zeromq/socket_event.ts";
import { BatonError } from "../base/errors.ts";
import type { Clock } from "../base/support/clock.ts";
import { ZmtpError } from "../protocols/zeromq/zmtp/zmtp_error.ts";

const repeatAfterMs = 60_000;

export class SocketOverloadReport {
  readonly #clock: Clock;
  readonly #onProblem: (problem: BatonError) => void;
  /** The time on the clock of the last report of each kind. */
  readonly #reportedMs = new Map<"connections" | "memory", number>();

  constructor(clock: Clock, onProblem: (problem: BatonError) => void) {
    this.#clock = clock;
    this.#onProblem = onProblem;
  }

  observe(event: ZeroMqSocketEvent): void {
    if (event.kind === "connectionRefused") {
      const address = event.address === "" ? "" : ` from ${event.address}`;
      this.#report(
        "connections",
        `A connection${address} was closed: --max-connections is reached. Further ones are only counted`,
      );
    } else if (
      event.kind === "disconnected" && event.reason instanceof ZmtpError && event.reason.reason === "OVERLOAD"
    ) {
      this.#report(
        "memory",
        `The connection from ${event.address} was closed: ` +
          "memory for incomplete messages is short, and its message did not arrive in time. " +
          "Further ones are only counted",
      );
    }
  }

  #report(what: "connections" | "memory", sentence: string): void {
    const nowMs = this.#clock.now();
    const beforeMs = this.#reportedMs.get(what);
    if (beforeMs !== undefined && nowMs - beforeMs < repeatAfterMs) return;
    this.#reportedMs.set(what, nowMs);
    this.#onProblem(new BatonError("CONNECTION_LOST", sentence));
  }
}
