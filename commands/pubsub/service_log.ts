/** What a role says while it runs: a line each, with the time; sentences for people or JSON for programs. */
import type { Io } from "../../src/terminal/io.ts";
import { logLine } from "../../src/terminal/log_line.ts";
import { BatonError, messageOf } from "../../src/errors.ts";
import type { Clock } from "../../src/support/clock.ts";

export type LogLevel = "info" | "warning" | "error";

export interface ServiceLog {
  /** `event` is stable and for programs, the sentence for people. */
  say(level: LogLevel, event: string, sentence: string, fields?: Readonly<Record<string, string | number>>): void;
  problem(thrown: unknown): void;
}

/** With `quiet` only errors. */
export function serviceLog(role: string, { io, format, quiet }: {
  readonly io: Io;
  readonly format: "text" | "json";
  readonly quiet: boolean;
}): ServiceLog {
  const say: ServiceLog["say"] = (level, event, sentence, fields = {}) => {
    if (quiet && level !== "error") return;
    io.err(logLine({ level, event, sentence, fields }, { format, who: `baton pubsub ${role}`, labels: { role } }));
  };
  return {
    say,
    problem(thrown) {
      const code = thrown instanceof BatonError ? thrown.code : "INTERNAL";
      say("warning", "problem", messageOf(thrown), { code });
    },
  };
}

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
