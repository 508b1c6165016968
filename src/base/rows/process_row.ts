/** A process that serves /metrics. JSON output has exactly these fields. */
export interface ProcessMetricsRow {
  readonly address: string;
  /** The name of the kind of process, such as `publish/subscribe server`; null if the process could not be read. */
  readonly process: string | null;
  /** Why the process could not be read; null if it was read. */
  readonly error: string | null;
  /** The counters since the start of the process, by the name of what each counts, such as `requests`. */
  readonly counters: Readonly<Record<string, number>>;
  /** The current values, by the name of what each measures, such as `in flight`. */
  readonly gauges: Readonly<Record<string, number>>;
  /** The free space of the disk on which the process stores its data; null if it stores none, or does not tell. */
  readonly disk_free_bytes: number | null;
}

export interface MetricsProcessKind {
  readonly process: string;
  /** The prefix of the names of all metrics of this kind. baton recognizes the kind by this prefix. */
  readonly prefix: string;
  /**
   * The counters, by the rest of their metric's name after `prefix`. If `label` is set, each value of that label is
   * shown as a separate counter, such as `PUT requests`.
   */
  readonly counters: Readonly<Record<string, { readonly what: string; readonly label: string | null }>>;
  readonly gauges: Readonly<Record<string, string>>;
}
