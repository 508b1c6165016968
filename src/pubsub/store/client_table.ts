/**
 * The clients of all topics: sessions, positions, counter windows, msg-ids. Subscribers are in memory, and other
 * clients that were active recently. `flush` writes the collected changes into the open transaction.
 */
import {
  type ClientRecord,
  encodeResolved,
  type KeyEntry,
  type ResolvedCounter,
  type WindowRecord,
} from "../../wire/pubsub/topic_transfer_data.ts";
import { decodeName, encodeName, rowOfClient, type StoredKey, type TopicClient } from "./topic_client.ts";
import { ClientRows } from "./client_rows.ts";
import { deleteRows } from "./delete_rows.ts";
import type { PutTable } from "./client_rows.ts";
import { fingerprintOf } from "./message_fingerprint.ts";
import { PublisherWindow } from "./publisher_window.ts";
import {
  countersInMemoryMax,
  forgottenRowsPerDelete,
  msgIdsMax,
  sessionWindowsMax,
  unsubscribedClientsInMemoryMax,
} from "./topic_store_limits.ts";
import type { TopicDatabase } from "./topic_database.ts";
import { tables } from "./topic_tables.ts";

const writeClient = `${tables.clients.insert} ON CONFLICT (id) DO UPDATE SET session = excluded.session,
  key = excluded.key, op = excluded.op, op_session = excluded.op_session, forgotten_session = excluded.forgotten_session,
  position = excluded.position, sum = excluded.sum`; // its topic, name and registration never change

export class ClientTable {
  readonly #database: TopicDatabase;
  readonly rows: ClientRows;
  /** Known clients without a subscription; the most recently active one is last. */
  readonly #unsubscribed = new Map<string, TopicClient>();
  /** The last client of `#unsubscribed`. */
  #newest: TopicClient | null = null;
  /**
   * Clients with windows in memory, and the number of counters added since the windows were last dropped from memory.
   */
  readonly #clientsWithWindows = new Set<TopicClient>();
  #entries = 0;
  readonly #changedClients = new Set<TopicClient>();
  readonly #unwrittenEntries = new Map<PublisherWindow, { client: TopicClient; entries: ResolvedCounter[] }>();
  readonly #raisedBounds = new Map<PublisherWindow, TopicClient>();
  /** Fingerprints of the names of all clients of a topic: one that the index does not find is not a new client. */
  readonly #nameFingerprints = new Map<number, Set<number>>();
  #nextClientId: number;
  #nextResolvedId: number;
  #nextKeyId: number;

  constructor(database: TopicDatabase) {
    this.#database = database;
    this.rows = new ClientRows(database);
    const next = (table: string) => Number(database.get(`SELECT max(id) AS id FROM ${table}`)?.["id"] ?? 0) + 1;
    this.#nextClientId = next("clients");
    this.#nextResolvedId = next("resolved");
    this.#nextKeyId = next("msg_ids");
  }

  /** Reads the clients of a topic that is loaded. See `ClientRows.load`. */
  load(topicId: number, topic: string, count: number): ReturnType<ClientRows["load"]> {
    const loaded = this.rows.load(topicId, topic, count);
    this.#nameFingerprints.set(topicId, loaded.names);
    return loaded;
  }

  /** Returns a known client without a subscription, or null. Throws Damaged. */
  findUnsubscribed(topicId: number, name: string): TopicClient | null {
    // Shortcut for a publisher that puts again and again: it is the last one already.
    if (this.#newest?.topicId === topicId && this.#newest.name === name) return this.#newest;
    const slot = `${topicId} ${name}`;
    let client = this.#unsubscribed.get(slot);
    if (client === undefined) {
      client = this.rows.findClient(topicId, name) ?? undefined;
      if (client === undefined) {
        if (this.#nameFingerprints.get(topicId)?.has(fingerprintOf(encodeName(name)))) {
          throw this.rows.notFoundError(name);
        }
        return null;
      }
    } else this.#unsubscribed.delete(slot);
    this.#unsubscribed.set(slot, client);
    this.#newest = client;
    return client;
  }

  /** Creates a new client; `registration` is the topic's number. */
  create(topicId: number, name: string, registration: number): TopicClient {
    const client: TopicClient = {
      id: this.#nextClientId++,
      topicId,
      name,
      isNew: true,
      session: 0,
      key: "",
      op: 0,
      opSession: 0,
      forgottenSession: 0,
      position: null,
      registration,
      deliveredUpTo: 0,
      windows: new Map(),
      msgIds: new Map(),
    };
    this.#nameFingerprints.get(topicId)?.add(fingerprintOf(encodeName(name)));
    this.markChanged(client);
    this.addUnsubscribed(client);
    this.#clientsWithWindows.add(client);
    return client;
  }

  /** Removes a client that was created for a refused request, unless its session was raised. */
  forgetUnstored(client: TopicClient): boolean {
    const isNew = client.isNew && client.session === 0 && client.windows?.size === 0 && client.position === null;
    if (!isNew || client.opSession + client.op > 0) return false;
    this.#changedClients.delete(client);
    this.#clientsWithWindows.delete(client);
    this.#forgetName(client);
    this.removeUnsubscribed(client);
    return true;
  }

  #forgetName({ topicId, name }: TopicClient): void {
    this.#nameFingerprints.get(topicId)?.delete(fingerprintOf(encodeName(name)));
  }

  /** Called when the client has subscribed: its topic keeps it now. */
  removeUnsubscribed(client: TopicClient): void {
    if (this.#newest === client) this.#newest = null;
    this.#unsubscribed.delete(`${client.topicId} ${client.name}`);
  }

  addUnsubscribed(client: TopicClient): void {
    this.#unsubscribed.set(`${client.topicId} ${client.name}`, client);
  }

  /** Drops a topic's clients from memory: the topic was dropped or replaced. */
  forgetTopic(topicId: number): void {
    if (this.#newest?.topicId === topicId) this.#newest = null;
    this.#nameFingerprints.delete(topicId);
    for (const [slot, client] of this.#unsubscribed) if (client.topicId === topicId) this.#unsubscribed.delete(slot);
    for (const client of this.#clientsWithWindows) {
      if (client.topicId === topicId) this.#clientsWithWindows.delete(client);
    }
  }

  /** Names of the most recently active clients of a topic without a subscription, as far as they are in memory. */
  recentlyActiveNames(topicId: number, most: number): string[] {
    return [...this.#unsubscribed.values()].filter((client) => client.topicId === topicId).slice(-most).map((
      { name },
    ) => name);
  }

  /** Deletes a client and all its rows, in the open transaction. */
  forgetClient(client: TopicClient): void {
    for (const table of ["windows", "resolved", "msg_ids"]) deleteRows(this.#database, table, "client = ?", client.id);
    deleteRows(this.#database, "clients", "id = ?", client.id);
    this.rows.counts.forget(client.id);
    this.#forgetName(client);
    const known = this.#unsubscribed.get(`${client.topicId} ${client.name}`);
    this.removeUnsubscribed(known ?? client);
    if (known === undefined) return;
    this.#changedClients.delete(known);
    this.#clientsWithWindows.delete(known);
  }

  markChanged(client: TopicClient): void {
    this.#changedClients.add(client);
  }

  windowsOf(client: TopicClient): Map<number, PublisherWindow> {
    if (client.windows === null) {
      client.windows = this.rows.readWindows(client);
      for (const window of client.windows.values()) this.#entries += window.size;
      this.#clientsWithWindows.add(client);
    }
    return client.windows;
  }

  /** Moves subscribers from position `from` or later to `to`, in the open transaction. */
  moveSubscribers(clients: Iterable<TopicClient>, { from, to }: { readonly from: number; readonly to: number }): void {
    for (const client of clients) {
      if ((client.position ?? -1) < from) continue;
      client.position = to;
      this.#writeClient(client);
    }
  }

  /** Drops windows and msg-ids from memory; they are read again when needed. Changes must have been written before. */
  forgetWindows(): void {
    for (const client of this.#clientsWithWindows) {
      client.windows = null;
      client.msgIds = null;
    }
    this.#clientsWithWindows.clear();
    this.#entries = 0;
  }

  msgIdsOf(client: TopicClient): Map<string, StoredKey> {
    client.msgIds ??= new Map(
      this.rows.rowsOfClient(client, tables.msg_ids).map((row) => {
        const key = decodeName(row["key"]);
        const entry = { rowId: Number(row["id"]), key, id: Number(row["message"]) };
        return [key, { ...entry, fingerprint: Number(row["fingerprint"]) }];
      }),
    );
    return client.msgIds;
  }

  /**
   * Creates a window, stored with the next flush. If there are too many, the window of the oldest session is deleted. The
   * new window is kept even if its session is older than all others: its client may not know that the put arrived.
   */
  createWindow(client: TopicClient, session: number, key: string): PublisherWindow {
    const windows = this.windowsOf(client);
    const window = new PublisherWindow(session, key, 0);
    windows.set(session, window);
    this.rows.counts.add("windows", client.id, 1);
    this.#raisedBounds.set(window, client);
    const others = [...windows.keys()].filter((number) => number !== 0 && number !== session).sort((a, b) => a - b);
    const isNewest = session > (others.at(-1) ?? 0);
    const kept = isNewest ? sessionWindowsMax - 1 : sessionWindowsMax;
    for (const number of others.slice(0, Math.max(0, others.length - kept))) {
      windows.delete(number);
      client.forgottenSession = Math.max(client.forgottenSession, number);
      this.markChanged(client);
      this.#delete("windows", client.id, "session = ?", number);
      this.#delete("resolved", client.id, "session = ?", number);
    }
    return window;
  }

  /** Notes that the window's bound was raised without a new entry. */
  markBoundRaised(client: TopicClient, window: PublisherWindow): void {
    this.#raisedBounds.set(window, client);
  }

  addResolved(client: TopicClient, window: PublisherWindow, entry: ResolvedCounter): void {
    window.add(entry);
    this.#entries++;
    const pending = this.#unwrittenEntries.get(window);
    if (pending === undefined) this.#unwrittenEntries.set(window, { client, entries: [entry] });
    else pending.entries.push(entry);
  }

  /** Adds a msg-id in the open transaction; deletes the oldest one above the limit. */
  addMsgId(client: TopicClient, key: KeyEntry): void {
    const known = this.msgIdsOf(client);
    known.set(key.key, { ...key, rowId: this.insertKey(client.id, key) });
    if (known.size <= msgIdsMax) return;
    for (const oldest of known.values()) {
      known.delete(oldest.key);
      this.#delete("msg_ids", client.id, "id = ?", oldest.rowId);
      return;
    }
  }

  /** Inserts a client received from another server, in the open transaction; returns its id. */
  insert(topicId: number, record: ClientRecord): number {
    const client: TopicClient = {
      ...record,
      id: this.#nextClientId++,
      topicId,
      isNew: false,
      deliveredUpTo: 0,
      windows: null,
      msgIds: null,
    };
    this.#writeClient(client);
    return client.id;
  }

  insertWindow(clientId: number, { session, key, firstUnacked, entries }: WindowRecord): void {
    this.rows.counts.add("windows", clientId, 1);
    this.#database.replace(tables.windows, {
      client: clientId,
      session,
      key: encodeName(key),
      first_unacked: firstUnacked,
    });
    if (entries.length > 0) this.#insertEntries(clientId, session, firstUnacked, entries);
  }

  insertKey(clientId: number, { key, id: message, fingerprint }: KeyEntry): number {
    const id = this.#nextKeyId++;
    this.rows.counts.add("msg_ids", clientId, 1);
    this.#database.insert(tables.msg_ids, { id, client: clientId, key: encodeName(key), message, fingerprint });
    return id;
  }

  get hasChanges(): boolean {
    return this.#changedClients.size + this.#unwrittenEntries.size + this.#raisedBounds.size > 0;
  }

  /** Writes all changes. */
  flush(): void {
    for (const client of this.#changedClients) this.#writeClient(client);
    this.#changedClients.clear();
    for (const [window, { client, entries }] of this.#unwrittenEntries) this.#writeEntries(client, window, entries);
    this.#unwrittenEntries.clear();
    for (const [window, client] of this.#raisedBounds) this.#writeBound(client, window);
    this.#raisedBounds.clear();
    if (this.#entries > countersInMemoryMax) this.forgetWindows();
    if (this.#unsubscribed.size > unsubscribedClientsInMemoryMax) this.#trimUnsubscribed();
  }

  #writeClient(client: TopicClient): void {
    client.isNew = false;
    this.#database.run(writeClient, ...tables.clients.valuesToBind(rowOfClient(client)));
  }

  /**
   * The bound is written with the entries. After a crash, a counter below it is not new, even if it was never stored.
   */
  #writeEntries(client: TopicClient, window: PublisherWindow, entries: readonly ResolvedCounter[]): void {
    window.addRow(this.#insertEntries(client.id, window.session, window.firstUnacked, entries), entries);
    const upTo = window.forgetRows(forgottenRowsPerDelete);
    if (upTo === null) return;
    this.#delete("resolved", client.id, "session = ? AND id <= ?", window.session, upTo);
  }

  /** Counts only what is deleted: what a damaged index hides stays, and is missed when the client is read again. */
  #delete(table: PutTable, client: number, condition: string, ...values: number[]): void {
    const deleted = this.#database.run(`DELETE FROM ${table} WHERE client = ? AND ${condition}`, client, ...values);
    this.rows.counts.add(table, client, -deleted);
  }

  #insertEntries(client: number, session: number, firstUnacked: number, entries: readonly ResolvedCounter[]): number {
    const id = this.#nextResolvedId++;
    this.rows.counts.add("resolved", client, 1);
    this.#database.insert(tables.resolved, {
      id,
      client,
      session,
      first_unacked: firstUnacked,
      entries: encodeResolved(entries),
    });
    return id;
  }

  #writeBound({ id: client }: TopicClient, { session, key, firstUnacked }: PublisherWindow): void {
    this.#database.replace(tables.windows, { client, session, key: encodeName(key), first_unacked: firstUnacked });
  }

  #trimUnsubscribed(): void {
    this.#newest = null;
    for (const [slot, client] of this.#unsubscribed) {
      if (this.#unsubscribed.size <= unsubscribedClientsInMemoryMax) return;
      this.#clientsWithWindows.delete(client);
      this.#unsubscribed.delete(slot);
    }
  }
}
