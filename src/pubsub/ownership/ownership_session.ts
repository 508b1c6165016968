/**
 * The topics that a server owns during one session. Starts when the server has announced itself, and ends for good with
 * the session. The next session reads all nodes again, because topics may have been given up in between.
 */
import type { ZooKeeper } from "../../protocols/zookeeper/zookeeper.ts";
import { onAbort, throwIfAborted } from "../../base/support/abort.ts";
import type { Clock } from "../../base/support/clock.ts";
import { BatonError, errorMessage } from "../../base/errors.ts";
import { isTransientFailure } from "../../coordination/nodes/node_requests.ts";
import { announceProcess, readAnnouncement } from "./announcements.ts";
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
import { resultWithin } from "../../base/support/deadline.ts";

export interface OwnershipSessionOptions {
  readonly id: string;
  /** The endpoint for proxies and other servers. */
  readonly endpoint: string;
  readonly path: PubsubPath;
  readonly store: OwnedStore;
  /** The machine and directory where the store is locked; a copy of the store has another location. */
  readonly storeLocation: string;
  /** Whether other servers share the store. Then its rows say who may write. */
  readonly isStoreShared?: boolean;
  readonly channel: TopicTransferChannel;
  readonly clock: Clock;
  /** Returns whether to announce the server as draining; called at the start of each session. */
  readonly isDraining?: () => boolean;
  /** The most milliseconds that a handoff may take; then the owner takes the topic back. Default: 30,000. */
  readonly handoffMs?: number;
  /** Reports problems for the operator: missing data, data that was set aside, a node that cannot be read. */
  readonly onProblem: (problem: unknown) => void;
}

/** How many topics are checked in parallel. */
const parallelTopics = 32;
/** How many topics of other servers are cached, so that a misdirected request does not cost a read. */
const notOwnedMax = 10_000;
const notOwnedMs = 500;
/** The states in which a topic is cached as not owned. */
const notOwnedStates: readonly TopicState["kind"][] = ["elsewhere", "waiting", "missing"];
/** The most milliseconds to spend on recording the generation at the end of a session. */
const lastAdvanceMs = 500;
/** How many different problems one session reports. */
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
  #closed: Promise<unknown> | null = null;
  #advancing: Promise<unknown> = Promise.resolve();
  #cancelAdvance: () => void = () => {};

  /**
   * Starts a session: creates the nodes of stored topics that have none, announces the server, and begins to serve.
   * Rejects with CONFIG if the id belongs to another server, or if the store is an older copy or unexpectedly empty.
   * Also rejects with the signal's reason, and with the error that ended the session.
   */
  static async begin(
    zk: ZooKeeper,
    options: OwnershipSessionOptions,
    signal: AbortSignal,
  ): Promise<OwnershipSession> {
    const nodes = new TopicNodes(zk, options.path);
    const isShared = options.isStoreShared === true;
    const generation = new StoreGeneration(zk, options.path, options);
    // Topics that were opened in an earlier session may belong to other servers now.
    if (isShared) await options.store.releaseAll();
    await generation.checkNotOlder();
    await generation.checkOthers();
    if (!isShared) await checkStoreIsNotEmpty(zk, options.path, { ...options, task: "serve" });
    const stored = await options.store.topics();
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
    // Only now, because a store that cannot be announced must not make another one look too old.
    await generation.confirm();
    const ownership = new OwnershipSession(zk, options, nodes, generation);
    void forEachInParallel(stored, (topic) => ownership.#settleAtStart(topic), ownership.#ended.signal).catch(() => {});
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

  /** Ends the session, and resolves when none of its work runs: two sessions must not change the store together. */
  async endAndWait(reason: unknown): Promise<void> {
    this.end(reason);
    await this.#closed;
    if (this.#session.ended.aborted) return;
    // Also records the last generation, if the coordination service responds soon.
    await resultWithin(
      this.#options.clock,
      lastAdvanceMs,
      this.#generation.advance().catch(() => {}),
    );
  }

  /** Returns the permit of a served topic without waiting. Almost every request takes this path. */
  currentPermit(topic: string): TopicPermit | null {
    return this.lease.isHeld() ? this.#topics.get(topic)?.permit ?? null : null;
  }

  /**
   * Returns whether a topic can be served now; reads the topic's node if nothing is known. `epoch` is the epoch that
   * the requesting proxy has read, if it sent one.
   */
  async availability(topic: string, epoch: number | null = null): Promise<TopicAvailability> {
    try {
      return await this.#readAvailability(topic, epoch);
    } catch (thrown) {
      // The session has ended meanwhile. Nothing was done, so the request may be sent again.
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

  /** Returns the topic for a handoff, a transfer or a deletion, and drops its cached state. */
  topicToChange(name: string): OwnedTopic {
    this.#notOwned.delete(name);
    return this.#topicOf(name);
  }

  /** Called when the store has lost a topic. */
  topicLost(name: string): void {
    this.#topics.get(name)?.lose().catch((thrown) => this.#ended.signal.aborted || this.#reportOnce(thrown));
  }

  /** The topics that are served now. */
  *servedTopics(): Generator<string, void, void> {
    for (const { topic, permit } of this.#topics.values()) if (permit !== null) yield topic;
  }

  /** Records the generation repeatedly during the session. Stops serving if the store turns out to be an older copy. */
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

  /** Replaces a topic that is not stored here by its availability, which is cached for a short time. */
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

  /** Reports each problem once: a client that repeats its request must not fill a log. */
  #reportOnce(problem: unknown): void {
    const text = errorMessage(problem);
    if (this.#reported.has(text) || this.#reported.size >= reportedMax) return;
    this.#reported.add(text);
    this.#options.onProblem(problem);
  }

  async #settleAtStart(topic: string): Promise<void> {
    try {
      await this.#topicOf(topic).settle();
    } catch (thrown) {
      if (!this.#ended.signal.aborted) this.#reportOnce(thrown);
    }
  }

  /**
   * Ends the session if this server's own node is deleted, because an operator may be about to forget the server. The
   * next session starts from the beginning.
   */
  async #watchOwnNode(zk: ZooKeeper): Promise<void> {
    const path = this.#options.path.server(this.#options.id);
    try {
      const stat = await zk.exists(path, { watch: () => void this.#watchOwnNode(zk) });
      if (stat?.ephemeralOwner === zk.session.id || this.#ended.signal.aborted) return;
      this.end(new BatonError("NOT_HELD", `The node "${path}" of this server was deleted`));
    } catch {
      // The end of the session is watched elsewhere. After a lost response, set the watch again.
      if (!this.#ended.signal.aborted) this.#options.clock.startTimer(1000, () => void this.#watchOwnNode(zk));
    }
  }
}

/** Creates the node of a stored topic that has none. Changes no node, because the server is not announced yet. */
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
    onProblem(thrown); // one topic cannot be served; the others can
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
