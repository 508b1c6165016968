/**
 * What a server owns during one session: begins when it has announced itself, ends with the session for good. Another
 * session begins with nothing read, because topics may have been given up in between.
 */
import type { ZooKeeper } from "../../zookeeper/zookeeper.ts";
import { onAbort, throwIfAborted } from "../../support/abort.ts";
import type { Clock } from "../../support/clock.ts";
import { BatonError, messageOf } from "../../errors.ts";
import { isTransient, nullIfNoNode } from "../../coordination/request_errors.ts";
import { announce, parseAnnouncement } from "./announcements.ts";
import { checkEmptiness } from "./check_emptiness.ts";
import { OwnedTopic, type OwnershipContext, type Permit } from "./owned_topic.ts";
import type { OwnedStore } from "../store/owned_store.ts";
import type { PubsubPath } from "./pubsub_path.ts";
import { advanceEveryMs, StoreGeneration } from "./store_generation.ts";
import { OwnershipLease } from "./ownership_lease.ts";
import { decideTopic } from "./topic_decision.ts";
import { TopicNodes } from "./topic_nodes.ts";
import type { ServerAddress, TransferChannel } from "./transfer_channel.ts";

export interface OwnershipOptions {
  readonly id: string;
  /** As proxies and other servers dial it. */
  readonly endpoint: string;
  readonly path: PubsubPath;
  readonly store: OwnedStore;
  /** The machine and the directory in which the store is locked: a copy of the store has another. */
  readonly storeLocation: string;
  readonly channel: TransferChannel;
  readonly clock: Clock;
  /** Whether it is to be announced as one that takes no new topics; asked at each session. */
  readonly isDraining?: () => boolean;
  /** How long a hand-over is tried before its owner takes the topic back, in milliseconds; 30,000 when left out. */
  readonly handoffMs?: number;
  /** Told what an operator should know: data that is missing, or set aside; a node that cannot be read. */
  readonly onProblem: (problem: unknown) => void;
}

/** How a topic stands at this server. */
export type Availability =
  /** Requests may be let in, and answered OK while `isConfirmed` says so. */
  | { readonly kind: "serving"; readonly permit: Permit }
  /** NOT_OWNER; owner "" is nobody. */
  | { readonly kind: "elsewhere"; readonly owner: string; readonly epoch: number }
  /** NOT_OWNER: no proxy has given it to anybody. */
  | { readonly kind: "unassigned" }
  /** OVERLOADED: on its way, ask again. */
  | { readonly kind: "moving" }
  /** ERROR: it belongs here, and its data does not. */
  | { readonly kind: "missing" }
  /** OVERLOADED: this server has no lease at present. */
  | { readonly kind: "away" };

/** Topics that are looked at beside one another, when there are many. */
const parallelTopics = 32;
/** Topics of others that are remembered, so that requests that went astray cost no read each. */
const notOwnedMax = 10_000;
const notOwnedMs = 500;
/** How long its end may take for that, in milliseconds. */
const lastAdvanceMs = 500;
/** Problems that are told during one session. */
const reportedMax = 1000;

export class OwnershipSession {
  readonly lease: OwnershipLease;
  readonly #options: OwnershipOptions;
  readonly #session: ZooKeeper["session"];
  readonly #generation: StoreGeneration;
  readonly #context: OwnershipContext;
  readonly #topics = new Map<string, OwnedTopic>();
  readonly #notOwned = new Map<string, { readonly availability: Availability; readonly readAtMs: number }>();
  readonly #reported = new Set<string>();
  readonly #ended: AbortController;
  readonly #cleanups: (() => void)[] = [];
  #closed: Promise<unknown> | null = null;
  #advancing: Promise<unknown> = Promise.resolve();
  #cancelAdvance: () => void = () => {};

  /**
   * Registers what is stored and in no tree, announces the server, and begins. Rejects with CONFIG when the id is
   * somebody else's, the store an older copy of itself, or empty where it must not be; with the signal's reason, and with what the session ended by.
   */
  static async begin(
    zk: ZooKeeper,
    options: OwnershipOptions,
    signal: AbortSignal,
  ): Promise<OwnershipSession> {
    const nodes = new TopicNodes(zk, options.path);
    const generation = new StoreGeneration(zk, options.path, options);
    await generation.check();
    const stored = await options.store.topics();
    await checkEmptiness(zk, options.path, { id: options.id, stored, task: "serve" });
    await forEach(stored, (topic) => register(nodes, options, topic), signal);
    const { id, endpoint, clock, path, store, storeLocation, onProblem } = options;
    const storeId = `${store.storeId} ${storeLocation}`;
    const isDraining = options.isDraining?.() ?? false;
    await announce(zk, path.server(id), { id, endpoint, storeId, isDraining }, { clock, signal, onProblem });
    // Not before: what cannot be announced must not make another one too old.
    await generation.confirm();
    const ownership = new OwnershipSession(zk, options, nodes, generation);
    void forEach(stored, (topic) => ownership.#settleAtStart(topic), ownership.#ended.signal).catch(() => {});
    return ownership;
  }

  private constructor(zk: ZooKeeper, options: OwnershipOptions, nodes: TopicNodes, age: StoreGeneration) {
    const { session } = zk;
    this.#session = session;
    this.#generation = age;
    this.#options = options;
    this.#ended = new AbortController();
    this.lease = new OwnershipLease(session, options.clock);
    this.#context = {
      ...options,
      onProblem: (problem) => this.#report(problem),
      nodes,
      lease: this.lease,
      signal: this.#ended.signal,
      handoffMs: options.handoffMs ?? 30_000,
      addressOf: (id) => addressOf(zk, options.path, id),
    };
    this.#cleanups.push(session.guard(), onAbort(session.ended, (reason) => this.end(reason)));
    this.#scheduleAdvance();
    void this.#watchOwnNode(zk);
  }

  /** Aborts when nothing is served under this ownership any more. */
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

  /**
   * Ends it, and resolves when nothing that it began goes on: what one session has decided must not be done to the store
   * while another one decides.
   */
  async finish(reason: unknown): Promise<void> {
    this.end(reason);
    await this.#closed;
    if (this.#session.ended.aborted) return;
    // What was stored last is noted as well, if the coordination service answers soon.
    const { promise: late, resolve } = Promise.withResolvers<void>();
    const cancel = this.#options.clock.after(lastAdvanceMs, resolve);
    await Promise.race([this.#generation.advance().catch(() => {}), late]);
    cancel();
  }

  /** At once, for the topics that are served: the way of almost every request. */
  currentPermit(topic: string): Permit | null {
    return this.lease.isHeld() ? this.#topics.get(topic)?.permit ?? null : null;
  }

  /** Reads the topic's node where nothing is known. `epoch`: what the asking proxy has read, if it says so. */
  async availability(topic: string, epoch: number | null = null): Promise<Availability> {
    if (!this.lease.isHeld()) return { kind: "away" };
    const permit = this.currentPermit(topic);
    if (permit !== null) return { kind: "serving", permit };
    const cached = this.#notOwned.get(topic);
    if (cached !== undefined && this.#isCacheFresh(cached, epoch)) return cached.availability;
    this.#notOwned.delete(topic);
    const owned = this.#topicOf(topic);
    if (owned.isInTransfer) return this.#availabilityOf(owned);
    await owned.refresh();
    // The proxy has seen more than this server's connection.
    if (epoch !== null && (owned.readNode?.node.epoch ?? 0) < epoch) {
      await this.#context.nodes.sync(topic);
      await owned.refresh();
    }
    const availability = this.#availabilityOf(owned);
    if (owned.lastAction === "none" || owned.lastAction === "missing") await this.#cacheNotOwned(owned, availability);
    return availability;
  }

  /** The topic, for what changes hands: what was remembered of it counts no longer. */
  topic(name: string): OwnedTopic {
    this.#notOwned.delete(name);
    return this.#topicOf(name);
  }

  /** Topics that are served now. */
  *served(): Generator<readonly [topic: string, permit: Permit]> {
    for (const { topic, permit } of this.#topics.values()) if (permit !== null) yield [topic, permit];
  }

  /** Again and again, as long as it lasts; a store that turns out to be an older one is not served any more. */
  #scheduleAdvance(): void {
    const again = () => {
      this.#advancing = this.#generation.advance().catch((thrown) => {
        if (thrown instanceof BatonError && thrown.code === "CONFIG") this.end(thrown);
        else if (!isTransient(thrown) && !this.#ended.signal.aborted) this.#report(thrown);
      }).finally(() => this.#ended.signal.aborted || this.#scheduleAdvance());
    };
    this.#cancelAdvance = this.#options.clock.after(advanceEveryMs, again);
  }

  #topicOf(name: string): OwnedTopic {
    throwIfAborted(this.#ended.signal);
    let topic = this.#topics.get(name);
    if (topic === undefined) this.#topics.set(name, topic = new OwnedTopic(name, this.#context));
    return topic;
  }

  #availabilityOf({ permit, readNode, lastAction }: OwnedTopic): Availability {
    if (permit !== null) return { kind: "serving", permit };
    const node = readNode?.node;
    if (node === undefined) return { kind: "unassigned" };
    if (node.owner !== this.#options.id) return { kind: "elsewhere", owner: node.owner, epoch: node.epoch };
    return lastAction === "missing" ? { kind: "missing" } : { kind: "moving" };
  }

  #isCacheFresh(
    { availability, readAtMs }: { availability: Availability; readAtMs: number },
    epoch: number | null,
  ): boolean {
    const known = availability.kind === "elsewhere" ? availability.epoch : 0;
    if (epoch !== null && epoch > known && availability.kind !== "missing") return false;
    return this.#options.clock.now() - readAtMs < notOwnedMs;
  }

  /** What is not here takes no more room than its answer, for a moment. */
  async #cacheNotOwned(owned: OwnedTopic, availability: Availability): Promise<void> {
    const { copy, staged } = await this.#options.store.copiesOf(owned.topic);
    if (copy !== null || staged !== null || owned.permit !== null || owned.isBusy) return;
    this.#topics.delete(owned.topic);
    this.#notOwned.set(owned.topic, { availability, readAtMs: this.#options.clock.now() });
    const [oldest] = this.#notOwned.keys();
    if (this.#notOwned.size > notOwnedMax && oldest !== undefined) this.#notOwned.delete(oldest);
  }

  /** Each problem once: a client that asks again and again must not fill a log. */
  #report(problem: unknown): void {
    const text = messageOf(problem);
    if (this.#reported.has(text) || this.#reported.size >= reportedMax) return;
    this.#reported.add(text);
    this.#options.onProblem(problem);
  }

  async #settleAtStart(topic: string): Promise<void> {
    try {
      await this.#topicOf(topic).settle();
    } catch (thrown) {
      if (!this.#ended.signal.aborted) this.#report(thrown);
    }
  }

  /** Whoever deletes the server's node makes room for its being forgotten: begin again. */
  async #watchOwnNode(zk: ZooKeeper): Promise<void> {
    const path = this.#options.path.server(this.#options.id);
    try {
      const stat = await zk.exists(path, { watch: () => void this.#watchOwnNode(zk) });
      if (stat?.ephemeralOwner === zk.session.id || this.#ended.signal.aborted) return;
      this.end(new BatonError("NOT_HELD", `Somebody deleted "${path}", which says that this server is there`));
    } catch {
      // Watches end with the session, which is watched apart from this; a lost answer is made up for by the reconnect.
      if (!this.#ended.signal.aborted) this.#options.clock.after(1000, () => void this.#watchOwnNode(zk));
    }
  }
}

/** A topic that is stored and stands in no tree. Only what is missing is made: the session has not been announced yet. */
async function register(nodes: TopicNodes, { id, store, onProblem }: OwnershipOptions, topic: string): Promise<void> {
  try {
    if (await nodes.read(topic) !== null) return;
    const action = decideTopic({ me: id, node: null, ...await store.copiesOf(topic) });
    if (action.do === "register") await nodes.create(topic, action.next);
  } catch (thrown) {
    if (!(thrown instanceof BatonError) || thrown.code !== "CONFIG") throw thrown;
    onProblem(thrown); // of one topic: the others are served
  }
}

async function addressOf(zk: ZooKeeper, path: PubsubPath, id: string): Promise<ServerAddress | null> {
  const found = await nullIfNoNode(zk.getData(path.server(id)));
  const announcement = found === null ? null : parseAnnouncement(found.data);
  return announcement === null ? null : { id, endpoint: announcement.endpoint };
}

async function forEach(
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
