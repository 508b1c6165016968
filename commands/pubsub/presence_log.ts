/** Says when a role has lost the coordination service, and when it has it again. It looks: a lease ends by time alone. */
import type { Clock } from "../../src/support/clock.ts";
import type { ServiceLog } from "./service_log.ts";

/** In milliseconds. */
const lookEveryMs = 500;

export interface ConnectionState {
  isConnected(): boolean;
  /** What that means, as a sentence behind the name. */
  readonly lost: string;
  readonly found: string;
}

export interface PresenceOptions {
  readonly presence: ConnectionState;
  readonly clock: Clock;
}

export class ConnectionLog implements Disposable {
  readonly #log: ServiceLog;
  readonly #id: string;
  readonly #presence: ConnectionState;
  readonly #clock: Clock;
  /** Null while it is there. */
  #lostAtMs: number | null = null;
  /** At the last look it was not as it was said. */
  #wasOther = false;
  #cancel: () => void = () => {};

  /** Begins to look: it is there now. */
  constructor(log: ServiceLog, id: string, { presence, clock }: PresenceOptions) {
    this.#log = log;
    this.#id = id;
    this.#presence = presence;
    this.#clock = clock;
    this.#lookAgain();
  }

  [Symbol.dispose](): void {
    this.#cancel();
  }

  #lookAgain(): void {
    this.#cancel = this.#clock.after(lookEveryMs, () => {
      this.#look();
      this.#lookAgain();
    });
  }

  #look(): void {
    const isThere = this.#presence.isConnected();
    const isOther = isThere !== (this.#lostAtMs === null);
    // Who goes from one server of an ensemble to another one is away for a moment, and nobody has to be told.
    const isLasting = isOther && this.#wasOther;
    this.#wasOther = isOther && !isLasting;
    if (!isLasting) return;
    const id = this.#id;
    if (this.#lostAtMs === null) {
      this.#lostAtMs = this.#clock.now();
      this.#log.say("warning", "away", `"${id}" ${this.#presence.lost}`, { id });
      return;
    }
    const seconds = Math.max(1, Math.round((this.#clock.now() - this.#lostAtMs) / 1000));
    this.#lostAtMs = null;
    this.#log.say("info", "back", `"${id}" ${this.#presence.found}, after ${seconds} s`, { id, seconds });
  }
}
