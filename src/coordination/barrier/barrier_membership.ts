/**
 * The membership of this process in a started generation of a barrier. The membership can be lost, like a lock's lease.
 * All members leave together.
 */
import type { ZooKeeper } from "../../protocols/zookeeper/zookeeper.ts";
import { BatonError, errorMessage } from "../../base/errors.ts";
import { throwIfAborted } from "../../base/support/abort.ts";
import type { Clock } from "../../base/support/clock.ts";
import type { OneTimeEvent } from "../../base/support/event.ts";
import type { StartedParticipant } from "./barrier_participant.ts";
import { parseBarrierParticipantNodes } from "./barrier_state.ts";
import type { Lease } from "../../base/process/lease.ts";
import { readNodesOnChange } from "../nodes/read_nodes_on_change.ts";
import { readAfterSync, readChildNames } from "../nodes/node_requests.ts";
import { ZooKeeperLease } from "../nodes/zookeeper_lease.ts";

export interface BarrierMembership extends Lease {
  /** The number of the member, unique in this generation, from 0 to size - 1. */
  readonly rank: number;
  readonly size: number;
  /** The number of the start. It begins at 1 again if the server has removed an unused barrier. */
  readonly generation: number;
  /** The fencing token. All members have the same token; it is higher than the tokens of earlier generations. */
  readonly fencingToken: bigint;
  /**
   * Leaves, and waits until all other members have left or are lost. Rejects with the signal's reason. Rejects with
   * LOCK_LOST if the session ends before, because it is then unknown whether the others have left.
   */
  leave(options?: { readonly signal?: AbortSignal }): Promise<void>;
}

export interface BarrierMembershipOptions {
  readonly name: string;
  readonly path: string;
  readonly guid: string;
  readonly started: StartedParticipant;
  readonly waitedMs: number;
  readonly clock: Clock;
}

export class ZooKeeperBarrierMembership extends ZooKeeperLease implements BarrierMembership {
  readonly rank: number;
  readonly size: number;
  readonly generation: number;
  readonly #zk: ZooKeeper;
  readonly #clock: Clock;
  /**
   * The other members, starting with the next rank. Each member starts at another one, so that not all of them watch
   * the same member.
   */
  readonly #others: readonly string[];

  constructor(zk: ZooKeeper, { name, path, guid, started, waitedMs, clock }: BarrierMembershipOptions) {
    const { rank, members, generation, token, node } = started;
    super(zk, {
      name,
      kind: "barrier",
      path,
      holderPath: `${path}/${node}`,
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
    this.#clock = clock;
    this.#others = [...members.slice(rank + 1), ...members.slice(0, rank)];
  }

  async leave({ signal }: { readonly signal?: AbortSignal } = {}): Promise<void> {
    await this.release();
    const { session } = this.#zk;
    const reading = { signal, clock: this.#clock, pause: (event: OneTimeEvent) => event.wait() };
    try {
      for await (const isEmpty of readNodesOnChange(this.#zk, (wake) => this.#haveAllLeft(wake), reading)) {
        if (isEmpty) return;
      }
    } catch (thrown) {
      throw session.ended.aborted ? this.#sessionEndedError(thrown) : thrown;
    }
    throwIfAborted(signal);
  }

  /**
   * Returns true if all other members have left. A GUID is never reused, so reading from a server that lags behind can
   * only extend the wait; the sync shortens it.
   */
  async #haveAllLeft(wake: () => void): Promise<boolean> {
    const { path: barrier } = this;
    const children = await readAfterSync(this.#zk, barrier, () => readChildNames(this.#zk, barrier));
    const there = new Map(parseBarrierParticipantNodes(children).map((node) => [node.guid, node.name]));
    const next = this.#others.find((guid) => there.has(guid));
    if (next === undefined) return true;
    const found = await this.#zk.exists(`${barrier}/${there.get(next)}`, { watch: wake });
    if (found === null) wake();
    return false;
  }

  #sessionEndedError(cause: unknown): BatonError {
    const why = errorMessage(this.#zk.session.ended.reason);
    const message = `Cannot tell whether the others have left barrier "${this.name}": the session ended: ${why}`;
    return new BatonError("LOCK_LOST", message, { cause });
  }
}
