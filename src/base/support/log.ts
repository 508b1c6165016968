/** The function with which the parts of a service write to its log, one line for each event. */

/** `event` is a stable name, for programs; the sentence is for people. */
export type Log = (
  level: "detail" | "info" | "warning" | "error",
  event: string,
  sentence: string,
  fields?: Readonly<Record<string, string | number>>,
) => void;
