/**
 * Writes the log of a process to stderr: one line for each event, with the time, as a sentence for people or as JSON
 * for programs.
 */
import type { Log } from "../support/log.ts";
import { printable } from "../support/text.ts";
import type { Io } from "./io.ts";

/**
 * Returns the log of this process. `quiet` keeps only errors; `verbose` adds details. `who` names the process in text
 * lines; `labels` are JSON fields after the level.
 */
export function createProcessLog(io: Io, { who, format, quiet = false, verbose = false, labels = {} }: {
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
        ? `${escapeJsonControls(JSON.stringify({ time, level, ...labels, event, message: sentence, ...fields }))}\n`
        : `${who}: ${time} ${mark}${printable(sentence)}\n`,
    );
  };
}

/**
 * Returns an Io that writes messages to a log, as warnings, or as errors with `quiet`: a service's parts then print
 * nothing that is not a log line.
 */
export function ioWithLoggedMessages(io: Io, { log, quiet }: { readonly log: Log; readonly quiet: boolean }): Io {
  const level = quiet ? "error" : "warning";
  const err = (text: string) => {
    const lines = text.split("\n").filter((line) => line !== "");
    for (const line of lines) log(level, "message", line.replace(/^baton: /, ""));
  };
  return { ...io, err };
}

/** Escapes the characters in JSON that terminals obey: JSON allows them, but `Io.err` would replace them. */
export function escapeJsonControls(json: string): string {
  const escape = (unit: string) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`;
  return json.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, (character) => character.split("").map(escape).join(""));
}
