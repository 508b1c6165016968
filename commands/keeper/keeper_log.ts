/** What a keeper says while it runs: a line each, with the time; sentences for people or JSON for programs. */
import type { Io } from "../../src/terminal/io.ts";
import { type LogEntry, logLine } from "../../src/terminal/log_line.ts";

const onDemandSentencesMax = 10_000;

/** `isOnDemand`: nobody watches it, and it must not fill the disk with what it says. */
export function keeperLog(io: Io, { format, isOnDemand }: {
  readonly format: "text" | "json";
  readonly isOnDemand: boolean;
}): (entry: LogEntry) => void {
  let said = 0;
  return (entry) => {
    if (!isOnDemand || ++said <= onDemandSentencesMax) io.err(logLine(entry, { format, who: "baton keeper" }));
  };
}
