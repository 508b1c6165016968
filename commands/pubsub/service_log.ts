/** Log of a server or a proxy: one line per event with the time, as text or JSON. */
import type { Io } from "../../src/terminal/io.ts";
import { logLine } from "../../src/terminal/log_line.ts";
import { BatonError, messageOf } from "../../src/errors.ts";
import type { Clock } from "../../src/support/clock.ts";

export type LogLevel = "info" | "warning" | "error";

export interface ServiceLog {
  /** `event` is stable, for programs; the sentence is for people. */
  write(level: LogLevel, event: string, sentence: string, fields?: Readonly<Record<string, string | number>>): void;
  writeProblem(thrown: unknown): void;
}

/** Creates the log of a server or proxy. Only errors are logged if `quiet` is set. */
export function serviceLog(role: string, { io, format, quiet }: {
  readonly io: Io;
  readonly format: "text" | "json";
  readonly quiet: boolean;
}): ServiceLog {
  const write: ServiceLog["write"] = (level, event, sentence, fields = {}) => {
    if (quiet && level !== "error") return;
    io.err(logLine({ level, event, sentence, fields }, { format, who: `baton pubsub ${role}`, labels: { role } }));
  };
  return {
    write,
    writeProblem(thrown) {
      const code = thrown instanceof BatonError ? thrown.code : "INTERNAL";
      write("warning", "problem", messageOf(thrown), { code });
    },
  };
}

/** Milliseconds between two checks. */
const checkEveryMs = 500;

export interface ConnectionState {
  isConnected(): boolean;
  /** Consequence of the state, as part of a sentence after the name. */
  readonly lostSentence: string;
  readonly foundSentence: string;
}

export class ConnectionLog implements Disposable {
  readonly #log: ServiceLog;
  readonly #id: string;
  readonly #presence: ConnectionState;
  readonly #clock: Clock;
  /** Null while connected. */
  #lostAtMs: number | null = null;
  /** The state has changed since it was logged. */
  #wasOther = false;
  #cancel: () => void = () => {};

  /** Starts the checks; the connection exists at this time. */
  constructor(log: ServiceLog, id: string, presence: ConnectionState, clock: Clock) {
    this.#log = log;
    this.#id = id;
    this.#presence = presence;
    this.#clock = clock;
    this.#scheduleCheck();
  }

  [Symbol.dispose](): void {
    this.#cancel();
  }

  #scheduleCheck(): void {
    this.#cancel = this.#clock.startTimer(checkEveryMs, () => {
      this.#check();
      this.#scheduleCheck();
    });
  }

  #check(): void {
    const isThere = this.#presence.isConnected();
    const isOther = isThere !== (this.#lostAtMs === null);
    // A client that switches to another ZooKeeper server is briefly disconnected, which is not logged.
    const isLasting = isOther && this.#wasOther;
    this.#wasOther = isOther && !isLasting;
    if (!isLasting) return;
    const id = this.#id;
    if (this.#lostAtMs === null) {
      this.#lostAtMs = this.#clock.now();
      this.#log.write("warning", "disconnected", `"${id}" ${this.#presence.lostSentence}`, { id });
      return;
    }
    const seconds = Math.max(1, Math.round((this.#clock.now() - this.#lostAtMs) / 1000));
    this.#lostAtMs = null;
    this.#log.write("info", "reconnected", `"${id}" ${this.#presence.foundSentence}, after ${seconds} s`, {
      id,
      seconds,
    });
  }
}
