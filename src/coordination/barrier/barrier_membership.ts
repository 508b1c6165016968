/**
 * A place in a started generation: a lease like a lock's, which can be lost, with a rank; and the way out of it, which
 * all of its members take together.
 */
import type { ZooKeeper } from "../../zookeeper/zookeeper.ts";
import { BatonError, messageOf } from "../../errors.ts";
import { onAbort, throwIfAborted } from "../../support/abort.ts";
import { backoffMs } from "../../support/backoff.ts";
import type { Clock } from "../../support/clock.ts";
import { Event } from "../../support/event.ts";
import type { BarrierStarted } from "./barrier_participant.ts";
import type { BarrierPath } from "./barrier_path.ts";
import { participantNodes } from "./barrier_view.ts";
import type { Lease } from "../../process/lease.ts";
import { isTransient, nullIfNoNode } from "../request_errors.ts";
import { ZooKeeperLease } from "../zookeeper_lease.ts";

export interface BarrierMembership extends Lease {
  /** From 0 to the size less 1, and nobody else's of this generation. */
  readonly rank: number;
  readonly size: number;
  /** Grows from start to start, and begins again when the barrier was unused for so long that the server took it away. */
  readonly generation: number;
  /** The same of all members, and greater than that of any generation before. */
  readonly fencingToken: bigint;
  /**
   * Says that this one is through, and waits until all the others are, or are lost. Rejects with the signal's reason, and
   * LOCK_LOST when the session ends meanwhile: then nobody knows of the others.
   */
  leave(options?: { readonly signal?: AbortSignal }): Promise<void>;
}

export interface BarrierMembershipOptions {
  readonly name: string;
  readonly path: BarrierPath;
  readonly guid: string;
  readonly started: BarrierStarted;
  readonly waitedMs: number;
  readonly clock: Clock;
}

const retryWait = { firstMs: 50, maxMs: 1000 };

export class ZooKeeperMembership extends ZooKeeperLease implements BarrierMembership {
  readonly rank: number;
  readonly size: number;
  readonly generation: number;
  readonly #zk: ZooKeeper;
  readonly #path: BarrierPath;
  readonly #clock: Clock;
  /** The others, beginning with whoever comes next in rank: so not all of them wait for the same one. */
  readonly #others: readonly string[];

  constructor(zk: ZooKeeper, { name, path, guid, started, waitedMs, clock }: BarrierMembershipOptions) {
    const { rank, members, generation, token, node } = started;
    super(zk, {
      name,
      thing: "barrier",
      path: path.barrier,
      holderPath: `${path.barrier}/${node}`,
      holderId: guid,
      mode: "permit",
      slot: rank,
      limit: members.length,
      fencingToken: token,
      waitedMs,
      clock,
    });
    this.rank = rank;
    this.size = members.length;
    this.generation = generation;
    this.#zk = zk;
    this.#path = path;
    this.#clock = clock;
    this.#others = [...members.slice(rank + 1), ...members.slice(0, rank)];
  }

  async leave({ signal }: { readonly signal?: AbortSignal } = {}): Promise<void> {
    await this.release();
    for (let failures = 0;;) {
      throwIfAborted(signal);
      if (this.#zk.session.ended.aborted) throw this.#sessionEnded(this.#zk.session.ended.reason);
      try {
        if (await this.#hasSeenAllLeave(signal)) return;
        failures = 0;
      } catch (thrown) {
        if (this.#zk.session.ended.aborted) throw this.#sessionEnded(thrown);
        if (!isTransient(thrown)) throw thrown;
        const pause = new Event();
        const off = onAbort(signal, pause.set);
        const cancel = this.#clock.after(backoffMs(failures++, retryWait), pause.set);
        await pause.wait();
        cancel();
        off();
      }
    }
  }

  /**
   * Absence is stable, for a guid is never used again: a server that lags can only make this wait longer. The sync is for
   * the deletion of one's own node: an unanswered one may be what the next server lags behind.
   */
  async #hasSeenAllLeave(signal: AbortSignal | undefined): Promise<boolean> {
    const { barrier } = this.#path;
    const { session } = this.#zk;
    const { connections } = session;
    const [, list] = await Promise.all([this.#zk.sync(barrier), nullIfNoNode(this.#zk.getChildren(barrier))]);
    const there = new Map(participantNodes(list?.children ?? []).map((node) => [node.guid, node.name]));
    const next = this.#others.find((guid) => there.has(guid));
    if (next === undefined) return true;
    const event = new Event();
    const found = await this.#zk.exists(`${barrier}/${there.get(next)}`, { watch: event.set });
    if (found === null) return false;
    const offs = [
      session.subscribe(() => {
        if (session.connections !== connections || session.state === "ended") event.set();
      }),
      onAbort(signal, event.set),
    ];
    if (session.connections !== connections || session.state === "ended") event.set();
    await event.wait();
    for (const off of offs) off();
    return false;
  }

  #sessionEnded(cause: unknown): BatonError {
    const why = messageOf(this.#zk.session.ended.reason);
    const message = `Cannot tell whether the others have left barrier "${this.name}": the session ended: ${why}`;
    return new BatonError("LOCK_LOST", message, { cause });
  }
}
