/** A log line for stderr with the current time, as text or JSON. */

export interface LogEntry {
  readonly level: "detail" | "info" | "warning" | "error";
  /** A stable name for programs. */
  readonly event: string;
  readonly sentence: string;
  readonly fields: Readonly<Record<string, string | number>>;
}

/** `who`: the name of the process in text lines. `labels`: JSON fields after the level. */
export function logLine(
  { level, event, sentence, fields }: LogEntry,
  { format, who, labels = {} }: {
    readonly format: "text" | "json";
    readonly who: string;
    readonly labels?: Readonly<Record<string, string>>;
  },
): string {
  const time = new Date().toISOString();
  if (format === "json") return `${JSON.stringify({ time, level, ...labels, event, message: sentence, ...fields })}\n`;
  const mark = level === "info" || level === "detail" ? "" : `${level}: `;
  return `${who}: ${time} ${mark}${sentence}\n`;
}
