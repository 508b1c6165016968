/**
 * Keeps the rows up to date while a browser has the page open. Owns the rows and the session, and closes the session
 * when no page has been open for a minute.
 */
import {
  type FollowedFoldersRound,
  type FollowedObjectChange,
  followObjectFolders,
} from "../../src/coordination/admin/follow_folders.ts";
import { WatchedNodeReads } from "../../src/coordination/admin/watched_reads.ts";
import type { CoordinationServers } from "../../src/coordination/connect/coordination_servers.ts";
import { isTransientFailure } from "../../src/coordination/nodes/node_requests.ts";
import { errorMessage } from "../../src/base/errors.ts";
import { onAbort, TaskScope } from "../../src/base/support/abort.ts";
import type { Clock } from "../../src/base/support/clock.ts";
import { sleep } from "../../src/base/support/deadline.ts";
import { ListenerSet, OneTimeEvent } from "../../src/base/support/event.ts";
import { newGuid } from "../../src/base/support/guid.ts";
import type { Log } from "../../src/base/support/log.ts";
import { UiTableModel } from "../../src/operator/ui/table_model.ts";
import type { AboutRow, PoolItemRow, PoolRow, TickRow, UseRow } from "../../src/operator/ui/ui_rows.ts";
import type { ZooKeeper } from "../../src/protocols/zookeeper/zookeeper.ts";
import { followSessions } from "../follow_sessions.ts";
import { noTopRates, type ServicesReading, topRatesBetween } from "./top_reading.ts";
import { TopSources } from "./top_sources.ts";
import { uiFollowedFolders, type UiObjectRows } from "./read_rows.ts";
import type { UiCall } from "./ui_options.ts";

/** How long the session stays open after the last page was closed, in milliseconds. */
const idleMsMax = 60_000;
/**
 * How long changes are gathered before they are read, in milliseconds. Waking up for every change would double the
 * processor time.
 */
const gatherMs = 900;
/** Time between two readings of topics, stores and processes, in milliseconds. */
const servicesEveryMs = 2000;
/** Every n-th reading reads all topics and servers; the others read only those that have changed. */
const servicesWholeEvery = 60;
/** How long to wait before connecting again to servers that refused the session, in milliseconds. */
const refusedEveryMs = 10_000;
const poolItemsMax = 100;

type FollowedTable = UiObjectRows["table"];

/** The page's table for each folder of nodes. */
const followedTables: ReadonlyMap<string, FollowedTable> = new Map([
  ["locks", "locks"],
  ["elections", "elections"],
  ["barriers", "barriers"],
  ["gates", "barriers"],
  ["pools", "pools"],
  ["ticks", "ticks"],
]);

interface FeedProblems {
  readonly folders: readonly string[];
  readonly services: readonly string[];
}

export class UiFeed implements AsyncDisposable {
  readonly model = new UiTableModel();
  /** A random part of event ids, by which a page that was connected to an earlier process is recognized. */
  readonly instance = newGuid().slice(0, 8);
  readonly #call: UiCall;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #sources: TopSources;
  readonly #patched = new ListenerSet();
  readonly #readers = new ListenerSet();
  #readerCount = 0;
  #zk: ZooKeeper | null = null;
  #about: AboutRow;
  #problems: FeedProblems = { folders: [], services: [] };
  /** The table and row keys of each object that this session has read, by folder and name. */
  #keys = new Map<string, { readonly table: FollowedTable; readonly keys: readonly string[] }>();
  /** Pools as they were read, without their running jobs; and the locks that may be such jobs. */
  readonly #pools = new Map<string, PoolRow>();
  readonly #jobs = new Map<string, UseRow>();
  #before: ServicesReading | null = null;

  /** Throws USAGE and CONFIG for settings that cannot be used. */
  constructor(call: UiCall, { clock, log, version }: {
    readonly clock: Clock;
    readonly log: Log;
    readonly version: string;
  }) {
    this.#call = call;
    this.#clock = clock;
    this.#log = log;
    this.#sources = new TopSources(call);
    const { root } = call.values;
    this.#about = { servers: "", root, version, isConnected: false, problems: [], isComplete: false, actions: [] };
    this.#setAbout({});
    this.#publish();
  }

  /** The session, for actions; null while there is none. */
  get zk(): ZooKeeper | null {
    return this.#zk;
  }

  /** An open message store that the page shows. */
  storeAt(folder: string): ReturnType<TopSources["storeAt"]> {
    return this.#sources.storeAt(folder);
  }

  showActions(actions: AboutRow["actions"]): void {
    this.#setAbout({ actions });
    this.#publish();
  }

  /** Registers an open page until the result is disposed. */
  open(): Disposable {
    this.#readerCount++;
    this.#readers.notify();
    return new TaskScope(() => {
      this.#readerCount--;
      this.#readers.notify();
    });
  }

  /** Resolves after the next patch, after `withinMs`, or when the signal aborts. */
  async nextPatch(number: number, withinMs: number, signal: AbortSignal): Promise<void> {
    if (this.model.number !== number) return;
    const event = new OneTimeEvent();
    using _wakers = new TaskScope(
      this.#patched.subscribe(event.set),
      this.#clock.startTimer(withinMs, event.set),
      onAbort(signal, event.set),
    );
    await event.wait();
  }

  /** Follows the servers whenever a page is open, until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    let isFirst = true;
    while (!signal.aborted) {
      await this.#waitForReader(signal);
      if (signal.aborted) return;
      const active = new AbortController();
      using _ending = new TaskScope(onAbort(signal, (reason) => active.abort(reason)), this.#endWhenIdle(active));
      const values = isFirst ? this.#call.values : { ...this.#call.values, quiet: true };
      isFirst = false;
      try {
        const follow = (zk: ZooKeeper, place: CoordinationServers) => this.#follow(zk, place, active.signal);
        const options = { what: "the page", signal: active.signal, waitsForServer: true, gatherEventsMs: gatherMs };
        for await (const _ of followSessions({ ...this.#call, values }, follow, options));
      } catch (thrown) {
        if (!active.signal.aborted) {
          this.#log("error", "refused", errorMessage(thrown));
          this.#setAbout({ isConnected: false });
          this.#setProblems({ folders: [errorMessage(thrown)] });
          this.#publish();
          await sleep(this.#clock, refusedEveryMs, signal).catch(() => {});
        }
      }
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#sources[Symbol.asyncDispose]();
  }

  async #waitForReader(signal: AbortSignal): Promise<void> {
    while (this.#readerCount === 0 && !signal.aborted) {
      const event = new OneTimeEvent();
      using _wakers = new TaskScope(this.#readers.subscribe(event.set), onAbort(signal, event.set));
      await event.wait();
    }
  }

  /** Aborts `active` after a minute without an open page. Returns a function that cancels this. */
  #endWhenIdle(active: AbortController): () => void {
    let cancel = () => {};
    const look = () => {
      cancel();
      cancel = () => {};
      if (this.#readerCount > 0) return;
      cancel = this.#clock.startTimer(idleMsMax, () => active.abort(new Error("no page is open")));
    };
    const off = this.#readers.subscribe(look);
    look();
    return () => {
      off();
      cancel();
    };
  }

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
    using _scope = new TaskScope(
      onAbort(signal, (reason) => end.abort(reason)),
      zk.session.subscribe((change) => change === "state" && showState()),
      () => end.abort(new Error("the session has ended")),
    );
    this.#zk = zk;
    this.#keys = new Map();
    this.#setAbout({ servers, isConnected: true, isComplete: false });
    const polling = this.#pollServices(zk, end.signal);
    polling.catch((thrown) => end.abort(thrown));
    try {
      const folders = uiFollowedFolders(this.#about.root);
      for await (
        const round of followObjectFolders(zk, folders, { signal: end.signal, clock: this.#clock, gatherMs })
      ) {
        this.#applyRound(round);
        yield;
      }
      if (!signal.aborted) throw end.signal.reason;
    } finally {
      this.#zk = null;
      end.abort(new Error("the session has ended"));
      this.#setAbout({ isConnected: false });
      this.#publish();
      await polling.catch(() => {});
    }
  }

  #applyRound({ changes, unread, omitted }: FollowedFoldersRound<UiObjectRows>): void {
    const isFull = changes.map((change) => this.#applyChange(change)).includes(true);
    if (unread === 0 && !this.#about.isComplete) this.#removeStale();
    this.#countJobs();
    const reasons = omitted > 0 || isFull ? ["some objects are not shown: there are more than the page can show"] : [];
    this.#setProblems({ folders: reasons });
    if (unread === 0) this.#setAbout({ isComplete: true });
    this.#publish();
  }

  /** Applies one change. Returns true if a table is full. */
  #applyChange({ folder, name, value }: FollowedObjectChange<UiObjectRows>): boolean {
    const object = `${folder} ${name}`;
    const table = followedTables.get(folder.slice(folder.lastIndexOf("/") + 1));
    if (table === undefined) return false;
    for (const key of this.#keys.get(object)?.keys ?? []) if (!value?.rows.has(key)) this.#set(table, key, null);
    if (value === null) this.#keys.delete(object);
    else this.#keys.set(object, { table, keys: [...value.rows.keys()] });
    return [...value?.rows ?? []].map(([key, row]) => this.#set(table, key, row)).includes(false);
  }

  /** Sets or removes a row. Pools are only stored here; `#countJobs` publishes them with the number of their jobs. */
  #set(table: FollowedTable, key: string, row: UseRow | PoolRow | TickRow | null): boolean {
    if (table === "pools") {
      if (row === null) this.#pools.delete(key);
      else this.#pools.set(key, row as PoolRow);
      return row !== null || this.model.set(table, key, null);
    }
    if (table === "locks" && key.includes("/")) {
      if (row === null) this.#jobs.delete(key);
      else this.#jobs.set(key, row as UseRow);
    }
    return this.model.set(table, key, row as never);
  }

  /** Adds the running jobs to each pool. A job holds the lock COMPONENT/ITEM. */
  #countJobs(): void {
    for (const [name, pool] of this.#pools) {
      const prefix = `${name}/`;
      const held = [...this.#jobs].filter(([key, { holding }]) => key.startsWith(prefix) && holding !== 0);
      const running = held.slice(0, poolItemsMax).map(([key, { holders: [holder] }]): PoolItemRow => ({
        item: key.slice(prefix.length),
        state: "running",
        what: "",
        sinceMs: holder?.sinceMs ?? 0,
        by: holder === undefined ? "" : `${holder.user}@${holder.host} (pid ${holder.pid})`,
      }));
      this.model.set("pools", name, { ...pool, running: held.length, items: [...running, ...pool.items] });
    }
  }

  /** Removes rows that an earlier session read and whose objects no longer exist. */
  #removeStale(): void {
    for (const table of new Set(followedTables.values())) {
      const known = new Set([...this.#keys.values()].filter((one) => one.table === table).flatMap(({ keys }) => keys));
      for (const key of this.model.keys(table)) if (!known.has(key)) this.#set(table, key, null);
    }
  }

  /** Reads topics, stores and processes at intervals. Rejects if the servers refuse; returns when the session ends. */
  async #pollServices(zk: ZooKeeper, signal: AbortSignal): Promise<void> {
    const reads = new WatchedNodeReads(zk, () => {});
    for (let round = 1; !signal.aborted; round++) {
      if (round % servicesWholeEvery === 0) reads.forget();
      try {
        this.#applyServices(await this.#sources.readServices(reads.client, signal));
      } catch (thrown) {
        if (signal.aborted || zk.session.ended.aborted) return;
        if (!isTransientFailure(thrown)) throw thrown;
      }
      await sleep(this.#clock, servicesEveryMs, signal).catch(() => {});
    }
  }

  #applyServices(reading: ServicesReading): void {
    const rates = this.#before === null ? noTopRates : topRatesBetween(this.#before, reading);
    this.#before = reading;
    const { topics, pubsubServers, stores, processes, problems } = reading;
    this.model.replace("topics", new Map(topics.map((row) => [row.topic, row])));
    this.model.replace("servers", new Map(pubsubServers.map((row) => [row.server, row])));
    const rate = (folder: string) => rounded(rates.stores.get(folder) ?? null);
    this.model.replace("stores", new Map(stores.map((row) => [row.folder, { ...row, rate: rate(row.folder) }])));
    this.model.replace(
      "processes",
      new Map(processes.map(({ address, process, error, gauges }) => {
        const found = Object.entries(rates.processes.get(address) ?? {}).filter(([, number]) => number > 0);
        const byName = Object.fromEntries(found.map(([name, number]) => [name, rounded(number) ?? 0]));
        return [address, { address, process, error, gauges, rates: byName }];
      })),
    );
    this.#setProblems({ services: problems });
    this.#publish();
  }

  #setProblems(problems: Partial<FeedProblems>): void {
    this.#problems = { ...this.#problems, ...problems };
    this.#setAbout({ problems: [...this.#problems.folders, ...this.#problems.services] });
  }

  #setAbout(about: Partial<AboutRow>): void {
    this.#about = { ...this.#about, ...about };
    this.model.set("about", "about", this.#about);
  }

  #publish(): void {
    if (this.model.takePatch() !== null) this.#patched.notify();
  }
}

/** Rounds to one decimal place; more digits would change with every reading. */
const rounded = (rate: number | null) => rate === null ? null : Math.round(rate * 10) / 10;
