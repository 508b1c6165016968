/** The log of a process on stderr: one line for each event, with the time; sentences for people or JSON for programs. */
import type { Log } from "../support/log.ts";
import type { Io } from "./io.ts";

/**
 * Prints only errors with `quiet`, and details only with `verbose`. `who`: the name of the process in text lines. `labels`: JSON fields
 * after the level.
 */
export function processLog(io: Io, { who, format, quiet = false, verbose = false, labels = {} }: {
  readonly who: string;
  readonly format: "text" | "json";
  readonly quiet?: boolean;
  readonly verbose?: boolean;
  readonly labels?: Readonly<Record<string, string>>;
}): Log {
  return (level, event, sentence, fields = {}) => {
    if ((quiet && level !== "error") || (level === "detail" && !verbose)) return;
    const time = new Date().toISOString();
    const mark = level === "info" || level === "detail" ? "" : `${level}: `;
    io.err(
      format === "json"
        ? `${JSON.stringify({ time, level, ...labels, event, message: sentence, ...fields })}\n`
        : `${who}: ${time} ${mark}${sentence}\n`,
    );
  };
}
