/**
 * Rows of a shared database that were brought into memory, until the next commit. The methods that read are those of
 * the engine: they return what was brought, and throw NotLoaded for everything else.
 */
import { DamageError, rangeOfMessages } from "../../../base/storage/damage.ts";
import { NotLoaded } from "../store_steps.ts";
import type { StoredKey, TopicClient } from "../topic_client.ts";
import type { ClientReader, ExportedRow, Lack, LogRow, MessageReader, RowHead } from "../topic_rows.ts";
import type { PublisherWindow } from "../publisher_window.ts";
import { RowCache } from "../row_cache.ts";
import { rowCacheBytesMax } from "../topic_store_limits.ts";
import { RowRuns } from "./row_runs.ts";

/** The name of data: what was asked for, and of which topic or client. */
export function nameOfLack(lack: Lack): string {
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

export class LoadedRows {
  /** Results by the name of what was asked for; an error is thrown to whom asks. */
  readonly #results = new Map<string, unknown>();
  readonly #cache = new RowCache<string>(rowCacheBytesMax);
  /** Openings of topics so far: rows that were read before an opening may not be what the database has. */
  #openings = 0;
  readonly #runs = new RowRuns();
  readonly clients: ClientReader;

  constructor() {
    this.clients = {
      findClient: (topicId, name) => this.#read<TopicClient | null>({ kind: "findClient", topicId, name }),
      notFoundError: (name) => new DamageError(`client ${JSON.stringify(name)} is not found`),
      readWindows: (client) => this.#read<Map<number, PublisherWindow>>({ kind: "readWindows", client }),
      readKeys: (client) => this.#read<StoredKey[]>({ kind: "readKeys", client }),
      oldestPublishers: (topicId, most) => this.#read<TopicClient[]>({ kind: "oldestPublishers", topicId, most }),
      clientsAfter: (topicId, name) => this.#read<TopicClient[]>({ kind: "clientsAfter", topicId, name }),
    };
  }

  set(lack: Lack, result: unknown): void {
    this.#results.set(nameOfLack(lack), result);
  }

  /** Called after a commit: what was read may have changed. Also called between the pieces of a transfer. */
  forget(): void {
    this.#results.clear();
  }

  /** Keeps rows that follow each other. */
  cache(opening: number, heads: readonly RowHead[], rows: readonly LogRow[]): void {
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
        this.#runs.find(opening, id) ?? this.#read<RowHead | null>({ kind: "findRowUpTo", topicId, id, opening }),
      findRowAfter: (id) => {
        const next = this.#runs.find(opening, id + 1);
        return next?.first === id + 1
          ? next
          : this.#read<RowHead | null>({ kind: "findRowAfter", topicId, id, opening });
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

  #read<Result>(lack: Lack): Result {
    const result = this.#results.get(nameOfLack(lack));
    if (result === undefined) throw new NotLoaded(lack);
    if (result instanceof Error) throw result;
    return result as Result;
  }
}
