/** A server's ownership of topics over all its sessions: begins again when one has ended, and says "away" in between. */
import type { ZooKeeper } from "../../zookeeper/zookeeper.ts";
import { onAbort, throwIfAborted } from "../../support/abort.ts";
import { backoffMs } from "../../support/backoff.ts";
import { sleep } from "../../support/deadline.ts";
import { BatonError } from "../../errors.ts";
import { isTransient } from "../../coordination/request_errors.ts";
import type { HandoffResult, Permit } from "./owned_topic.ts";
import type { DeleteResult } from "./topic_deletion.ts";
import type { ContentName, IncomingContent } from "../store/owned_store.ts";
import { type Availability, type OwnershipOptions, OwnershipSession } from "./ownership_session.ts";
import type { TransferReply } from "./transfer_channel.ts";

/** Kept from the moment a request is let in to its answer. */
export interface RequestPermit extends Permit {
  /** What it hangs on: the same for all requests of one session. */
  readonly lease: { isConfirmed(): boolean };
  /** Whether OK may be answered: the lease under which the request was let in holds still. Ask once for each batch. */
  isConfirmed(): boolean;
}

export type RequestAvailability =
  | { readonly kind: "serving"; readonly permit: RequestPermit }
  | Exclude<Availability, { kind: "serving" }>;

const retryWait = { firstMs: 100, maxMs: 5000 };

export class TopicOwnership {
  readonly #options: OwnershipOptions;
  #session: OwnershipSession | null = null;
  readonly #listeners = new Set<() => void>();
  /** The last that was given: topics are asked for again and again. */
  #lastPermit: { readonly session: OwnershipSession; readonly permit: Permit; readonly request: RequestPermit } | null =
    null;

  constructor(options: OwnershipOptions) {
    this.#options = options;
  }

  /**
   * Keeps the server there until the signal aborts: opens a session, serves, opens another. Rejects with the signal's
   * reason, and with CONFIG when the id belongs to somebody else.
   */
  async run(open: (signal: AbortSignal) => Promise<ZooKeeper>, signal: AbortSignal): Promise<never> {
    for (let failures = 0;; failures++) {
      throwIfAborted(signal);
      try {
        await using zk = await open(signal);
        await this.#serve(zk, signal, () => failures = 0);
      } catch (thrown) {
        throwIfAborted(signal);
        if (thrown instanceof BatonError && thrown.code === "CONFIG") throw thrown;
        this.#options.onProblem(thrown);
      }
      await sleep(this.#options.clock, backoffMs(failures, retryWait), signal);
    }
  }

  /** Whether the server is announced and has its lease. */
  get isRegistered(): boolean {
    return this.#session?.lease.isHeld() === true;
  }

  /** Told when the server is announced, and when it is no longer. Returns what takes the listener off. */
  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** At once: the way of almost every request. Null: ask for its availability. */
  currentPermit(topic: string): RequestPermit | null {
    const session = this.#session;
    const permit = session?.currentPermit(topic) ?? null;
    if (session === null || permit === null) return null;
    if (this.#lastPermit?.permit !== permit || this.#lastPermit.session !== session) {
      this.#lastPermit = { session, permit, request: permitOf(session, permit) };
    }
    return this.#lastPermit.request;
  }

  async availability(topic: string, epoch: number | null = null): Promise<RequestAvailability> {
    const session = this.#session;
    if (session === null) return { kind: "away" };
    try {
      const availability = await session.availability(topic, epoch);
      return availability.kind === "serving"
        ? { kind: "serving", permit: permitOf(session, availability.permit) }
        : availability;
    } catch (thrown) {
      if (session.ended.aborted || isTransient(thrown)) return { kind: "away" };
      throw thrown;
    }
  }

  /** MERGE: gives a topic to another server. `epoch` makes sure that an old request moves nothing. */
  async handOff(topic: string, to: string, epoch: number | null = null): Promise<HandoffResult> {
    if (this.#session === null) return { kind: "kept", why: "this server has no session at present" };
    return await this.#session.topic(topic).handOff(to, epoch);
  }

  /** Gives a topic up that an operator does not want any more; see `OwnedTopic.delete`. */
  async delete(
    topic: string,
    epoch: number | null,
    whyNot: ((epoch: number) => Promise<string | null>) | null,
  ): Promise<DeleteResult> {
    if (this.#session === null) return { kind: "kept", why: "this server has no session at present" };
    return await this.#session.topic(topic).delete(epoch, whyNot);
  }

  /** TRANSFER: what another server sends. */
  async receive(topic: string, content: ContentName, incoming: IncomingContent): Promise<TransferReply> {
    if (this.#session === null) return { kind: "refused", why: "this server has no session at present" };
    return await this.#session.topic(topic).receive(content, incoming);
  }

  /** Topics that are served now. */
  served(): Iterable<readonly [topic: string, permit: Permit]> {
    return this.#session?.served() ?? [];
  }

  async #serve(zk: ZooKeeper, signal: AbortSignal, begun: () => void): Promise<void> {
    const session = await OwnershipSession.begin(zk, this.#options, signal);
    const { promise, resolve } = Promise.withResolvers<void>();
    const offs = [onAbort(session.ended, () => resolve()), onAbort(signal, (reason) => session.end(reason))];
    this.#session = session;
    begun();
    this.#notify();
    try {
      await promise;
    } finally {
      this.#session = null;
      for (const off of offs) off();
      this.#notify();
      await session.finish(new BatonError("NOT_HELD", "The server leaves"));
    }
  }

  #notify(): void {
    for (const listener of [...this.#listeners]) listener();
  }
}

function permitOf({ lease }: OwnershipSession, { epoch, incarnation }: Permit): RequestPermit {
  return { epoch, incarnation, lease, isConfirmed: () => lease.isConfirmed() };
}
