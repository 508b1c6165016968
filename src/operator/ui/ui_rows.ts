/** The types of the rows that `baton ui` sends to its page. Shared by the program and the page. */

/** A process that holds an object or waits for it. */
export interface PersonRow {
  /** The id for `baton break --holder`; null for a gate. */
  readonly id: string | null;
  readonly user: string;
  readonly host: string;
  readonly pid: number;
  /** First word of its command. */
  readonly command: string;
  /** Wall clock of its host, in milliseconds; 0: unknown. */
  readonly sinceMs: number;
  /** `exclusive`, `shared`, `permit`; null for a barrier or a gate. */
  readonly mode: string | null;
  readonly reason: string;
  /** The value of an election candidate; else empty. */
  readonly value: string;
  /** Fencing token in decimal digits; null for a waiter. */
  readonly token: string | null;
  /** Place in the queue, or rank in a barrier; null for a holder. */
  readonly place: number | null;
  /** The user who asked for the release, or null. */
  readonly askedBy: string | null;
}

/** A lock, an election, a barrier or a gate. */
export interface UseRow {
  readonly kind: "lock" | "election" | "barrier" | "gate";
  readonly name: string;
  /** Null if an ACL hides the number. */
  readonly holding: number | null;
  readonly waiting: number | null;
  /** Number of permits, or of members that a barrier needs. */
  readonly limit: number | null;
  /** The first holders and waiters; `holding` and `waiting` count all of them. */
  readonly holders: readonly PersonRow[];
  readonly waiters: readonly PersonRow[];
  /** Why the object could not be read, or null. */
  readonly problem: string | null;
}

export interface PoolRow {
  readonly name: string;
  readonly running: number;
  readonly done: number;
  readonly failed: number;
  /** The first running items and the first failed items. */
  readonly items: readonly PoolItemRow[];
}

export interface PoolItemRow {
  readonly item: string;
  readonly state: "running" | "failed";
  readonly by: string;
  readonly sinceMs: number;
  /** How the command ended: `exited with 3`. */
  readonly what: string;
}

/** One try of a tick, or a range of ticks that were skipped or missed. */
export interface TickRunRow {
  readonly result: string;
  readonly tickMs: number;
  readonly untilMs: number;
  readonly count: number;
  readonly attempt: number;
  readonly host: string;
  readonly beganMs: number | null;
  readonly endedMs: number | null;
  readonly exitCode: number | null;
  readonly signal: string | null;
  readonly why: string;
}

/** One schedule of a lock. */
export interface TickRow {
  readonly name: string;
  readonly schedule: string;
  readonly zone: string;
  readonly nextMs: number | null;
  readonly open: {
    readonly tickMs: number;
    readonly host: string;
    readonly beganMs: number;
    readonly isHeld: boolean;
  } | null;
  /** Newest last. */
  readonly runs: readonly TickRunRow[];
}

export interface ShownTopicRow {
  readonly topic: string;
  readonly server: string;
  readonly epoch: number;
  readonly state: string;
}

export interface ServerRow {
  readonly server: string;
  readonly endpoint: string | null;
  readonly topics: number;
  readonly draining: boolean;
}

/** A message store of this machine. */
export interface StoreRow {
  readonly name: string;
  readonly folder: string;
  readonly isPaused: boolean;
  readonly waiting: number;
  readonly inFlight: number;
  readonly dead: number;
  readonly done: number;
  readonly oldestMs: number | null;
  readonly nextMs: number | null;
  /** Messages delivered per second since the previous reading; null before the second reading. */
  readonly rate: number | null;
}

/** A process that serves /metrics. */
export interface MetricsRow {
  readonly address: string;
  readonly process: string | null;
  readonly error: string | null;
  readonly gauges: Readonly<Record<string, number>>;
  /** The rates of counters, per second. */
  readonly rates: Readonly<Record<string, number>>;
}

/** One dead letter, without its body. */
export interface DeadLetterRow {
  readonly id: string;
  readonly seq: number;
  readonly key: string | null;
  readonly reason: string | null;
  readonly tries: number;
  readonly firstMs: number;
  /** When the last try ended. A later try changes it, which shows that the page is old. */
  readonly lastMs: number | null;
  readonly error: string | null;
  readonly bytes: number;
  /** True if the dead letter was delivered to the sink and can no longer be redriven. */
  readonly isForwarded: boolean;
}

/** A page of at most 100 dead letters, the oldest first. */
export interface DeadLetterPage {
  readonly letters: readonly DeadLetterRow[];
  readonly hasMore: boolean;
}

/** The answer of the server that owns a topic. */
export interface TopicDetailRow {
  readonly topic: string;
  readonly owner: string;
  /** When the server answered; two answers give the rate. */
  readonly atMs: number;
  readonly first: number;
  readonly end: number;
  readonly bytes: number;
  readonly clients: number;
  readonly subscribers: number;
  /** The subscribers that are furthest behind. */
  readonly slowest: readonly { readonly client: string; readonly position: number; readonly pending: number }[];
  readonly damage: string | null;
}

/** An action that a page requested, and its result. */
export interface ActionRow {
  readonly number: number;
  readonly atMs: number;
  readonly what: string;
  readonly state: "running" | "done" | "failed";
  readonly result: string;
}

/** The state of `baton ui` itself. */
export interface AboutRow {
  readonly servers: string;
  readonly root: string;
  readonly version: string;
  /** False while no coordination server responds, so that the other rows are old. */
  readonly isConnected: boolean;
  /** Messages about what could not be read. */
  readonly problems: readonly string[];
  /** False while the first reading is not complete. */
  readonly isComplete: boolean;
  /** The last actions, the newest first. */
  readonly actions: readonly ActionRow[];
}

/** The first event of a stream. It says what this page may do. */
export interface UiHello {
  /** The wall clock of `baton ui`, in milliseconds, from which the page computes ages. */
  readonly nowMs: number;
  readonly mayAct: boolean;
  readonly showsBodies: boolean;
}

/** The tables of the page and their rows, by key. */
export interface UiTables {
  readonly locks: UseRow;
  readonly elections: UseRow;
  readonly barriers: UseRow;
  readonly pools: PoolRow;
  readonly ticks: TickRow;
  readonly topics: ShownTopicRow;
  readonly servers: ServerRow;
  readonly stores: StoreRow;
  readonly processes: MetricsRow;
  readonly about: AboutRow;
}

export type UiTableName = keyof UiTables;

/** The changed rows by table and key; null for a row that is gone. */
export type UiTablePatch = { readonly [Name in UiTableName]?: Readonly<Record<string, UiTables[Name] | null>> };
