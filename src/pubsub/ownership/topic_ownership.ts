/**
 * A server's ownership of topics, across its sessions of the coordination service. Between two sessions, no topic is
 * served.
 */
import type { ZooKeeper } from "../../protocols/zookeeper/zookeeper.ts";
import { CleanupScope, onAbort, whenAborted } from "../../base/support/abort.ts";
import { BatonError } from "../../base/errors.ts";
import { isTransientFailure } from "../../coordination/nodes/node_requests.ts";
import { serveOwnershipSessions } from "./serve_sessions.ts";
import type { TopicDeleteResult } from "./topic_decision.ts";
import type { IncomingContent, TopicContentId } from "../store/operations/owned_store.ts";
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
   * Keeps the server announced until the signal aborts. Opens a session, serves until the session ends, and opens the
   * next session. Rejects with the signal's reason, or with CONFIG if the id belongs to another server.
   */
  run(open: (signal: AbortSignal) => Promise<ZooKeeper>, signal: AbortSignal): Promise<never> {
    const { clock, onProblem } = this.#options;
    return serveOwnershipSessions(open, (zk, begun) => this.#serve(zk, signal, begun), { clock, onProblem, signal });
  }

  /** True if the server is announced and has its lease. */
  get isRegistered(): boolean {
    return this.#session?.lease.isHeld() === true;
  }

  /**
   * Calls the listener when the server is announced, and when it is no longer announced. Returns the function that
   * unsubscribes.
   */
  subscribe(listener: () => void): () => void {
    return this.#changes.subscribe(listener);
  }

  /**
   * Returns the permit of a served topic, without waiting, because almost every request needs the permit. If it is
   * null, the caller must call `availability`.
   */
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

  /**
   * Carries out a MERGE request, which hands a topic to another server. An old request, for another `epoch`, moves
   * nothing.
   */
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

  /**
   * Called when a shared store has lost a topic because another server has opened the topic or it must be opened again.
   */
  topicLost(topic: string): void {
    this.#session?.topicLost(topic);
  }

  /** Carries out a TRANSFER request, which brings a topic's content. */
  async receive(topic: string, content: TopicContentId, incoming: IncomingContent): Promise<TopicTransferReply> {
    if (this.#session === null) return { kind: "refused", why: "this server has no session at present" };
    return await this.#session.topicToChange(topic).receive(content, incoming);
  }

  /** True if there is a session, and it has read each stored topic. */
  get hasReadTopics(): boolean {
    return this.#session?.hasReadTopics === true;
  }

  servedTopics(): Iterable<string> {
    return this.#session?.servedTopics() ?? [];
  }

  async #serve(zk: ZooKeeper, signal: AbortSignal, begun: () => void): Promise<void> {
    const session = await OwnershipSession.begin(zk, this.#options, signal);
    using _end = new CleanupScope(onAbort(signal, (reason) => session.end(reason)));
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
