/**
 * Keeps the rows up to date, and records their totals for pages that are opened later. Reads more slowly while no page
 * is open. Owns the rows, the recorder and the session.
 */
import { NodeReadCache } from "../../src/coordination/nodes/watched_reads.ts";
import type { CoordinationServers } from "../../src/coordination/connect/coordination_servers.ts";
import { isTransientFailure } from "../../src/coordination/nodes/node_requests.ts";
import { HoldTimes } from "../../src/operator/ui/usual_time.ts";
import { errorMessage } from "../../src/base/errors.ts";
import { CleanupScope, onAbort, whenAborted } from "../../src/base/support/abort.ts";
import type { Clock } from "../../src/base/support/clock.ts";
import { sleep } from "../../src/base/support/deadline.ts";
import { ListenerSet, OneTimeEvent } from "../../src/base/support/event.ts";
import { newGuid } from "../../src/base/support/guid.ts";
import type { Log } from "../../src/base/support/log.ts";
import { asJudgedRows, FindingRecord } from "../../src/operator/ui/finding_record.ts";
import { UiTableModel } from "../../src/operator/ui/table_model.ts";
import type { JudgedRows } from "../../src/base/rows/finding.ts";
import type { RecordedRunRow } from "../../src/base/rows/schedule_row.ts";
import type { StoreRow } from "../../src/base/rows/store_row.ts";
import type { TopicListRow } from "../../src/base/rows/topic_row.ts";
import type { RowChange, RowChanges, RowSnapshot } from "../../src/base/rows/row_kinds.ts";
import { RateMeter } from "../../src/operator/lists/rates.ts";
import { RowRecorder, sampleEveryMs } from "../../src/operator/ui/row_recorder.ts";
import type { AboutRow, UiTableName } from "../../src/operator/ui/ui_rows.ts";
import type { ZooKeeper } from "../../src/protocols/zookeeper/zookeeper.ts";
import { followSessions } from "../follow_sessions.ts";
import type { PageAnswer, RowSource, UiPageRequests } from "../product.ts";
import { TopicReadings } from "./topic_readings.ts";
import type { OpenRowSource, RowSources } from "./row_sources.ts";
import type { UiCall } from "./ui_options.ts";

/**
 * How long changes are gathered before a reading, in milliseconds. A reading per change would double the processor
 * time.
 */
const gatherMs = 900;
/** Time between two readings of topics, stores and processes, which cannot be followed, in milliseconds. */
const pollEveryMs = 2000;
/** The same time while no page is open. */
const pollUnreadEveryMs = 10_000;
/** Time between two requests to the servers of topics, in milliseconds. */
const topicsEveryMs = 10_000;
/** How many locks' histories are read in each interval. */
const historiesAtOnce = 16;
/** One in this many readings reads all topics and servers. The other readings read only those that have changed. */
const polledWholeEvery = 60;
/** How long to wait before connecting again to servers that refused the session, in milliseconds. */
const refusedEveryMs = 10_000;

/** The page's table for each kind of row that is followed (read when it changes). */
const tables = {
  lock: "locks",
  election: "elections",
  barrier: "barriers",
  gate: "barriers",
  pool: "pools",
  schedule: "ticks",
} as const satisfies Record<RowChange["kind"], UiTableName>;

interface FeedProblems {
  readonly followed: readonly string[];
  readonly polled: readonly string[];
}

export class UiFeed {
  readonly model = new UiTableModel();
  /** Random part of event ids. It shows whether a page was connected to an earlier process. */
  readonly instance = newGuid().slice(0, 8);
  readonly #call: UiCall;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #sources: RowSources;
  readonly #meter = new RateMeter();
  readonly #readings: TopicReadings;
  readonly #historyAnswer: PageAnswer | undefined;
  #topics: readonly TopicListRow[] = [];
  readonly recorder = new RowRecorder(Date.now());
  readonly #findings = new FindingRecord();
  readonly #holdTimes = new HoldTimes();
  /** The totals of the rows that are polled; null while they are not known. */
  #polled: Omit<PolledTotals, "responseMs"> | null = null;
  readonly #patched = new ListenerSet();
  readonly #readers = new ListenerSet();
  #readerCount = 0;
  #zk: ZooKeeper | null = null;
  #about: AboutRow;
  #problems: FeedProblems = { followed: [], polled: [] };
  /** The keys of the rows that this session has read, by table. */
  #known = new Map<UiTableName, Set<string>>();

  /** `answers` has the requests for details, of which `/topic` and `/history` are made here, too. */
  constructor(call: UiCall, { sources, answers, clock, log, version }: {
    readonly sources: RowSources;
    readonly answers: UiPageRequests["answers"];
    readonly clock: Clock;
    readonly log: Log;
    readonly version: string;
  }) {
    this.#call = call;
    this.#clock = clock;
    this.#log = log;
    this.#sources = sources;
    this.#readings = new TopicReadings(answers["/topic"]);
    this.#historyAnswer = answers["/history"];
    const { root } = call.values;
    const state = { isConnected: false, responseMs: null, isComplete: false };
    this.#about = { servers: "", root, version, ...state, problems: [], actions: [] };
    this.#setAbout({});
    this.#publish();
  }

  /** The current session, which actions use; null while there is none. */
  get zk(): ZooKeeper | null {
    return this.#zk;
  }

  showActions(actions: AboutRow["actions"]): void {
    this.#setAbout({ actions });
    this.#publish();
  }

  /** Registers an open page until the result is disposed. */
  open(): Disposable {
    this.#readerCount++;
    this.#readers.notify();
    return new CleanupScope(() => {
      this.#readerCount--;
      this.#readers.notify();
    });
  }

  /** Resolves when there is a patch after `number`, after `withinMs` milliseconds, or when the signal aborts. */
  async nextPatch(number: number, withinMs: number, signal: AbortSignal): Promise<void> {
    if (this.model.number !== number) return;
    const event = new OneTimeEvent();
    using _wakers = new CleanupScope(
      this.#patched.subscribe(event.set),
      this.#clock.startTimer(withinMs, event.set),
      onAbort(signal, event.set),
    );
    await event.wait();
  }

  /** Follows the servers until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    void this.#record(signal);
    let isFirst = true;
    while (!signal.aborted) {
      const values = isFirst ? this.#call.values : { ...this.#call.values, quiet: true };
      isFirst = false;
      try {
        const follow = (zk: ZooKeeper, place: CoordinationServers) => this.#follow(zk, place, signal);
        const options = { what: "the page", signal, waitsForServer: true, gatherEventsMs: gatherMs };
        for await (const _ of followSessions({ ...this.#call, values }, follow, options));
      } catch (thrown) {
        if (!signal.aborted) {
          this.#log("error", "refused", errorMessage(thrown));
          this.#setAbout({ isConnected: false });
          this.#setProblems({ followed: [errorMessage(thrown)] });
          this.#publish();
          await sleep(this.#clock, refusedEveryMs, signal).catch(() => {});
        }
      }
    }
  }

  /** Samples the totals and judges all rows at intervals, while a server responds. */
  async #record(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const { isConnected, isComplete, responseMs } = this.#about;
      const isKnown = isConnected && isComplete;
      const polled = isKnown && this.#polled !== null ? { ...this.#polled, responseMs } : null;
      this.recorder.sample(Date.now(), polled);
      for (const table of isKnown ? new Set(Object.values(tables)) : []) this.#judgeRowsOf(table);
      this.#publish();
      await sleep(this.#clock, sampleEveryMs, signal).catch(() => {});
    }
  }

  /** Waits until the time passes, a page is opened or the signal aborts. */
  async #pauseUnlessOpened(ms: number, signal: AbortSignal): Promise<void> {
    const event = new OneTimeEvent();
    using _wakers = new CleanupScope(
      this.#readers.subscribe(event.set),
      this.#clock.startTimer(ms, event.set),
      onAbort(signal, event.set),
    );
    await event.wait();
  }

  // deno-lint-ignore require-yield -- the rows go to the model
  async *#follow(
    zk: ZooKeeper,
    { servers }: CoordinationServers,
    signal: AbortSignal,
  ): AsyncGenerator<void, void, void> {
    const end = new AbortController();
    const showState = () => {
      this.#setAbout({ isConnected: zk.session.state === "connected" });
      this.#publish();
    };
    using _scope = new CleanupScope(
      onAbort(signal, (reason) => end.abort(reason)),
      zk.session.subscribe((change) => change === "state" && showState()),
      () => end.abort(new Error("the session has ended")),
    );
    this.#zk = zk;
    this.#known = new Map();
    this.#findings.startAgain();
    this.#setAbout({ servers, isConnected: true, isComplete: false });
    const followed = this.#sources.all.filter(({ source }) => source.follow !== undefined);
    const polled = this.#sources.all.filter(({ source }) => source.follow === undefined);
    const tasks = [
      ...followed.map(({ source }) => this.#followSource(zk, source, end.signal)),
      this.#poll(zk, polled, end.signal),
      this.#readTopics(zk, end.signal),
      this.#readHistories(zk, end.signal),
      this.#measureResponses(zk, end.signal),
    ];
    for (const task of tasks) task.catch((thrown) => end.abort(thrown));
    try {
      await whenAborted(end.signal);
      if (!signal.aborted) throw end.signal.reason;
    } finally {
      this.#zk = null;
      end.abort(new Error("the session has ended"));
      this.#setAbout({ isConnected: false, responseMs: null });
      this.#publish();
      await Promise.allSettled(tasks);
    }
  }

  /** Applies the changes of a source. Rejects when the session ends or a request is refused. */
  async #followSource(zk: ZooKeeper, source: RowSource, signal: AbortSignal): Promise<void> {
    const rounds = source.follow?.(zk, { signal, clock: this.#clock, gatherMs }) ?? [];
    for await (const round of rounds) this.#applyRound(round);
  }

  #applyRound({ changes, isComplete, isCut }: RowChanges): void {
    const isFull = changes.map((change) => this.#applyChange(change)).includes(true);
    if (isComplete && !this.#about.isComplete) this.#removeStale();
    const reasons = isCut || isFull ? ["some objects are not shown: there are more than the page can show"] : [];
    this.#setProblems({ followed: reasons });
    if (isComplete) this.#setAbout({ isComplete: true });
    this.#publish();
  }

  /** Applies one change. Returns true if the table is full. */
  #applyChange(change: RowChange): boolean {
    const { kind, key: name, row } = change;
    const table = tables[kind];
    const key = kind === "gate" ? `gate ${name}` : name; // barriers and gates share a table
    const known = this.#known.get(table) ?? new Set();
    this.#known.set(table, known);
    if (row === null) known.delete(key);
    else known.add(key);
    const at = { nowMs: Date.now(), isNew: !this.#about.isComplete };
    if (change.kind === "lock" || change.kind === "election") {
      this.recorder.noteObject(`${kind} ${name}`, change.row, at);
      if (kind === "lock") this.#holdTimes.note(name, change.row, at.nowMs);
    } else if (change.kind === "schedule") this.recorder.noteSchedule(name, change.row, at);
    this.#judge(table, new Map([[key, row === null ? {} : asJudgedRows(table, row as never)]]));
    const shown = kind === "lock" && row !== null ? { ...row, usual_ms: this.#holdTimes.usualMs(name) } : row;
    return !this.model.set(table, key, shown as never);
  }

  /** Judges these objects; with `isWhole`, the findings of all other objects of the table end. */
  #judge(table: UiTableName, objects: ReadonlyMap<string, JudgedRows>, { isWhole = false } = {}): void {
    const nowMs = Date.now();
    const changes = isWhole
      ? this.#findings.judgeTable(table, objects, nowMs)
      : [...objects].flatMap(([key, rows]) => this.#findings.judge({ table, key }, rows, nowMs));
    for (const change of changes) {
      this.recorder.noteFinding(change, nowMs);
      this.model.set("findings", change.key, change.row);
    }
  }

  #judgeRowsOf(table: UiTableName): void {
    const rows = this.model.keys(table).map((key) => [key, this.model.row(table, key)] as const);
    const judged = rows.map(([key, row]) => [key, row === null ? {} : asJudgedRows(table, row)] as const);
    this.#judge(table, new Map(judged), { isWhole: true });
  }

  /** Removes rows of an earlier session that this session has not found again. */
  #removeStale(): void {
    for (const table of new Set(Object.values(tables))) {
      for (const key of this.model.keys(table)) {
        if (this.#known.get(table)?.has(key)) continue;
        this.model.set(table, key, null);
        this.#judge(table, new Map([[key, {}]]));
      }
    }
  }

  /** Reads sources at intervals until the session ends. Rejects if a request is refused. */
  async #poll(zk: ZooKeeper, sources: readonly OpenRowSource[], signal: AbortSignal): Promise<void> {
    const reads = new NodeReadCache(zk, () => {});
    const kinds = sources.flatMap((one) => one.kinds);
    for (let round = 1; !signal.aborted; round++) {
      if (round % polledWholeEvery === 0) reads.forget();
      try {
        const request = { kinds, all: false, long: false, signal };
        this.#applyReading(await this.#sources.readFrom(sources, reads.client, request));
      } catch (thrown) {
        if (signal.aborted || zk.session.ended.aborted) return;
        if (!isTransientFailure(thrown)) throw thrown;
      }
      await this.#pauseUnlessOpened(this.#readerCount === 0 ? pollUnreadEveryMs : pollEveryMs, signal);
    }
  }

  /** Reads at intervals how the topics do, until the session ends. */
  async #readTopics(zk: ZooKeeper, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const served = this.#topics.filter((row) => row.served).map(({ topic }) => topic);
      const read = await this.#readings.readSome(served, { zk: () => zk, clock: this.#clock, signal });
      for (const topic of read) {
        const reading = this.#readings.readingOf(topic);
        if (reading !== null) this.recorder.noteTopic(topic, reading, Date.now());
      }
      this.recorder.keepTopics(new Set(this.#topics.map(({ topic }) => topic)));
      this.#showTopics();
      const details = [...this.#readings.answers()].map(([topic, row]) => [topic, { topicDetails: [row] }] as const);
      this.#judge("topics", new Map(details), { isWhole: true });
      this.#publish();
      const ms = served.length === 0 ? pollEveryMs : topicsEveryMs;
      await sleep(this.#clock, ms, signal).catch(() => {});
    }
  }

  /** Measures at intervals how long the server takes to answer, until the session ends. */
  async #measureResponses(zk: ZooKeeper, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const beganMs = this.#clock.now();
      const isAnswered = await zk.exists(this.#about.root).then(() => true, (thrown: unknown) => {
        if (signal.aborted || isTransientFailure(thrown)) return false;
        throw thrown;
      });
      const ms = this.#clock.now() - beganMs;
      this.#setAbout({ responseMs: isAnswered ? Math.round(10 * ms) / 10 : null });
      await sleep(this.#clock, sampleEveryMs, signal).catch(() => {});
    }
  }

  /** Reads the history of locks at intervals, those that are held the longest first, until the session ends. */
  async #readHistories(zk: ZooKeeper, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      for (const name of this.#holdTimes.takeUnasked(historiesAtOnce)) {
        const query = new URLSearchParams({ kind: "lock", name });
        const runs = await this.#historyAnswer?.(query, { zk: () => zk, clock: this.#clock, signal }).catch(() => []);
        this.#holdTimes.noteHistory(name, runs as readonly RecordedRunRow[] ?? []);
        const row = this.model.row("locks", name);
        if (row !== null) this.model.set("locks", name, { ...row, usual_ms: this.#holdTimes.usualMs(name) });
      }
      this.#publish();
      await sleep(this.#clock, sampleEveryMs, signal).catch(() => {});
    }
  }

  #showTopics(): void {
    const rows = this.#topics.map((row) => ({ ...row, reading: this.#readings.readingOf(row.topic) }));
    this.model.replace("topics", new Map(rows.map((row) => [row.topic, row])));
  }

  #applyReading({ rows, problems = [] }: RowSnapshot): void {
    const rates = this.#meter.measure(rows, Date.now());
    const { topic = [], server = [], store = [], process = [] } = rows;
    this.#topics = topic;
    this.#showTopics();
    this.model.replace("servers", new Map(server.map((row) => [row.server, row])));
    const served = Map.groupBy(topic, ({ server }) => server);
    this.#judge("servers", new Map([...served].map(([id, topics]) => [id, { topic: topics }])), { isWhole: true });
    const rate = (folder: string) => rounded(rates.stores.get(folder) ?? null);
    this.model.replace("stores", new Map(store.map((row) => [row.folder, { ...row, rate: rate(row.folder) }])));
    this.#judgeRowsOf("stores");
    this.model.replace(
      "processes",
      new Map(process.map(({ counters: _counters, ...row }) => {
        const found = Object.entries(rates.processes.get(row.address) ?? {}).filter(([, number]) => number > 0);
        const byName = Object.fromEntries(found.map(([name, number]) => [name, rounded(number) ?? 0]));
        return [row.address, { ...row, rates: byName }];
      })),
    );
    this.#judgeRowsOf("processes");
    const topics = this.#readings.totals(this.#topics.filter(({ served }) => served).length, Date.now());
    this.#polled = { ...topics, ...polledTotals(store, rates.stores) };
    this.#setProblems({ polled: problems });
    this.#publish();
  }

  #setProblems(problems: Partial<FeedProblems>): void {
    this.#problems = { ...this.#problems, ...problems };
    this.#setAbout({ problems: [...this.#problems.followed, ...this.#problems.polled] });
  }

  #setAbout(about: Partial<AboutRow>): void {
    this.#about = { ...this.#about, ...about };
    this.model.set("about", "about", this.#about);
  }

  #publish(): void {
    if (this.model.takePatch() !== null) this.#patched.notify();
  }
}

type PolledTotals = NonNullable<Parameters<RowRecorder["sample"]>[1]>;

function polledTotals(stores: readonly StoreRow[], rates: ReadonlyMap<string, number>) {
  const sum = (count: (row: StoreRow) => number) => stores.reduce((total, row) => total + count(row), 0);
  const known = rates.size === 0 ? null : rounded(sum(({ folder }) => rates.get(folder) ?? 0));
  return {
    pending: sum(({ states }) => states.waiting.count),
    dead: sum(({ states }) => states.dead.count),
    delivered: stores.length === 0 ? 0 : known,
  };
}

/** Rounds to one decimal place; more digits would change with every reading. */
const rounded = (rate: number | null) => rate === null ? null : Math.round(rate * 10) / 10;
