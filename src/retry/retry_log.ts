/** The log of a processor: one line for each event, with the time; sentences for people or JSON for programs. */
import type { Io } from "../terminal/io.ts";
import { type LogEntry, logLine } from "../terminal/log_line.ts";

export type RetryLog = (
  level: LogEntry["level"],
  event: string,
  sentence: string,
  fields?: Readonly<Record<string, string | number>>,
) => void;

/** Prints only errors with `quiet`, and details only with `verbose`. */
export function retryLog(io: Io, { format, quiet, verbose }: {
  readonly format: "text" | "json";
  readonly quiet: boolean;
  readonly verbose: boolean;
}): RetryLog {
  return (level, event, sentence, fields = {}) => {
    if ((quiet && level !== "error") || (level === "detail" && !verbose)) return;
    io.err(logLine({ level, event, sentence, fields }, { format, who: "baton retry-processor" }));
  };
}
