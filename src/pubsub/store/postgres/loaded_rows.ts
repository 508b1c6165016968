/**
 * Keeps loaded rows of a shared database in memory until the next commit. The engine reads the rows through
 * `ClientReader` and `MessageReader`, which throw DataNotLoadedError for data that was not loaded.
 */
import { DamageError, formatMessageRange } from "../../../base/storage/damage.ts";
import { DataNotLoadedError } from "../rows/loaded_data.ts";
import type { StoredMsgId, TopicClient } from "../rows/topic_client.ts";
import type {
  ClientReader,
  ExportedRow,
  LogRow,
  LogRowHead,
  MessageReader,
  MissingTopicData,
} from "../rows/topic_rows.ts";
import type { PublisherWindow } from "../decisions/publisher_window.ts";
import { LogRowCache } from "../rows/row_cache.ts";
import { logRowCacheBytesMax } from "../limits/topic_store_limits.ts";

/** Returns a key that identifies missing data by its kind and its topic or client. */
function missingDataName(lack: MissingTopicData): string {
  const { kind } = lack;
  switch (kind) {
    case "readWindows":
    case "readKeys":
      return `${kind} ${lack.client.topicId} ${lack.client.id}`;
    case "findClient":
    case "clientsAfter":
      return `${kind} ${lack.topicId} ${lack.name ?? ""}`;
    case "oldestPublishers":
      return `${kind} ${lack.topicId} ${lack.most}`;
    case "countBetween":
      return `${kind} ${lack.topicId} ${lack.from} ${lack.to}`;
    case "firstStored":
      return `${kind} ${lack.topicId}`;
    default:
      return `${kind} ${lack.opening} ${lack.id}`;
  }
}

export class LoadedTopicRows {
  /** The results by `missingDataName`. If a result is an error, reading it throws that error. */
  readonly #results = new Map<string, unknown>();
  readonly #cache = new LogRowCache<string>(logRowCacheBytesMax);
  /**
   * The number of topics that were opened so far. Rows that were read before a topic's last opening may be outdated.
   */
  #openings = 0;
  readonly #runs = new LoadedLogRowHeads();
  readonly clients: ClientReader;

  constructor() {
    this.clients = {
      findClient: (topicId, name) => this.#read<TopicClient | null>({ kind: "findClient", topicId, name }),
      notFoundError: (name) => new DamageError(`client ${JSON.stringify(name)} is not found`),
      readWindows: (client) => this.#read<Map<number, PublisherWindow>>({ kind: "readWindows", client }),
      readKeys: (client) => this.#read<StoredMsgId[]>({ kind: "readKeys", client }),
      oldestPublishers: (topicId, most) => this.#read<TopicClient[]>({ kind: "oldestPublishers", topicId, most }),
      clientsAfter: (topicId, name) => this.#read<TopicClient[]>({ kind: "clientsAfter", topicId, name }),
    };
  }

  set(lack: MissingTopicData, result: unknown): void {
    this.#results.set(missingDataName(lack), result);
  }

  /** Forgets all results, because a commit may have changed their rows. Also called between the pieces of an export. */
  forget(): void {
    this.#results.clear();
  }

  /** Adds consecutive rows to the cache. */
  cache(opening: number, heads: readonly LogRowHead[], rows: readonly LogRow[]): void {
    if (heads.length === 0) return;
    for (const row of rows) this.#cache.set(`${opening} ${row.first}`, row);
    this.#runs.add(opening, heads);
  }

  /** Returns the reader of a topic that was just opened; `name` is for error messages. */
  messagesOf(topicId: number, name: string): MessageReader {
    const opening = ++this.#openings;
    this.forget();
    const keyOf = (first: number) => `${opening} ${first}`;
    const cached = (first: number) => this.#cache.get(keyOf(first));
    return {
      findRowUpTo: (id) =>
        this.#runs.find(opening, id) ?? this.#read<LogRowHead | null>({ kind: "findRowUpTo", topicId, id, opening }),
      findRowAfter: (id) => {
        const next = this.#runs.find(opening, id + 1);
        return next?.first === id + 1
          ? next
          : this.#read<LogRowHead | null>({ kind: "findRowAfter", topicId, id, opening });
      },
      rowReadAhead: cached,
      load: ({ id }) => cached(id) ?? this.#read<LogRow>({ kind: "load", topicId, id, opening }),
      countBetween: (from, to) => this.#read<number>({ kind: "countBetween", topicId, from, to }),
      rowsAfter: (last) => this.#read<ExportedRow[]>({ kind: "rowsAfter", topicId, id: last, opening }),
      firstStored: () => this.#read<number | null>({ kind: "firstStored", topicId }),
      cache: (row) => this.#cache.set(keyOf(row.first), row),
      uncache: ({ id }) => {
        this.#cache.delete(keyOf(id));
        this.#runs.remove(opening, id);
      },
      missingRowError: (first, last) =>
        new DamageError(`${formatMessageRange(first, last)} of topic ${JSON.stringify(name)}: the row is missing`),
    };
  }

  #read<Result>(lack: MissingTopicData): Result {
    const result = this.#results.get(missingDataName(lack));
    if (result === undefined) throw new DataNotLoadedError(lack);
    if (result instanceof Error) throw result;
    return result as Result;
  }
}

/**
 * The most runs of rows that are remembered for each opening of a topic. Subscribers at different positions need
 * different runs.
 */
const runsMax = 32;

/** The most row heads that are remembered in total. A head takes about 100 bytes. */
const headsMaxDefault = 65_536;

/**
 * The heads of log rows that were read together from a shared database. A run has the heads of consecutive rows of one
 * opening. Keeps the newest runs, up to a number of heads for the whole store.
 */
export class LoadedLogRowHeads {
  readonly #headsMax: number;
  /**
   * The runs by opening. For each opening, the newest run comes first. The openings are ordered by the time of their
   * last run, the oldest first.
   */
  readonly #runs = new Map<number, LogRowHead[][]>();
  #count = 0;

  constructor(headsMax = headsMaxDefault) {
    this.#headsMax = headsMax;
  }

  get count(): number {
    return this.#count;
  }

  /** Adds the heads of consecutive rows. */
  add(opening: number, heads: readonly LogRowHead[]): void {
    const runs = this.#runs.get(opening) ?? [];
    this.#runs.delete(opening);
    this.#runs.set(opening, runs);
    runs.unshift([...heads]);
    this.#count += heads.length;
    if (runs.length > runsMax) this.#dropLast(opening, runs);
    for (const [oldId, old] of this.#runs) {
      while (this.#count > this.#headsMax && old.length > 0) this.#dropLast(oldId, old);
      if (this.#count <= this.#headsMax) return;
    }
  }

  /** Returns the head of the row with this message, if the head is remembered. */
  find(opening: number, id: number): LogRowHead | undefined {
    for (const run of this.#runs.get(opening) ?? []) {
      if ((run[0]?.first ?? Infinity) > id || (run.at(-1)?.last ?? 0) < id) continue;
      const found = run.find(({ first, last }) => first <= id && last >= id);
      if (found !== undefined) return found;
    }
    return undefined;
  }

  remove(opening: number, first: number): void {
    const runs = this.#runs.get(opening) ?? [];
    for (const run of runs) {
      const index = run.findIndex((head) => head.first === first);
      if (index >= 0) this.#count -= run.splice(index, 1).length;
    }
    const left = runs.filter((run) => run.length > 0);
    if (left.length === runs.length) return;
    if (left.length > 0) this.#runs.set(opening, left);
    else this.#runs.delete(opening);
  }

  #dropLast(opening: number, runs: LogRowHead[][]): void {
    this.#count -= runs.pop()?.length ?? 0;
    if (runs.length === 0) this.#runs.delete(opening);
  }
}
