/** What a role says while it runs: a line each, with the time; sentences for people or JSON for programs. */
import type { Io } from "../../src/terminal/io.ts";
import { logLine } from "../../src/terminal/log_line.ts";
import { BatonError, messageOf } from "../../src/errors.ts";

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
