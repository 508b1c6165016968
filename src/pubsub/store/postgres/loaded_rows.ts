/**
 * Rows of a shared database that were brought into memory, until the next commit. The methods that read are those of
 * the engine: they return what was brought, and throw DataNotLoaded for everything else.
 */
import { DamageError, rangeOfMessages } from "../../../base/storage/damage.ts";
import { DataNotLoaded } from "../rows/store_steps.ts";
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

/** The name of data: what was asked for, and of which topic or client. */
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
  /** Results by the name of what was asked for; an error is thrown to whom asks. */
  readonly #results = new Map<string, unknown>();
  readonly #cache = new LogRowCache<string>(logRowCacheBytesMax);
  /** Openings of topics so far: rows that were read before an opening may not be what the database has. */
  #openings = 0;
  readonly #runs = new LoadedRowRuns();
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

  /** Called after a commit: what was read may have changed. Also called between the pieces of a transfer. */
  forget(): void {
    this.#results.clear();
  }

  /** Keeps rows that follow each other. */
  cache(opening: number, heads: readonly LogRowHead[], rows: readonly LogRow[]): void {
    if (heads.length === 0) return;
    for (const row of rows) this.#cache.set(`${opening} ${row.first}`, row);
    this.#runs.add(opening, heads);
  }

  /** The reader of a topic that was opened; `name` is for messages. */
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
        new DamageError(`${rangeOfMessages(first, last)} of topic ${JSON.stringify(name)}: the row is missing`),
    };
  }

  #read<Result>(lack: MissingTopicData): Result {
    const result = this.#results.get(missingDataName(lack));
    if (result === undefined) throw new DataNotLoaded(lack);
    if (result instanceof Error) throw result;
    return result as Result;
  }
}

/** Sequences of rows that are remembered for each opening: subscribers read at different places. */
const runsMax = 32;

/** Places of all openings; one needs about 100 bytes. */
const headsMaxDefault = 65_536;

/**
 * Places of rows that were read together from a shared database, by the opening of their topic. Holds the newest ones,
 * up to a number for the whole store.
 */
export class LoadedRowRuns {
  readonly #headsMax: number;
  /** The newest run of an opening is first. The opening whose last run is the oldest is first. */
  readonly #runs = new Map<number, LogRowHead[][]>();
  #count = 0;

  constructor(headsMax = headsMaxDefault) {
    this.#headsMax = headsMax;
  }

  /** Places that are remembered. */
  get count(): number {
    return this.#count;
  }

  /** Adds the places of rows that follow each other. */
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

  /** The place of the row that has this message, if it is remembered. */
  find(opening: number, id: number): LogRowHead | undefined {
    for (const run of this.#runs.get(opening) ?? []) {
      if ((run[0]?.first ?? Infinity) > id || (run.at(-1)?.last ?? 0) < id) continue;
      const found = run.find(({ first, last }) => first <= id && last >= id);
      if (found !== undefined) return found;
    }
    return undefined;
  }

  /** The row that begins with this message is deleted. */
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
