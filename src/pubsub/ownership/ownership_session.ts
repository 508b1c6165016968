/**
 * The topics that a server owns during one session of the coordination service. Ownership starts when the server has
 * announced itself, and ends with the session. The next session reads all nodes again, because topics may have been
 * given up in between.
 */
import type { ZooKeeper } from "../../protocols/zookeeper/zookeeper.ts";
import { onAbort, throwIfAborted } from "../../base/support/abort.ts";
import type { Clock } from "../../base/support/clock.ts";
import { BatonError, errorMessage } from "../../base/errors.ts";
import { isTransientFailure } from "../../coordination/nodes/node_requests.ts";
import { announceProcess } from "./announcements.ts";
import { readAnnouncement } from "./process_announcement.ts";
import { checkStoreIsNotEmpty } from "./empty_store_check.ts";
import { OwnedTopic } from "./owned_topic.ts";
import type { OwnershipContext } from "./ownership_context.ts";
import type { OwnedStore } from "../store/operations/owned_store.ts";
import type { PubsubPath } from "./pubsub_path.ts";
import { StoreGeneration, storeGenerationAdvanceMs } from "./store_generation.ts";
import { OwnershipLease } from "./ownership_lease.ts";
import { decideTopic } from "./topic_decision.ts";
import { TopicNodes } from "./topic_nodes.ts";
import {
  isTopicInTransfer,
  type TopicAvailability,
  topicAvailabilityIn,
  type TopicPermit,
  type TopicState,
} from "./topic_state.ts";
import type { TopicTransferChannel } from "./transfer_channel.ts";
import { resultInTimeOrNull } from "../../base/support/deadline.ts";

export interface OwnershipSessionOptions {
  readonly id: string;
  readonly endpoint: string;
  readonly path: PubsubPath;
  readonly store: OwnedStore;
  /** The machine and directory of the store. They reveal a copy of the store. */
  readonly storeLocation: string;
  /** True if several servers share the store. The rows of the store then say which server may write. */
  readonly isStoreShared?: boolean;
  /**
   * Records that the store belongs to this server; throws if it cannot. Called at the start of each session, before
   * anything is stored.
   */
  readonly claimStore?: () => void;
  readonly channel: TopicTransferChannel;
  readonly clock: Clock;
  /** Returns true if the server must be announced as draining. Called at the start of each session. */
  readonly isDraining?: () => boolean;
  /** How long a handoff may take, in milliseconds, before the owner takes back the topic; by default 30,000. */
  readonly handoffMs?: number;
  /** Reports problems to the operator, for example missing data, data that was set aside, or an unreadable node. */
  readonly onProblem: (problem: unknown) => void;
}

const parallelTopics = 32;
/**
 * The most topics of other servers that are cached, and for how long. A misdirected request then does not need a read.
 */
const notOwnedMax = 10_000;
const notOwnedMs = 500;
const notOwnedStates: readonly TopicState["kind"][] = ["elsewhere", "waiting", "missing"];
/** How long the end of a session waits until the generation is recorded, in milliseconds. */
const lastAdvanceMs = 500;
const reportedMax = 1000;

export class OwnershipSession {
  readonly lease: OwnershipLease;
  readonly #options: OwnershipSessionOptions;
  readonly #session: ZooKeeper["session"];
  readonly #generation: StoreGeneration;
  readonly #context: OwnershipContext;
  readonly #topics = new Map<string, OwnedTopic>();
  readonly #notOwned = new Map<string, { readonly availability: TopicAvailability; readonly readAtMs: number }>();
  readonly #reported = new Set<string>();
  readonly #ended: AbortController;
  readonly #cleanups: (() => void)[] = [];
  #hasReadTopics = false;
  #closed: Promise<unknown> | null = null;
  #advancing: Promise<unknown> = Promise.resolve();
  #cancelAdvance: () => void = () => {};

  /**
   * Starts a session. Creates the missing nodes of stored topics, announces the server, and begins to serve. Rejects
   * with CONFIG if the id belongs to another server, or if the store is an older copy or unexpectedly empty. Also
   * rejects with the signal's reason or the error that ended the session.
   */
  static async begin(
    zk: ZooKeeper,
    options: OwnershipSessionOptions,
    signal: AbortSignal,
  ): Promise<OwnershipSession> {
    const nodes = new TopicNodes(zk, options.path);
    const isShared = options.isStoreShared === true;
    const generation = new StoreGeneration(zk, options.path, options);
    // Topics that were opened in an earlier session may belong to other servers by now.
    if (isShared) await options.store.releaseAll();
    await generation.checkNotOlder();
    await generation.checkOthers();
    if (!isShared) await checkStoreIsNotEmpty(zk, options.path, { ...options, task: "serve" });
    const stored = await options.store.topics();
    // An empty store is claimed only when the server is announced, so that a refused start leaves no identity behind.
    if (stored.length > 0) options.claimStore?.();
    if (!isShared) await forEachInParallel(stored, (topic) => registerTopic(nodes, options, topic), signal);
    const { id, endpoint, clock, path, store, storeLocation, onProblem } = options;
    const storeId = `${store.storeId} ${storeLocation}`;
    const isDraining = options.isDraining?.() ?? false;
    const shared = isShared ? { store: store.storeId } : {};
    await announceProcess(zk, path.server(id), { id, endpoint, storeId, isDraining, ...shared }, {
      clock,
      signal,
      onProblem,
    });
    options.claimStore?.();
    // Raises the generation only now: a store that is not announced must not make another copy look too old.
    await generation.confirm();
    const ownership = new OwnershipSession(zk, options, nodes, generation);
    void ownership.#settleAllAtStart(stored);
    return ownership;
  }

  private constructor(zk: ZooKeeper, options: OwnershipSessionOptions, nodes: TopicNodes, age: StoreGeneration) {
    const { session } = zk;
    this.#session = session;
    this.#generation = age;
    this.#options = options;
    this.#ended = new AbortController();
    this.lease = new OwnershipLease(session, options.clock);
    this.#context = {
      ...options,
      onProblem: (problem) => this.#reportOnce(problem),
      nodes,
      signal: this.#ended.signal,
      lease: this.lease,
      handoffMs: options.handoffMs ?? 30_000,
      sharedStore: options.isStoreShared === true ? options.store.storeId : null,
      addressOf: (id) => readAnnouncement(zk, options.path.server(id)),
    };
    this.#cleanups.push(session.guard(), onAbort(session.ended, (reason) => this.end(reason)));
    this.#scheduleAdvance();
    void this.#watchOwnNode(zk);
  }

  /** Aborts when this session no longer serves any topic. */
  get ended(): AbortSignal {
    return this.#ended.signal;
  }

  end(reason: unknown): void {
    this.lease.end();
    this.#ended.abort(reason);
    for (const off of this.#cleanups.splice(0)) off();
    this.#cancelAdvance();
    this.#closed ??= Promise.all([this.#advancing, ...[...this.#topics.values()].map((topic) => topic.close())]);
    this.#topics.clear();
  }

  /** Ends the session and waits for its work, because two sessions must not change the store at the same time. */
  async endAndWait(reason: unknown): Promise<void> {
    this.end(reason);
    await this.#closed;
    if (this.#session.ended.aborted) return;
    // Also records the last generation, if the coordination service responds soon.
    await resultInTimeOrNull(
      this.#options.clock,
      lastAdvanceMs,
      this.#generation.advance().catch(() => {}),
    );
  }

  /**
   * Returns the permit of a served topic, without waiting; null if the topic is not served. Almost every request uses
   * this method.
   */
  currentPermit(topic: string): TopicPermit | null {
    return this.lease.isHeld() ? this.#topics.get(topic)?.permit ?? null : null;
  }

  /**
   * Returns which server can serve a topic now, or why none can. Reads the topic's node if nothing is known about it.
   * `epoch` is the epoch that the requesting proxy has read, if the request contains one.
   */
  async availability(topic: string, epoch: number | null = null): Promise<TopicAvailability> {
    try {
      return await this.#readAvailability(topic, epoch);
    } catch (thrown) {
      // The session has ended, and nothing was done, so the request may be sent again.
      if (this.#ended.signal.aborted) return { kind: "away" };
      throw thrown;
    }
  }

  async #readAvailability(topic: string, epoch: number | null): Promise<TopicAvailability> {
    if (!this.lease.isHeld()) return { kind: "away" };
    const permit = this.currentPermit(topic);
    if (permit !== null) return { kind: "serving", permit };
    const cached = this.#notOwned.get(topic);
    if (cached !== undefined && this.#isCacheFresh(cached, epoch)) return cached.availability;
    this.#notOwned.delete(topic);
    const owned = this.#topicOf(topic);
    if (isTopicInTransfer(owned.state)) return this.#availabilityOf(owned);
    await owned.refresh();
    // The proxy has read a newer node than this server.
    if (epoch !== null && (owned.knownNode?.node.epoch ?? 0) < epoch) {
      await this.#context.nodes.sync(topic);
      await owned.refresh();
    }
    const availability = this.#availabilityOf(owned);
    if (notOwnedStates.includes(owned.state.kind)) await this.#cacheNotOwned(owned, availability);
    return availability;
  }

  /** Returns the topic for a handoff, a transfer or a deletion, and removes its cached state. */
  topicToChange(name: string): OwnedTopic {
    this.#notOwned.delete(name);
    return this.#topicOf(name);
  }

  topicLost(name: string): void {
    this.#topics.get(name)?.lose().catch((thrown) => this.#ended.signal.aborted || this.#reportOnce(thrown));
  }

  /** True if each stored topic was read, so that `servedTopics` is complete. */
  get hasReadTopics(): boolean {
    return this.#hasReadTopics;
  }

  *servedTopics(): Generator<string, void, void> {
    for (const { topic, permit } of this.#topics.values()) if (permit !== null) yield topic;
  }

  /** Records the generation repeatedly during the session. Ends the session if the store proves to be an older copy. */
  #scheduleAdvance(): void {
    const generation = this.#generation;
    const again = () => {
      this.#advancing = generation.advance().catch((thrown) => {
        if (thrown instanceof BatonError && thrown.code === "CONFIG") this.end(thrown);
        else if (!isTransientFailure(thrown) && !this.#ended.signal.aborted) this.#reportOnce(thrown);
      }).finally(() => this.#ended.signal.aborted || this.#scheduleAdvance());
    };
    this.#cancelAdvance = this.#options.clock.startTimer(storeGenerationAdvanceMs, again);
  }

  #topicOf(name: string): OwnedTopic {
    throwIfAborted(this.#ended.signal);
    let topic = this.#topics.get(name);
    if (topic === undefined) this.#topics.set(name, topic = new OwnedTopic(name, this.#context));
    return topic;
  }

  #availabilityOf({ state, knownNode }: OwnedTopic): TopicAvailability {
    return topicAvailabilityIn(state, knownNode?.node, this.#options.id);
  }

  #isCacheFresh(
    { availability, readAtMs }: { availability: TopicAvailability; readAtMs: number },
    epoch: number | null,
  ): boolean {
    const known = availability.kind === "elsewhere" ? availability.epoch : 0;
    if (epoch !== null && epoch > known && availability.kind !== "missing") return false;
    return this.#options.clock.now() - readAtMs < notOwnedMs;
  }

  /** Removes a topic that is not stored here from memory, and caches its availability for a short time. */
  async #cacheNotOwned(owned: OwnedTopic, availability: TopicAvailability): Promise<void> {
    const { copy, staged } = await this.#options.store.copiesOf(owned.topic);
    const { state, isBusy } = owned;
    const isElsewhere = state.kind === "elsewhere" || state.kind === "missing";
    if (copy !== null || staged !== null || !isElsewhere || isBusy) return;
    this.#topics.delete(owned.topic);
    this.#notOwned.set(owned.topic, { availability, readAtMs: this.#options.clock.now() });
    const [oldest] = this.#notOwned.keys();
    if (this.#notOwned.size > notOwnedMax && oldest !== undefined) this.#notOwned.delete(oldest);
  }

  /** Reports a problem only one time: a client that repeats its request must not fill the log. */
  #reportOnce(problem: unknown): void {
    const text = errorMessage(problem);
    if (this.#reported.has(text) || this.#reported.size >= reportedMax) return;
    this.#reported.add(text);
    this.#options.onProblem(problem);
  }

  async #settleAllAtStart(stored: readonly string[]): Promise<void> {
    try {
      await forEachInParallel(stored, (topic) => this.#settleAtStart(topic), this.#ended.signal);
      this.#hasReadTopics = true;
    } catch {
      // The session has ended.
    }
  }

  async #settleAtStart(topic: string): Promise<void> {
    try {
      await this.#topicOf(topic).settle();
    } catch (thrown) {
      if (!this.#ended.signal.aborted) this.#reportOnce(thrown);
    }
  }

  /**
   * Ends the session if this server's own node is deleted: an operator may be about to make the service forget the
   * server. The next session starts from the beginning.
   */
  async #watchOwnNode(zk: ZooKeeper): Promise<void> {
    const path = this.#options.path.server(this.#options.id);
    try {
      const stat = await zk.exists(path, { watch: () => void this.#watchOwnNode(zk) });
      if (stat?.ephemeralOwner === zk.session.id || this.#ended.signal.aborted) return;
      this.end(new BatonError("NOT_HELD", `The node "${path}" of this server was deleted`));
    } catch {
      // Sets the watch again after a lost response. Another listener handles the end of the session.
      if (!this.#ended.signal.aborted) this.#options.clock.startTimer(1000, () => void this.#watchOwnNode(zk));
    }
  }
}

/**
 * Creates the node of a stored topic if the node is missing. Changes no existing node, because the server is not
 * announced yet.
 */
async function registerTopic(
  nodes: TopicNodes,
  { id, store, onProblem }: OwnershipSessionOptions,
  topic: string,
): Promise<void> {
  try {
    if (await nodes.read(topic) !== null) return;
    const action = decideTopic({ me: id, node: null, shared: null, ...await store.copiesOf(topic) });
    if (action.do === "register") await nodes.create(topic, action.next);
  } catch (thrown) {
    if (!(thrown instanceof BatonError) || thrown.code !== "CONFIG") throw thrown;
    onProblem(thrown); // the other topics can be served
  }
}

async function forEachInParallel(
  topics: readonly string[],
  work: (topic: string) => Promise<void>,
  signal: AbortSignal,
): Promise<void> {
  const rest = topics.values();
  const worker = async () => {
    for (const topic of rest) {
      throwIfAborted(signal);
      await work(topic);
    }
  };
  await Promise.all(Array.from({ length: parallelTopics }, worker));
}
