/**
 * The watches of one session: who wants to know what, and how the server is told again after a reconnect.
 * Paths here are the server's, chroot included. Source: ZKWatchManager.
 */
import { ByteWriter } from "../../wire/bytes.ts";
import type { EventTypeName } from "../../wire/jute/operations.ts";
import { SetWatchesRequest } from "../../wire/jute/records.ts";
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

export class Watches {
  readonly #tables: Record<WatchKind, Map<string, Set<Watcher>>> = {
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

  add(kind: WatchKind, path: string, watcher: Watcher): void {
    const table = this.#tables[kind];
    const watchers = table.get(path);
    if (watchers === undefined) table.set(path, new Set([watcher]));
    else watchers.add(watcher);
  }

  /** The watchers that an event at `path` concerns, each once; they are watching no longer. */
  take(type: EventTypeName, path: string): Set<Watcher> {
    const taken = new Set<Watcher>();
    for (const kind of kindsOf[type]) {
      const watchers = this.#tables[kind].get(path);
      if (watchers === undefined) continue;
      for (const watcher of watchers) taken.add(watcher);
      this.#tables[kind].delete(path);
    }
    return taken;
  }

  clear(): void {
    for (const kind of watchKinds) this.#tables[kind].clear();
  }

  /** The bodies of the SetWatches requests that arm everything again; what changed since `lastZxid` fires at once. */
  rearm(lastZxid: bigint): Uint8Array[] {
    const bodies: Uint8Array[] = [];
    let batch = emptyBatch();
    let bytes = 0;
    const finish = () => {
      const writer = new ByteWriter(bytes + 64);
      SetWatchesRequest.write(writer, {
        relativeZxid: lastZxid,
        dataWatches: batch.data,
        existWatches: batch.exist,
        childWatches: batch.child,
      });
      bodies.push(writer.finish());
      batch = emptyBatch();
      bytes = 0;
    };
    for (const kind of watchKinds) {
      for (const path of this.#tables[kind].keys()) {
        // UTF-8 takes at most three bytes for a UTF-16 unit; four are the string's length.
        const bytesMax = path.length * 3 + 4;
        if (bytes > 0 && bytes + bytesMax > this.#rearmBytesMax - 64) finish();
        batch[kind].push(path);
        bytes += bytesMax;
      }
    }
    if (bytes > 0) finish();
    return bodies;
  }
}

function emptyBatch(): Record<WatchKind, string[]> {
  return { data: [], exist: [], child: [] };
}
