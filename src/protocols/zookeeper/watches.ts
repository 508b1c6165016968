/**
 * The watches of one session, and the requests that restore the watches after a reconnect. Paths include the chroot.
 * Source: ZKWatchManager.
 */
import { ByteWriter } from "../../base/wire/bytes.ts";
import type { WatchEventTypeName } from "./jute/zookeeper_operations.ts";
import { SetWatchesRequest } from "./jute/zookeeper_records.ts";
import type { Watcher } from "./zookeeper.ts";

/** The operation exists() sets an `exist` watch on a missing node, and a `data` watch on an existing one. */
export const watchKinds = ["data", "exist", "child"] as const;
export type WatchKind = (typeof watchKinds)[number];

/** The kinds of watches that each event triggers. */
const kindsOf: Record<WatchEventTypeName, readonly WatchKind[]> = {
  created: ["data", "exist"],
  dataChanged: ["data", "exist"],
  deleted: ["data", "exist", "child"],
  childrenChanged: ["child"],
};

/** The size limit of a SetWatches request in bytes, as in ClientCnxn. It is below the servers' limit of a frame. */
export const setWatchesBytesMax = 128 * 1024;

interface WatchEntry {
  readonly watchers: Set<Watcher>;
  /**
   * The zxid up to which events were delivered. Null while the current connection delivers events, because the limit is
   * then the last zxid seen. After a reconnect, it keeps its value until the server has confirmed the watch: other
   * responses may arrive earlier.
   */
  sinceZxid: bigint | null;
}

export interface SetWatchesBatch {
  readonly body: Uint8Array;
  /**
   * Called when the server has confirmed the request. From then on the server watches all paths, and it has reported
   * the missed events.
   */
  onConfirmed(): void;
}

export class SessionWatches {
  readonly #tables: Record<WatchKind, Map<string, WatchEntry>> = {
    data: new Map(),
    exist: new Map(),
    child: new Map(),
  };
  /** Persistent recursive watches of the current connection. */
  readonly #recursive = new Map<string, Set<Watcher>>();
  readonly #rearmBytesMax: number;

  /** `frameBytesMax` is the longest request that the servers accept. */
  constructor({ frameBytesMax = Infinity }: { readonly frameBytesMax?: number } = {}) {
    this.#rearmBytesMax = Math.min(setWatchesBytesMax, frameBytesMax);
  }

  /** The number of watched paths. A path with several kinds of watches counts for each kind. */
  get count(): number {
    return watchKinds.reduce((sum, kind) => sum + this.#tables[kind].size, 0);
  }

  /** Adds a watcher. The caller does this when the response arrives that has set the watch. */
  add(kind: WatchKind, path: string, watcher: Watcher): void {
    const table = this.#tables[kind];
    const entry = table.get(path);
    if (entry === undefined) table.set(path, { watchers: new Set([watcher]), sinceZxid: null });
    else entry.watchers.add(watcher);
  }

  /** Adds a watcher of all events at and below `path`, until the connection is lost. */
  addRecursive(path: string, watcher: Watcher): void {
    const watchers = this.#recursive.get(path);
    if (watchers === undefined) this.#recursive.set(path, new Set([watcher]));
    else watchers.add(watcher);
  }

  /** Returns the watchers of an event at `path`, without duplicates. Removes one-shot watches. */
  takeWatchers(type: WatchEventTypeName, path: string): Set<Watcher> {
    const taken = new Set<Watcher>();
    for (const kind of kindsOf[type]) {
      const entry = this.#tables[kind].get(path);
      if (entry === undefined) continue;
      for (const watcher of entry.watchers) taken.add(watcher);
      this.#tables[kind].delete(path);
    }
    for (const [top, watchers] of this.#recursive) {
      if (isAtOrBelow(path, top)) { for (const watcher of watchers) taken.add(watcher); }
    }
    return taken;
  }

  clear(): void {
    this.#recursive.clear();
    for (const kind of watchKinds) this.#tables[kind].clear();
  }

  /**
   * Returns the SetWatches requests that restore all watches on a new connection. The server then immediately reports
   * changes since `lastZxid`. For watches that the previous connection had not confirmed, it reports changes since an
   * earlier zxid. Drops recursive watches.
   */
  rearm(lastZxid: bigint): SetWatchesBatch[] {
    this.#recursive.clear();
    const paths = new Map<bigint, WatchedPath[]>();
    for (const kind of watchKinds) {
      for (const [path, entry] of this.#tables[kind]) {
        entry.sinceZxid ??= lastZxid;
        const since = paths.get(entry.sinceZxid);
        if (since === undefined) paths.set(entry.sinceZxid, [{ kind, path, entry }]);
        else since.push({ kind, path, entry });
      }
    }
    return [...paths].flatMap(([sinceZxid, watched]) => this.#batches(sinceZxid, watched));
  }

  #batches(sinceZxid: bigint, watched: readonly WatchedPath[]): SetWatchesBatch[] {
    const batches: SetWatchesBatch[] = [];
    let batch: WatchedPath[] = [];
    let bytes = 0;
    for (const one of watched) {
      // UTF-8 needs at most three bytes for each UTF-16 unit. The string's length takes four bytes.
      const bytesMax = one.path.length * 3 + 4;
      if (bytes > 0 && bytes + bytesMax > this.#rearmBytesMax - 64) {
        batches.push(batchOf(sinceZxid, batch));
        batch = [];
        bytes = 0;
      }
      batch.push(one);
      bytes += bytesMax;
    }
    batches.push(batchOf(sinceZxid, batch));
    return batches;
  }
}

function isAtOrBelow(path: string, top: string): boolean {
  return top === "/" || path.startsWith(top) && (path.length === top.length || path[top.length] === "/");
}

interface WatchedPath {
  readonly kind: WatchKind;
  readonly path: string;
  readonly entry: WatchEntry;
}

function batchOf(relativeZxid: bigint, watched: readonly WatchedPath[]): SetWatchesBatch {
  const writer = new ByteWriter();
  const of = (wanted: WatchKind) => watched.filter(({ kind }) => kind === wanted).map(({ path }) => path);
  SetWatchesRequest.write(writer, {
    relativeZxid,
    dataWatches: of("data"),
    existWatches: of("exist"),
    childWatches: of("child"),
  });
  return {
    body: writer.finish(),
    onConfirmed: () => {
      for (const { entry } of watched) entry.sinceZxid = null;
    },
  };
}
