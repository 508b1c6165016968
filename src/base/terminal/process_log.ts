/**
 * The log of a process on stderr: one line for each event, with the time; sentences for people or JSON for programs.
 */
import type { Log } from "../support/log.ts";
import { printable } from "../support/text.ts";
import type { Io } from "./io.ts";

/**
 * Prints only errors with `quiet`, and details only with `verbose`. `who`: the name of the process in text lines.
 * `labels`: JSON fields after the level.
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
 * Returns an Io whose messages are lines of a log, which may be JSON: those of all parts of a service. With `quiet`
 * only errors are left.
 */
export function ioWithLoggedMessages(io: Io, { log, quiet }: { readonly log: Log; readonly quiet: boolean }): Io {
  const level = quiet ? "error" : "warning";
  const err = (text: string) => {
    const lines = text.split("\n").filter((line) => line !== "");
    for (const line of lines) log(level, "message", line.replace(/^baton: /, ""));
  };
  return { ...io, err };
}

/** JSON with escapes for what terminals obey, which JSON allows in its texts, and which `Io.err` would replace. */
export function escapeJsonControls(json: string): string {
  const escape = (unit: string) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`;
  return json.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, (character) => character.split("").map(escape).join(""));
}
