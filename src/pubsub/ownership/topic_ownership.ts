/** A server's ownership of topics, across its sessions. Between two sessions, topics are "away". */
import type { ZooKeeper } from "../../protocols/zookeeper/zookeeper.ts";
import { onAbort, TaskScope, whenAborted } from "../../base/support/abort.ts";
import { BatonError } from "../../base/errors.ts";
import { isTransientFailure } from "../../coordination/nodes/node_requests.ts";
import { serveOwnershipSessions } from "./serve_sessions.ts";
import type { TopicDeleteResult } from "./topic_decision.ts";
import type { ContentName, IncomingContent } from "../store/operations/owned_store.ts";
import { OwnershipSession, type OwnershipSessionOptions } from "./ownership_session.ts";
import type { TopicAvailability, TopicHandoffResult, TopicPermit } from "./topic_state.ts";
import type { TopicTransferReply } from "./transfer_channel.ts";
import { ListenerSet } from "../../base/support/event.ts";

export class TopicOwnership {
  readonly #options: OwnershipSessionOptions;
  #session: OwnershipSession | null = null;
  readonly #changes = new ListenerSet();

  constructor(options: OwnershipSessionOptions) {
    this.#options = options;
  }

  /**
   * Keeps the server announced until the signal aborts: opens a session, serves on it, and opens the next one. Rejects
   * with the signal's reason, and with CONFIG if the id belongs to another server.
   */
  run(open: (signal: AbortSignal) => Promise<ZooKeeper>, signal: AbortSignal): Promise<never> {
    const { clock, onProblem } = this.#options;
    return serveOwnershipSessions(open, (zk, begun) => this.#serve(zk, signal, begun), { clock, onProblem, signal });
  }

  /** Whether the server is announced and has its lease. */
  get isRegistered(): boolean {
    return this.#session?.lease.isHeld() === true;
  }

  /** Calls the listener when the server is announced, and when it no longer is. Returns a function that removes it. */
  subscribe(listener: () => void): () => void {
    return this.#changes.subscribe(listener);
  }

  /** Returns the permit without waiting; almost every request takes this path. If it is null, call `availability`. */
  currentPermit(topic: string): TopicPermit | null {
    return this.#session?.currentPermit(topic) ?? null;
  }

  async availability(topic: string, epoch: number | null = null): Promise<TopicAvailability> {
    const session = this.#session;
    if (session === null) return { kind: "away" };
    try {
      return await session.availability(topic, epoch);
    } catch (thrown) {
      if (session.ended.aborted || isTransientFailure(thrown)) return { kind: "away" };
      throw thrown;
    }
  }

  /** MERGE: hands a topic to another server. An old request, for another `epoch`, moves nothing. */
  async handOff(topic: string, to: string, epoch: number | null = null): Promise<TopicHandoffResult> {
    if (this.#session === null) return { kind: "kept", why: "this server has no session at present" };
    return await this.#session.topicToChange(topic).handOff(to, epoch);
  }

  /** Deletes a topic for an operator; see `OwnedTopic.delete`. */
  async delete(
    topic: string,
    epoch: number | null,
    whyNot: ((epoch: number) => Promise<string | null>) | null,
  ): Promise<TopicDeleteResult> {
    if (this.#session === null) return { kind: "kept", why: "this server has no session at present" };
    return await this.#session.topicToChange(topic).delete(epoch, whyNot);
  }

  /** Called when a shared store has lost a topic, because another server has opened it or it has to be opened again. */
  topicLost(topic: string): void {
    this.#session?.topicLost(topic);
  }

  /** TRANSFER: receives what another server sends. */
  async receive(topic: string, content: ContentName, incoming: IncomingContent): Promise<TopicTransferReply> {
    if (this.#session === null) return { kind: "refused", why: "this server has no session at present" };
    return await this.#session.topicToChange(topic).receive(content, incoming);
  }

  /** The topics that are served now. */
  servedTopics(): Iterable<string> {
    return this.#session?.servedTopics() ?? [];
  }

  async #serve(zk: ZooKeeper, signal: AbortSignal, begun: () => void): Promise<void> {
    const session = await OwnershipSession.begin(zk, this.#options, signal);
    using _end = new TaskScope(onAbort(signal, (reason) => session.end(reason)));
    this.#session = session;
    begun();
    this.#changes.notify();
    try {
      await whenAborted(session.ended);
    } finally {
      this.#session = null;
      this.#changes.notify();
      await session.endAndWait(new BatonError("NOT_HELD", "The server is shutting down"));
    }
  }
}
