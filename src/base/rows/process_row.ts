/** Row of a process that serves /metrics. JSON prints it as it is. */
export interface ProcessMetricsRow {
  readonly address: string;
  /** Name of its kind; null if it could not be read. */
  readonly process: string | null;
  /** Why it could not be read. */
  readonly error: string | null;
  /** Counters since the start of the process by what they count, such as `requests`. */
  readonly counters: Readonly<Record<string, number>>;
  /** Current values by what they measure, such as `in flight`. */
  readonly gauges: Readonly<Record<string, number>>;
}

/** A kind of process, and the metrics that its row shows. */
export interface ProcessKind {
  readonly process: string;
  /** Prefix of all its metrics, by which it is recognized. */
  readonly prefix: string;
  /**
   * The counters by the suffix of their name. If `label` is set, each value of that label is shown as a separate
   * counter, such as `PUT requests`.
   */
  readonly counters: Readonly<Record<string, { readonly what: string; readonly label: string | null }>>;
  readonly gauges: Readonly<Record<string, string>>;
}
