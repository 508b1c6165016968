/**
 * The clients of all topics: sessions, positions, counter windows and msg-ids. Keeps recently active clients without a
 * subscription in memory (topics keep their subscribers), and collects changes for the next commit.
 */
import type { MsgIdRecord, ResolvedPutCounter } from "../../wire/topic_records.ts";
import { encodeStoredName, type StoredMsgId, type TopicClient } from "../rows/topic_client.ts";
import { readOrIfDamaged } from "../../../base/storage/damage.ts";
import { fingerprintMessage } from "../decisions/message_fingerprint.ts";
import { PublisherWindow } from "../decisions/publisher_window.ts";
import {
  countersInMemoryMax,
  publisherMsgIdsMax,
  sessionWindowsPerClientMax,
  unsubscribedClientsInMemoryMax,
  windowRowsPerDelete,
} from "../limits/topic_store_limits.ts";
import type { LoadedTopicClients, MsgIdRow, TopicChange, TopicRows } from "../rows/topic_rows.ts";

export class ClientsInMemory {
  readonly #rows: TopicRows;
  /** Known clients without a subscription; the most recently active client is last. */
  readonly #unsubscribed = new Map<string, TopicClient>();
  /** The last client of `#unsubscribed`. */
  #newest: TopicClient | null = null;
  /**
   * The clients with windows in memory, and the number of counters that were added since all windows were last dropped
   * from memory.
   */
  readonly #clientsWithWindows = new Set<TopicClient>();
  #entries = 0;
  readonly #changedClients = new Set<TopicClient>();
  readonly #unwrittenEntries = new Map<PublisherWindow, { client: TopicClient; entries: ResolvedPutCounter[] }>();
  /** New windows, and windows whose bounds were raised. */
  readonly #raisedBounds = new Map<PublisherWindow, { readonly client: TopicClient; readonly isNew: boolean }>();
  readonly #unwrittenKeys = new Map<number, MsgIdRow & { readonly topicId: number }>();
  #deletedWindows: { readonly client: TopicClient; readonly session: number }[] = [];
  #deletedKeys: { readonly client: TopicClient; readonly id: number }[] = [];
  readonly #forgotten = new Map<number, TopicClient>();
  /**
   * Fingerprints of the names of all clients of a topic. If a damaged index does not find a client, they show that the
   * client exists.
   */
  readonly #nameFingerprints = new Map<number, Set<number>>();

  constructor(rows: TopicRows) {
    this.#rows = rows;
  }

  /** Remembers the names of the clients of a topic that was opened. */
  noteOpened(topicId: number, { names }: LoadedTopicClients): void {
    this.#nameFingerprints.set(topicId, names);
  }

  findUnsubscribed(topicId: number, name: string): TopicClient | null {
    // Shortcut for a publisher that puts one message after the other.
    if (this.#newest?.topicId === topicId && this.#newest.name === name) return this.#newest;
    const slot = `${topicId} ${name}`;
    let client = this.#unsubscribed.get(slot);
    if (client === undefined) {
      client = this.#rows.clients.findClient(topicId, name) ?? undefined;
      // A forgotten client has a row until the commit.
      if (client !== undefined && this.#forgotten.has(client.id)) client = undefined;
      if (client === undefined) {
        if (this.#nameFingerprints.get(topicId)?.has(fingerprintMessage(encodeStoredName(name)))) {
          throw this.#rows.clients.notFoundError(name);
        }
        return null;
      }
    } else this.#unsubscribed.delete(slot);
    this.#unsubscribed.set(slot, client);
    this.#newest = client;
    return client;
  }

  /** Creates a new client; `registration` is the topic's registration number. */
  create(topicId: number, name: string, registration: number): TopicClient {
    const client: TopicClient = {
      id: this.#rows.numbers.client(topicId),
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
    this.#nameFingerprints.get(topicId)?.add(fingerprintMessage(encodeStoredName(name)));
    this.markChanged(client);
    this.addUnsubscribed(client);
    this.#clientsWithWindows.add(client);
    return client;
  }

  /** Removes a client that was created for a refused request. Returns false if the client must stay. */
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
    this.#nameFingerprints.get(topicId)?.delete(fingerprintMessage(encodeStoredName(name)));
  }

  /** Removes a client that has subscribed, because the topic itself keeps its subscribers. */
  removeUnsubscribed(client: TopicClient): void {
    if (this.#newest === client) this.#newest = null;
    this.#unsubscribed.delete(`${client.topicId} ${client.name}`);
  }

  addUnsubscribed(client: TopicClient): void {
    this.#unsubscribed.set(`${client.topicId} ${client.name}`, client);
  }

  /** Drops a topic's clients from memory, after the topic was dropped or replaced. */
  forgetTopic(topicId: number): void {
    if (this.#newest?.topicId === topicId) this.#newest = null;
    this.#nameFingerprints.delete(topicId);
    for (const [slot, client] of this.#unsubscribed) if (client.topicId === topicId) this.#unsubscribed.delete(slot);
    for (const client of this.#clientsWithWindows) {
      if (client.topicId === topicId) this.#clientsWithWindows.delete(client);
    }
  }

  /**
   * Returns the names of those clients of a topic that have no subscription, were active most recently, and are in
   * memory.
   */
  recentlyActiveNames(topicId: number, most: number): string[] {
    return [...this.#unsubscribed.values()].filter((client) => client.topicId === topicId).slice(-most).map((
      { name },
    ) => name);
  }

  forgetClient(client: TopicClient): void {
    const known = this.#unsubscribed.get(`${client.topicId} ${client.name}`) ?? client;
    this.#forgotten.set(client.id, client);
    this.#forgetName(client);
    this.removeUnsubscribed(known);
    this.#changedClients.delete(known);
    this.#clientsWithWindows.delete(known);
    for (const window of known.windows?.values() ?? []) this.#dropUnwritten(window);
    for (const { rowId } of known.msgIds?.values() ?? []) this.#unwrittenKeys.delete(rowId);
  }

  get hasForgotten(): boolean {
    return this.#forgotten.size > 0;
  }

  /**
   * Yields a topic's oldest clients that have a session and never subscribed. Stored clients come before the clients of
   * the next commit.
   */
  *oldestPublishers(topicId: number, most: number): Generator<TopicClient, void, void> {
    const changed = [...this.#changedClients].filter((client) => client.topicId === topicId);
    const byId = new Map(changed.map((client) => [client.id, client]));
    for (const stored of this.#rows.clients.oldestPublishers(topicId, most + this.#forgotten.size)) {
      if (this.#forgotten.has(stored.id)) continue;
      const client = byId.get(stored.id) ?? this.#unsubscribed.get(`${topicId} ${stored.name}`) ?? stored;
      if (isPurePublisher(client)) yield client;
    }
    for (const client of changed) if (client.isNew && isPurePublisher(client)) yield client;
  }

  /**
   * Returns `resolved` if the publisher knows the outcomes of all its puts, and `unresolved` if it has not confirmed
   * that. Returns `kept` if the publisher must not be forgotten, because it has used msg-ids or put without a session.
   */
  putResolution(client: TopicClient): "resolved" | "unresolved" | "kept" {
    return readOrIfDamaged("kept", () => {
      const windows = [...(client.windows ?? this.#rows.clients.readWindows(client)).values()];
      const keys = client.msgIds?.size ?? this.#rows.clients.readKeys(client).length;
      if (windows.some(({ session }) => session === 0) || keys > 0) return "kept";
      return windows.every((window) => window.entries().length === 0) ? "resolved" : "unresolved";
    });
  }

  markChanged(client: TopicClient): void {
    this.#changedClients.add(client);
  }

  windowsOf(client: TopicClient): Map<number, PublisherWindow> {
    if (client.windows === null) {
      client.windows = this.#rows.clients.readWindows(client);
      for (const window of client.windows.values()) this.#entries += window.size;
      this.#clientsWithWindows.add(client);
    }
    return client.windows;
  }

  /**
   * Drops windows and msg-ids from memory; they are read again when needed. The caller must have written the changes
   * before.
   */
  forgetWindows(): void {
    for (const client of this.#clientsWithWindows) {
      client.windows = null;
      client.msgIds = null;
    }
    this.#clientsWithWindows.clear();
    this.#entries = 0;
  }

  msgIdsOf(client: TopicClient): Map<string, StoredMsgId> {
    return client.msgIds ??= new Map(this.#rows.clients.readKeys(client).map((entry) => [entry.key, entry]));
  }

  /**
   * Creates a window, which the next commit stores. If the client has too many windows, deletes the window of the
   * oldest session. Keeps the new window even if its session is the oldest, because the client may not know that the
   * put arrived.
   */
  createWindow(client: TopicClient, session: number, key: string): PublisherWindow {
    const windows = this.windowsOf(client);
    const window = new PublisherWindow(session, key, 0);
    windows.set(session, window);
    this.#raisedBounds.set(window, { client, isNew: true });
    const others = [...windows.keys()].filter((number) => number !== 0 && number !== session).sort((a, b) => a - b);
    const isNewest = session > (others.at(-1) ?? 0);
    const kept = isNewest ? sessionWindowsPerClientMax - 1 : sessionWindowsPerClientMax;
    for (const number of others.slice(0, Math.max(0, others.length - kept))) {
      const old = windows.get(number);
      windows.delete(number);
      client.forgottenSession = Math.max(client.forgottenSession, number);
      this.markChanged(client);
      if (old !== undefined && !this.#dropUnwritten(old)) this.#deletedWindows.push({ client, session: number });
    }
    return window;
  }

  /** Drops the unwritten changes of a window. Returns true if the window itself is not stored yet. */
  #dropUnwritten(window: PublisherWindow): boolean {
    const isNew = this.#raisedBounds.get(window)?.isNew ?? false;
    this.#raisedBounds.delete(window);
    this.#unwrittenEntries.delete(window);
    return isNew;
  }

  /** Records that the bound of a window was raised without a new counter. */
  markBoundRaised(client: TopicClient, window: PublisherWindow): void {
    if (!this.#raisedBounds.has(window)) this.#raisedBounds.set(window, { client, isNew: false });
  }

  addResolved(client: TopicClient, window: PublisherWindow, entry: ResolvedPutCounter): void {
    window.add(entry);
    this.#entries++;
    const pending = this.#unwrittenEntries.get(window);
    if (pending === undefined) this.#unwrittenEntries.set(window, { client, entries: [entry] });
    else pending.entries.push(entry);
  }

  /** Adds a msg-id. Deletes the publisher's oldest msg-id if there are too many. */
  addMsgId(client: TopicClient, key: MsgIdRecord): void {
    const known = this.msgIdsOf(client);
    const rowId = this.#rows.numbers.key(client.topicId);
    const { id: message, fingerprint } = key;
    const row = { id: rowId, client: client.id, key: key.key, message, fingerprint };
    this.#unwrittenKeys.set(rowId, { ...row, topicId: client.topicId });
    known.set(key.key, { ...key, rowId });
    if (known.size <= publisherMsgIdsMax) return;
    for (const oldest of known.values()) {
      known.delete(oldest.key);
      if (!this.#unwrittenKeys.delete(oldest.rowId)) this.#deletedKeys.push({ client, id: oldest.rowId });
      return;
    }
  }

  get hasChanges(): boolean {
    const changed = this.#changedClients.size + this.#unwrittenEntries.size + this.#raisedBounds.size;
    return changed + this.#forgotten.size > 0;
  }

  /** Moves all collected changes into the changes of their topics. */
  takeChanges(changeOf: (topicId: number) => TopicChange): void {
    for (const client of this.#forgotten.values()) changeOf(client.topicId).forgottenClients.push(client.id);
    this.#forgotten.clear();
    for (const { client, session } of this.#deletedWindows) {
      changeOf(client.topicId).deletedWindows.push({ client: client.id, session });
    }
    this.#deletedWindows = [];
    for (const client of this.#changedClients) {
      client.isNew = false;
      changeOf(client.topicId).clients.push(client);
    }
    this.#changedClients.clear();
    for (const { topicId, ...row } of this.#unwrittenKeys.values()) changeOf(topicId).keys.push(row);
    this.#unwrittenKeys.clear();
    for (const { client, id } of this.#deletedKeys) {
      changeOf(client.topicId).deletedKeys.push({ client: client.id, id });
    }
    this.#deletedKeys = [];
    for (const [window, { client, entries }] of this.#unwrittenEntries) {
      this.#takeEntries(changeOf(client.topicId), { client, window, entries });
    }
    this.#unwrittenEntries.clear();
    for (const [{ session, key, firstUnacked }, { client, isNew }] of this.#raisedBounds) {
      changeOf(client.topicId).windows.push({ client: client.id, session, key, firstUnacked, isNew });
    }
    this.#raisedBounds.clear();
    if (this.#entries > countersInMemoryMax) this.forgetWindows();
    if (this.#unsubscribed.size > unsubscribedClientsInMemoryMax) this.#trimUnsubscribed();
  }

  /**
   * Stores the window's bound together with the entries: after a crash, a counter below the bound must not be treated
   * as new.
   */
  #takeEntries(change: TopicChange, { client: { id: client, topicId }, window, entries }: {
    readonly client: TopicClient;
    readonly window: PublisherWindow;
    readonly entries: readonly ResolvedPutCounter[];
  }): void {
    const id = this.#rows.numbers.resolved(topicId);
    const { session, firstUnacked } = window;
    change.resolved.push({ id, client, session, firstUnacked, entries });
    window.addRow(id, entries);
    const upTo = window.forgetRows(windowRowsPerDelete);
    if (upTo !== null) change.deletedResolved.push({ client, session, upTo });
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

/** Returns true if the client has a session and has never subscribed. */
const isPurePublisher = ({ position, op, opSession, session }: TopicClient) =>
  position === null && op === 0 && opSession === 0 && session > 0;
