/** A line of a log on stderr: with the time; a sentence for people or JSON for programs. Pure but for the time. */

export interface LogEntry {
  readonly level: "detail" | "info" | "warning" | "error";
  /** Stable, and for programs. */
  readonly event: string;
  readonly sentence: string;
  readonly fields: Readonly<Record<string, string | number>>;
}

/** `who`: as sentences name it; `labels` stand in the JSON behind the level. */
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
