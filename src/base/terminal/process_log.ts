/**
 * Writes the log of a process to stderr. Each event is one line with the time, either a sentence for people or JSON for
 * programs.
 */
import type { Log } from "../support/log.ts";
import { printable } from "../support/text.ts";
import type { Io } from "./io.ts";

/**
 * Returns the log of this process. If `quiet` is true, it keeps only errors; if `verbose` is true, it adds details.
 * `who` names the process in text lines; `labels` are additional fields of JSON lines.
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
 * Returns an Io that writes messages to a log, so that all parts of a service print only log lines. Messages become
 * warnings; if `quiet` is true, errors.
 */
export function ioWithLoggedMessages(io: Io, { log, quiet }: { readonly log: Log; readonly quiet: boolean }): Io {
  const level = quiet ? "error" : "warning";
  const err = (text: string) => {
    const lines = text.split("\n").filter((line) => line !== "");
    for (const line of lines) log(level, "message", line.replace(/^baton: /, ""));
  };
  return { ...io, err };
}

/** Escapes the control characters in JSON, because `Io.err` would replace them. */
export function escapeJsonControls(json: string): string {
  const escape = (unit: string) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`;
  return json.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, (character) => character.split("").map(escape).join(""));
}
