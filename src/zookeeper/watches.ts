/**
 * The watches of one session: who wants to know what, and how the server is told again after a reconnect.
 * Paths here are the server's, chroot included. Source: ZKWatchManager.
 */
import { ByteWriter } from "../wire/bytes.ts";
import type { EventTypeName } from "../wire/jute/zookeeper_operations.ts";
import { SetWatchesRequest } from "../wire/jute/zookeeper_records.ts";
import type { Watcher } from "./zookeeper.ts";

/** `exist` is a watch on a node that was not there; for one that was, exists() sets a data watch. */
export const watchKinds = ["data", "exist", "child"] as const;
export type WatchKind = (typeof watchKinds)[number];

/** Which watches an event uses up. */
const kindsOf: Record<EventTypeName, readonly WatchKind[]> = {
  created: ["data", "exist"],
  dataChanged: ["data", "exist"],
  deleted: ["data", "exist", "child"],
  childrenChanged: ["child"],
};

/** As ClientCnxn: one SetWatches request stays under this, so that a server's frame limit is never met. */
export const setWatchesBytesMax = 128 * 1024;

/** The watchers of one kind at one path. */
interface WatchEntry {
  readonly watchers: Set<Watcher>;
  /**
   * What happened up to here has been told. Null while the connection at hand tells it: then that is whatever was seen last.
   * Not so while the connection has not yet confirmed the watch: answers about other things come before.
   */
  sinceZxid: bigint | null;
}

/** One SetWatches request. */
export interface RearmBatch {
  readonly body: Uint8Array;
  /** The server has answered it: it watches all of this, and has told what was missed. */
  confirmed(): void;
}

export class SessionWatches {
  readonly #tables: Record<WatchKind, Map<string, WatchEntry>> = {
    data: new Map(),
    exist: new Map(),
    child: new Map(),
  };
  readonly #rearmBytesMax: number;

  /** `frameBytesMax` is the longest request that the servers take. */
  constructor({ frameBytesMax = Infinity }: { readonly frameBytesMax?: number } = {}) {
    this.#rearmBytesMax = Math.min(setWatchesBytesMax, frameBytesMax);
  }

  /** Paths with a watch, each kind counted. */
  get count(): number {
    return watchKinds.reduce((sum, kind) => sum + this.#tables[kind].size, 0);
  }

  /** After the answer that has set it. Requests that arm watches again go before all others, and so do their answers. */
  add(kind: WatchKind, path: string, watcher: Watcher): void {
    const table = this.#tables[kind];
    const entry = table.get(path);
    if (entry === undefined) table.set(path, { watchers: new Set([watcher]), sinceZxid: null });
    else entry.watchers.add(watcher);
  }

  /** The watchers that an event at `path` concerns, each once; they are watching no longer. */
  take(type: EventTypeName, path: string): Set<Watcher> {
    const taken = new Set<Watcher>();
    for (const kind of kindsOf[type]) {
      const entry = this.#tables[kind].get(path);
      if (entry === undefined) continue;
      for (const watcher of entry.watchers) taken.add(watcher);
      this.#tables[kind].delete(path);
    }
    return taken;
  }

  clear(): void {
    for (const kind of watchKinds) this.#tables[kind].clear();
  }

  /**
   * The SetWatches requests that arm everything again at another connection; what changed since `lastZxid` fires at once. What
   * the connection before had not confirmed yet fires for whatever has changed since the one before that.
   */
  rearm(lastZxid: bigint): RearmBatch[] {
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

  #batches(sinceZxid: bigint, watched: readonly WatchedPath[]): RearmBatch[] {
    const batches: RearmBatch[] = [];
    let batch: WatchedPath[] = [];
    let bytes = 0;
    for (const one of watched) {
      // UTF-8 takes at most three bytes for a UTF-16 unit; four are the string's length.
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

interface WatchedPath {
  readonly kind: WatchKind;
  readonly path: string;
  readonly entry: WatchEntry;
}

function batchOf(relativeZxid: bigint, watched: readonly WatchedPath[]): RearmBatch {
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
    confirmed: () => {
      for (const { entry } of watched) entry.sinceZxid = null;
    },
  };
}
