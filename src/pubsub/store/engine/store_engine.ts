/**
 * The topic store without its thread. Executes batches of operations, each batch in one transaction, and returns
 * responses. `decide_put.ts` and `decide_read.ts` decide what an operation does; the engine reads and writes the data.
 * After an exception, memory may be ahead of the disk: the engine must not be used again, and no operation of the batch
 * may be answered.
 */
import type { ResolvedPutCounter } from "../../wire/topic_records.ts";
import {
  type ClientOperation,
  type GetOperation,
  type InfoOperation,
  type PutOperation,
  type RefusedOperation,
  refuseOperation,
  type SeekOperation,
  type StoreOperation,
  type StoreResponse,
  type SubscribeOperation,
} from "../operations/store_operations.ts";
import type { TopicClient } from "../rows/topic_client.ts";
import { ClientAdmission } from "../clients/client_admission.ts";
import { ClientCapacity } from "../clients/client_capacity.ts";
import {
  countPutBytes,
  decidePut,
  type PutDecision,
  type PutDecisionFacts,
  toMessageIdRanges,
} from "../decisions/decide_put.ts";
import { decideGet, decideSeek, decideSubscription, type SubscriptionDecision } from "../decisions/decide_read.ts";
import { StoreDiskWatch } from "../limits/disk_watch.ts";
import { PublisherWindow } from "../decisions/publisher_window.ts";
import { type AcceptedGet, readGetResponse } from "./read_messages.ts";
import { deletedRowsPerCommitMax, type TopicStoreOptions } from "../limits/topic_store_limits.ts";
import {
  deleteOldTopicRows,
  retentionDeletesOldestRow,
  type StoredTopic,
  whyTopicFull,
} from "../content/stored_topic.ts";
import { awaitAnswer, type StepGenerator } from "../../../base/support/steps.ts";
import { DataNotLoadedError, RowsUnavailable, runWithLoadedData } from "../rows/loaded_data.ts";
import {
  emptyTopicChange,
  type FailedTopicCommit,
  type MissingTopicData,
  type TopicChange,
  type TopicRows,
} from "../rows/topic_rows.ts";
import { ServedTopics } from "./topic_table.ts";
import type { RefusedPuts } from "../limits/refused_puts.ts";
import type { ClientsInMemory } from "../clients/client_table.ts";
import { fingerprintMessage } from "../decisions/message_fingerprint.ts";
import { DamageError } from "../../../base/storage/damage.ts";

/** Functions and values that the engine needs from its thread. */
export interface StoreEngineHooks {
  /** Called with each response when it is durable. */
  readonly onResponse: (response: StoreResponse) => void;
  /** Wall-clock time in milliseconds, stored with messages. */
  readonly wallClockMs: () => number;
  /** Reports a sentence to the operator, only one time. */
  readonly warn?: (sentence: string) => void;
  /**
   * The puts that were refused because the store was full. They are kept outside the engine, because a new engine is
   * created after the disk was full.
   */
  readonly refusedPuts: RefusedPuts;
  /** Called when a topic is dropped from memory because its commit failed. The topic must then be opened again. */
  readonly onTopicLost?: (topic: string, lost: FailedTopicCommit) => void;
}

export class StoreEngine {
  readonly topics: ServedTopics;
  readonly disk: StoreDiskWatch;
  readonly capacity: ClientCapacity;
  readonly #admission: ClientAdmission;
  readonly #rows: TopicRows;
  readonly #options: TopicStoreOptions;
  readonly #hooks: StoreEngineHooks;
  readonly #waiting = new WaitingGets();
  /** The responses of the current batch, and below them the gets whose messages must still be read. */
  #responses: StoreResponse[] = [];
  #readings: AcceptedGet[] = [];
  readonly #appendedTopics = new Set<StoredTopic>();
  readonly #changedTopics = new Set<StoredTopic>();
  /** True if a response depends on changes that are not on the disk yet. */
  #mustCommit = false;
  /** The operations that wait for data, in order. Also the topics of these operations, and the data that they need. */
  #parked: StoreOperation[] = [];
  readonly #parkedTopics = new Set<string>();
  #lacks: MissingTopicData[] = [];
  #wokenGets: GetOperation[] = [];
  /** The requests of a shared store that wait for a commit; empty if the store is not shared. */
  readonly #unconfirmed = new UnconfirmedRequests();
  /** The reason why nothing may be changed; null if changes are allowed. */
  #diskFull: string | null = null;

  constructor(rows: TopicRows, options: TopicStoreOptions, hooks: StoreEngineHooks) {
    this.#rows = rows;
    this.#options = options;
    this.#hooks = hooks;
    this.topics = new ServedTopics(rows);
    this.disk = new StoreDiskWatch(rows, options.maxDiskBytes);
    this.capacity = new ClientCapacity(this.topics.clients, options, hooks.warn ?? (() => {}));
    this.#admission = new ClientAdmission(this.topics.clients, this.capacity, () => this.disk.reserveSentence());
  }

  /** Opens the stored topics. Called once, before everything else. */
  open(): StepGenerator {
    return this.topics.open();
  }

  /**
   * Executes a batch in one transaction; without a transaction if nothing must be durable. Sends the responses after
   * the commit. If `diskFull` is not null, writes nothing; an operation that needs a write is refused with this reason.
   */
  *execute(operations: Iterable<StoreOperation>, diskFull: string | null = null): StepGenerator {
    this.#responses = [];
    this.#readings = [];
    this.#diskFull = diskFull;
    const nowMs = this.#hooks.wallClockMs();
    this.disk.beginBatch();
    for (const operation of operations) this.#attempt(operation, nowMs);
    if (this.#parked.length > 0) yield* this.#applyParked(nowMs);
    // Also commits if publishers were forgotten for a refused put. In a shared store, a commit confirms every response.
    const confirms = this.#rows.isShared && this.#responses.length + this.#readings.length > 0;
    if (this.#mustCommit || confirms || this.topics.clients.hasForgotten) yield* this.#commit(nowMs);
    else while (this.#read()) yield* this.#load();
    const appended = [...this.#appendedTopics];
    this.#appendedTopics.clear();
    // Durable responses are sent first, because deciding held gets may fail.
    this.#release();
    for (const topic of appended) {
      if (this.#waiting.getsOf(topic).length === 0) continue;
      yield* this.#wake(topic);
      this.#release();
    }
  }

  /** Refuses all held gets. Called when the disk was full and the state in memory is invalid. */
  abandon(reason: string): void {
    this.#responses = [];
    const waiting = new Map([...this.#wokenGets, ...this.#waiting.allGets()].map((get) => [get.ticket, get]));
    for (const get of waiting.values()) this.#refuse(get, refuseOperation("OVERLOADED", reason));
    this.#release();
  }

  /** Writes changes for which no response waits, such as moved cursors. Returns true if there was anything to write. */
  *writePending(): StepGenerator<boolean> {
    if (!this.topics.clients.hasChanges && this.#changedTopics.size === 0 && !this.#rows.hasGarbage) return false;
    yield* this.#commit(this.#hooks.wallClockMs());
    this.#release();
    return true;
  }

  /**
   * Finds topics with messages older than the retention time; `writePending` deletes these messages. Ends early if the
   * database does not respond.
   */
  *markExpiredTopics(): StepGenerator {
    const nowMs = this.#hooks.wallClockMs();
    try {
      for (const topic of [...this.topics.all()]) {
        if (topic.sealedFor !== null) continue;
        const isExpired = yield* runWithLoadedData(
          this.#rows,
          () => retentionDeletesOldestRow(topic, this.#options, nowMs),
        );
        if (isExpired) this.#changedTopics.add(topic);
      }
    } catch (error) {
      if (!(error instanceof RowsUnavailable)) throw error;
    }
  }

  *commitChanged(topic: StoredTopic): StepGenerator {
    this.#changedTopics.add(topic);
    yield* this.#commit(this.#hooks.wallClockMs());
    this.#release();
  }

  /** Decides the held gets of a topic again after the topic was sealed, moved or dropped. */
  *wakeHeldGets(topic: StoredTopic): StepGenerator {
    yield* this.#wake(topic);
    this.#release();
  }

  /** The largest used share of any topic's client capacity, from 0 to 1. */
  get clientsShare(): number {
    return [...this.topics.all()].reduce((most, topic) => Math.max(most, this.capacity.usedShareOf(topic)), 0);
  }

  get waitingCount(): number {
    return this.#waiting.count;
  }

  #release(): void {
    for (const response of this.#responses) this.#hooks.onResponse(response);
    this.#unconfirmed.clear();
    this.#responses = [];
    this.#wokenGets = [];
  }

  /**
   * Applies an operation. If the operation meets damaged data, refuses it without a change. An operation that needs
   * data that is not in memory waits, and later operations of the same topic wait behind it.
   */
  #attempt(operation: StoreOperation, nowMs: number): void {
    const isParked = operation.kind === "cancel"
      ? this.#parkedTopics.size > 0 // the cancelled get may be parked
      : this.#parkedTopics.has(operation.topic);
    if (isParked) this.#parked.push(operation);
    else this.#refuseIfDamaged(operation, () => this.#apply(operation, nowMs));
  }

  *#applyParked(nowMs: number): StepGenerator {
    while (this.#parked.length > 0) {
      const parked = this.#parked;
      this.#parked = [];
      this.#parkedTopics.clear();
      yield* this.#load();
      for (const operation of parked) this.#attempt(operation, nowMs);
    }
  }

  *#load(): StepGenerator {
    const lacks = this.#lacks.splice(0);
    if (lacks.length > 0) yield* awaitAnswer(this.#rows.load(lacks));
  }

  #refuseIfDamaged(operation: StoreOperation, work: () => void): void {
    try {
      work();
    } catch (error) {
      if (operation.kind === "cancel") throw error;
      if (!(error instanceof DataNotLoadedError)) return this.#refuse(operation, refusalOfError(error));
      this.#lacks.push(error.lack);
      this.#parked.push(operation);
      this.#parkedTopics.add(operation.topic);
    }
  }

  #apply(operation: StoreOperation, nowMs: number): void {
    if (operation.kind === "cancel") return this.#cancel(operation.cancelledTicket);
    const topic = this.#topicFor(operation);
    if (topic === null) return;
    if (this.#rows.isShared) this.#unconfirmed.add(operation);
    const isReading = operation.kind === "get" || operation.kind === "info";
    if (this.#diskFull !== null && !isReading) {
      const isEnd = operation.kind === "put" && operation.bodies.length === 0; // it is small, so a retry may succeed
      return this.#refuse(operation, refuseOperation(isEnd ? "OVERLOADED" : "FULL", this.#diskFull));
    }
    switch (operation.kind) {
      case "put":
        return this.#put(operation, topic, nowMs);
      case "get":
        return this.#get(operation, topic);
      case "subscribe":
      case "unsubscribe":
      case "seek":
        return this.#changeSubscription(operation, topic);
      case "info":
        return this.#info(operation, topic);
    }
  }

  #topicFor(operation: ClientOperation): StoredTopic | null {
    const topic = this.topics.get(operation.topic);
    if (topic !== null && topic.epoch === operation.epoch && topic.sealedFor === null) return topic;
    const refusal = whyNotServed(operation, topic, this.topics.isLost(operation.topic));
    if (refusal !== null) this.#refuse(operation, refusal);
    return null;
  }

  /** Admits the client of an operation and raises its session. Returns null if the operation was refused. */
  #clientFor(operation: ClientOperation, topic: StoredTopic): TopicClient | null {
    const admission = this.#admission.admit(operation, topic, this.#diskFull);
    if (admission.kind === "refused") {
      if (this.topics.clients.hasForgotten) this.#changedTopics.add(topic);
      this.#refuse(operation, admission);
      return null;
    }
    const { client, isNew, isRaised } = admission;
    if (isNew) this.#changedTopics.add(topic);
    if (isRaised) {
      this.#mustCommit = true;
      this.#decideGetsOfFencedTopics(topic, client);
    }
    return client;
  }

  #put(put: PutOperation, topic: StoredTopic, nowMs: number): void {
    const client = this.#clientFor(put, topic);
    if (client === null) return;
    const { clients } = this.topics;
    const full = (messages: number) =>
      this.#hooks.refusedPuts.whyRefused(put) ?? this.disk.fullSentence(countPutBytes(put)) ??
        whyTopicFull(topic, this.#options, messages, put.bodies);
    const view = putView(put, { client, clients, last: topic.log.lastId, fullReason: full });
    if (put.bodies.length === 0 && put.session !== null) return this.#settleSession(put, client, view);
    const decision = decidePut(put, view);
    if (decision.kind === "refused") {
      this.#admission.withdraw(client, topic);
      return this.#refuse(put, decision);
    }
    const { session, key } = view.window;
    const window = clients.windowsOf(client).get(session) ?? clients.createWindow(client, session, key);
    if (decision.bound > window.firstUnacked) {
      window.raiseBound(decision.bound);
      if (decision.newIndexes.length === 0) clients.markBoundRaised(client, window);
    }
    // A duplicate must also wait for the commit, because the original may be in this batch.
    this.#mustCommit = true;
    this.#store(put, { topic, client, window, decision, fingerprints: view.fingerprints }, nowMs);
    const isDropped = topic.subscribers.size === 0 && decision.newIndexes.length > 0;
    const more = { ...(isDropped ? { subscribers: 0 } : {}), ...topic.losses.forPut(client.id, put, nowMs) };
    this.#responses.push({ ticket: put.ticket, code: "OK", reason: "", ids: toMessageIdRanges(decision.ids), ...more });
  }

  /**
   * Executes an empty put, which settles a session. After it, older sessions of the client can do nothing, so the
   * outcomes of their puts are final.
   */
  #settleSession(put: PutOperation, client: TopicClient, { window, windowGone }: PutDecisionFacts): void {
    this.#mustCommit = true; // the new session or the message may be in this batch
    const known = windowGone ? undefined : window.get(put.counter);
    const { clients } = this.topics;
    if (clients.windowsOf(client).get(window.session) === window && put.firstUnacked > window.firstUnacked) {
      window.raiseBound(put.firstUnacked);
      clients.markBoundRaised(client, window);
    }
    const more = known === undefined ? {} : { ids: toMessageIdRanges([known.id]) };
    this.#responses.push({ ticket: put.ticket, code: "OK", reason: "", ...more });
  }

  #store(put: PutOperation, what: {
    readonly topic: StoredTopic;
    readonly client: TopicClient;
    readonly window: PublisherWindow;
    readonly decision: PutDecision & { kind: "done" };
    readonly fingerprints: readonly number[];
  }, nowMs: number): void {
    const { topic, client, window, decision: { newIndexes, ids }, fingerprints } = what;
    const { clients } = this.topics;
    for (let index = 0; index < ids.length; index++) {
      const entry = {
        counter: put.counter + index,
        id: ids[index],
        fingerprint: fingerprints[index],
      } as ResolvedPutCounter;
      // If the msg-id is known under another counter, the outcome of this counter is known, too.
      if (window.get(entry.counter) === undefined) clients.addResolved(client, window, entry);
    }
    const [id] = ids;
    const [fingerprint] = fingerprints;
    const isNewKey = put.msgId !== null && !clients.msgIdsOf(client).has(put.msgId);
    if (isNewKey && id !== undefined && fingerprint !== undefined) {
      clients.addMsgId(client, { key: put.msgId, id, fingerprint });
    }
    if (newIndexes.length === 0) return;
    this.disk.expectBytes(countPutBytes(put));
    this.#appendedTopics.add(topic);
    if (topic.subscribers.size === 0) return topic.log.skipIds(newIndexes.length);
    for (const index of newIndexes) {
      const body = put.bodies[index] as Uint8Array;
      const session = window.session;
      const counter = put.counter + index;
      topic.log.append({ timeMs: nowMs, session, counter, publisher: put.client, msgId: put.msgId, body });
    }
  }

  #get(get: GetOperation, topic: StoredTopic): void {
    const client = this.#clientFor(get, topic);
    if (client === null) return;
    if (get.last >= (topic.log.firstPendingId ?? Infinity)) topic.log.flush();
    const decision = decideGet(get, client, {
      firstId: topic.log.firstId,
      lastId: topic.log.lastId,
      baseOffset: topic.baseOffset,
    });
    if (decision.kind === "refused") return this.#refuse(get, decision);
    const { next, missed } = decision;
    const { lastId: last } = topic.log;
    const moves = !get.peek && decision.position !== client.position;
    if (moves && this.#diskFull !== null && next <= last) {
      return this.#refuse(get, refuseOperation("FULL", this.#diskFull));
    }
    if (moves && this.#diskFull === null) {
      topic.moveSubscriber(client, decision.position);
      this.topics.clients.markChanged(client);
      this.#changedTopics.add(topic);
      // The next message is sent only when the acknowledgement of the previous message is durable.
      if (next <= last) this.#mustCommit = true;
    }
    if (next <= last) this.#readings.push({ get, topic, subscriber: client, next, missed, last });
    else if (get.wait) this.#waiting.add(topic, get);
    else this.#refuse(get, refuseOperation("NO_MESSAGE", "there is no undelivered message", { missed }));
  }

  #changeSubscription(operation: SubscribeOperation | SeekOperation, topic: StoredTopic): void {
    const client = this.#clientFor(operation, topic);
    if (client === null) return;
    topic.log.flush();
    const decision: SubscriptionDecision = operation.kind === "seek"
      ? decideSeek(operation, client, topic.log)
      : decideSubscription(operation, client, topic.log);
    if (decision.kind === "refused") return this.#refuse(operation, decision);
    this.#mustCommit = true;
    if (decision.numbered) {
      client.op = operation.op ?? 0;
      client.opSession = operation.session?.number ?? 0;
    }
    if (decision.position !== client.position) {
      const { clients } = this.topics;
      if (decision.position === null) clients.addUnsubscribed(client);
      else clients.removeUnsubscribed(client);
      client.deliveredUpTo = 0;
      topic.moveSubscriber(client, decision.position);
      this.#changedTopics.add(topic);
    }
    this.topics.clients.markChanged(client);
    this.#responses.push({ ticket: operation.ticket, code: "OK", reason: "" });
    for (const get of this.#waiting.getsOf(topic)) if (get.client === client.name) this.#decideAgain(topic, get);
  }

  #info(info: InfoOperation, topic: StoredTopic): void {
    this.#responses.push({ ticket: info.ticket, code: "OK", reason: "", ...topic.infoFor(info.client) });
  }

  #cancel(ticket: number): void {
    const get = this.#waiting.take(ticket);
    if (get === null) return;
    this.#wokenGets.push(get); // until the response is sent, `abandon` must be able to answer this get
    this.#refuse(get, refuseOperation("NO_MESSAGE", "there is no undelivered message"));
  }

  #decideGetsOfFencedTopics(topic: StoredTopic, client: TopicClient): void {
    for (const get of this.#waiting.getsOf(topic)) {
      if (get.client === client.name && get.session !== null) this.#decideAgain(topic, get);
    }
  }

  *#wake(topic: StoredTopic): StepGenerator {
    const nowMs = this.#hooks.wallClockMs();
    for (const get of this.#waiting.getsOf(topic)) this.#decideAgain(topic, get);
    if (this.#parked.length > 0) yield* this.#applyParked(nowMs);
    // The responses need no confirmation, because the gets were already held during the previous commit.
    if (this.#mustCommit) yield* this.#commit(nowMs);
    else while (this.#read()) yield* this.#load();
  }

  #decideAgain(topic: StoredTopic, get: GetOperation): void {
    this.#waiting.delete(topic, get.ticket);
    this.#wokenGets.push(get);
    if (this.#rows.isShared) this.#unconfirmed.add(get);
    const here = this.#topicFor(get); // a repair may have loaded the topic again
    if (here !== null) this.#refuseIfDamaged(get, () => this.#get(get, here));
  }

  /** Reads the messages for the gets of the batch. Returns true if some gets need data that must be loaded first. */
  #read(): boolean {
    if (this.#readings.length === 0) return false;
    const readings = this.#readings;
    this.#readings = [];
    for (const reading of readings) this.#tryRead(reading);
    return this.#readings.length > 0;
  }

  #tryRead(reading: AcceptedGet): void {
    try {
      const { log } = reading.topic;
      if (reading.last >= (log.firstPendingId ?? Infinity)) log.flush();
      this.#responses.push(readGetResponse(reading));
    } catch (error) {
      if (!(error instanceof DataNotLoadedError)) return this.#refuse(reading.get, refusalOfError(error));
      this.#lacks.push(error.lack);
      this.#readings.push(reading);
    }
  }

  *#commit(nowMs: number): StepGenerator {
    for (const topic of this.#appendedTopics) topic.log.flush();
    // Reads messages before rows are deleted, because a response may need messages in these rows.
    while (this.#read()) yield* this.#load();
    const changes = new Map<number, TopicChange>();
    const changeOf = (topicId: number) => {
      let change = changes.get(topicId);
      if (change === undefined) changes.set(topicId, change = emptyTopicChange(topicId));
      return change;
    };
    const touched = new Set([...this.#appendedTopics, ...this.#changedTopics]);
    this.#changedTopics.clear();
    for (const topic of touched) {
      if (topic.sealedFor !== null) continue; // a sealed copy must keep its hash
      // If a row must be loaded, the deletion of old rows continues where it stopped.
      const budget = { rows: deletedRowsPerCommitMax };
      try {
        const isLeft = yield* runWithLoadedData(
          this.#rows,
          () => deleteOldTopicRows(topic, this.#options, nowMs, budget),
        );
        if (isLeft) this.#changedTopics.add(topic);
      } catch (error) {
        if (!(error instanceof RowsUnavailable)) throw error; // the rest can be deleted later
      }
      const change = changeOf(topic.id);
      topic.log.takeChanges(change);
      change.row = this.topics.changedRowOf(topic);
    }
    this.topics.clients.takeChanges(changeOf);
    if (this.#rows.isShared) this.#unconfirmed.addConfirmations(this.#responses, this.topics, changeOf);
    for (const lost of yield* awaitAnswer(this.#rows.commit([...changes.values()]))) this.#dropLost(lost);
    this.#mustCommit = false;
    this.disk.noteCommit();
  }

  /**
   * Drops a topic from memory because memory and rows may differ. Refuses the operations that waited for the topic's
   * commit.
   */
  #dropLost(lost: FailedTopicCommit): void {
    const topic = this.topics.findById(lost.topicId);
    if (topic === null) return;
    const { name } = topic;
    this.topics.unload(topic, { isLost: lost.outcome !== "not_owner" });
    this.#appendedTopics.delete(topic);
    this.#changedTopics.delete(topic);
    const unsent = this.#unconfirmed.ofTopic(name, this.#responses);
    this.#responses = this.#responses.filter(({ ticket }) => !unsent.has(ticket));
    for (const operation of unsent.values()) this.#refuse(operation, refusalOfLost(operation, lost));
    for (const get of this.#waiting.takeAll(topic)) this.#refuse(get, refusalOfLost(get, lost));
    this.#hooks.onTopicLost?.(name, lost);
  }

  /** Drops a shared topic after a change of its row has failed, because the row's state is unknown. */
  loseTopic(topic: StoredTopic, reason: string): void {
    this.#dropLost({ topicId: topic.id, outcome: "not_done", reason });
    this.#release();
  }

  #refuse(operation: ClientOperation, { kind: _kind, ...response }: RefusedOperation): void {
    if (response.code === "FULL" && operation.kind === "put") this.#hooks.refusedPuts.add(operation);
    this.#responses.push({ ticket: operation.ticket, ...response });
  }
}

/** Reads the facts about a put's publisher that `decidePut` needs. Changes nothing. Throws DamageError. */
function putView(
  put: PutOperation,
  { client, clients, last, fullReason: full }: Pick<PutDecisionFacts, "last" | "fullReason"> & {
    readonly client: TopicClient;
    readonly clients: ClientsInMemory;
  },
): PutDecisionFacts {
  const identity = put.fromSession ?? put.session;
  const number = identity?.number ?? 0;
  const stored = clients.windowsOf(client).get(number) ?? null;
  const isOtherState = stored !== null && identity !== null && stored.key !== identity.key;
  const isFuture = put.fromSession !== null && number > client.session;
  return {
    window: stored ?? new PublisherWindow(number, identity?.key ?? "", 0),
    windowGone: isOtherState || isFuture || (number !== 0 && stored === null && number <= client.forgottenSession),
    sameMsgId: put.msgId === null ? null : clients.msgIdsOf(client).get(put.msgId) ?? null,
    fingerprints: put.bodies.map(fingerprintMessage),
    last,
    fullReason: full,
  };
}

/**
 * Returns the reason why a store does not serve a topic to a request; null if it does. `topic` is null if the topic is
 * not in memory. `isLost` is true if the topic was dropped from memory and must be opened again.
 */
function whyNotServed(
  operation: ClientOperation,
  topic: StoredTopic | null,
  isLost: boolean,
): RefusedOperation | null {
  const name = JSON.stringify(operation.topic);
  if (topic === null) {
    return isLost
      ? refuseOperation("OVERLOADED", `topic ${name} is being opened again`)
      : refuseOperation("NOT_OWNER", `topic ${name} is not on this server`);
  }
  if (topic.epoch !== operation.epoch) {
    const reason = `topic ${name} is at epoch ${topic.epoch}; the request is for epoch ${operation.epoch}`;
    return refuseOperation("NOT_OWNER", reason);
  }
  return topic.sealedFor === null ? null : refuseOperation("OVERLOADED", `topic ${name} is moving to another server`);
}

/** Returns the refusal for a request that met damaged or unreadable data. Throws any other error. */
function refusalOfError(error: unknown): RefusedOperation {
  if (error instanceof DamageError) return refuseOperation("DAMAGED", error.message);
  if (error instanceof RowsUnavailable) return refuseOperation("OVERLOADED", error.message);
  throw error;
}

class WaitingGets {
  readonly #topics = new Map<StoredTopic, Map<number, GetOperation>>();

  add(topic: StoredTopic, get: GetOperation): void {
    const gets = this.#topics.get(topic);
    if (gets === undefined) this.#topics.set(topic, new Map([[get.ticket, get]]));
    else gets.set(get.ticket, get);
  }

  delete(topic: StoredTopic, ticket: number): void {
    const gets = this.#topics.get(topic);
    gets?.delete(ticket);
    if (gets?.size === 0) this.#topics.delete(topic);
  }

  /** Removes and returns the get with this ticket. Returns null if it is not held. */
  take(ticket: number): GetOperation | null {
    for (const [topic, gets] of this.#topics) {
      const get = gets.get(ticket);
      if (get === undefined) continue;
      this.delete(topic, ticket);
      return get;
    }
    return null;
  }

  takeAll(topic: StoredTopic): GetOperation[] {
    const gets = this.getsOf(topic);
    this.#topics.delete(topic);
    return gets;
  }

  /** Returns a copy of the list of gets, because the gets may change during the caller's loop. */
  getsOf(topic: StoredTopic): GetOperation[] {
    const gets = this.#topics.get(topic);
    return gets === undefined ? [] : [...gets.values()];
  }

  allGets(): GetOperation[] {
    return [...this.#topics.values()].flatMap((gets) => [...gets.values()]);
  }

  get count(): number {
    let count = 0;
    for (const gets of this.#topics.values()) count += gets.size;
    return count;
  }
}

/**
 * Requests of a shared store that wait for a commit. A successful commit shows that no other server has opened the
 * topic. If the commit fails, the responses must not be sent.
 */
class UnconfirmedRequests {
  readonly #operations = new Map<number, ClientOperation>();

  add(operation: ClientOperation): void {
    this.#operations.set(operation.ticket, operation);
  }

  clear(): void {
    this.#operations.clear();
  }

  /** Adds the topics of these responses to a commit, even topics that did not change. */
  addConfirmations(
    responses: readonly StoreResponse[],
    topics: ServedTopics,
    changeOf: (topicId: number) => TopicChange,
  ): void {
    for (const { ticket } of responses) {
      const topic = topics.get(this.#operations.get(ticket)?.topic ?? "");
      if (topic !== null && topic.sealedFor === null) changeOf(topic.id);
    }
  }

  /** Returns the requests of a topic that have one of these responses. */
  ofTopic(topic: string, responses: readonly StoreResponse[]): Map<number, ClientOperation> {
    const found = new Map<number, ClientOperation>();
    for (const { ticket } of responses) {
      const operation = this.#operations.get(ticket);
      if (operation?.topic === topic) found.set(ticket, operation);
    }
    return found;
  }
}

/**
 * Returns the refusal for a request to a lost topic. Only a request that changes something can have an unknown outcome.
 */
function refusalOfLost({ kind }: ClientOperation, { outcome, code, reason }: FailedTopicCommit): RefusedOperation {
  if (outcome === "not_owner") return refuseOperation("NOT_OWNER", reason);
  const changes = kind !== "get" && kind !== "info";
  if (outcome === "unknown" && changes) {
    return refuseOperation("ERROR", `outcome unknown: ${reason}`, { unknown: true });
  }
  return refuseOperation(code === "STORE_FULL" && changes ? "FULL" : "OVERLOADED", reason);
}
