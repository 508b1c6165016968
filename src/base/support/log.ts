/** The function that writes to the log of a service, one line for each event. */

/** Writes an event to the log. `event` is a stable name for programs; `sentence` is for people. */
export type Log = (
  level: "detail" | "info" | "warning" | "error",
  event: string,
  sentence: string,
  fields?: Readonly<Record<string, string | number>>,
) => void;
