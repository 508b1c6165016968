/**
 * The list that calls with --items share while they run at the same time. Each call is a member with an ephemeral node
 * in a container. The list starts when the first member creates the container, and ends with its last member. The
 * protocol is in docs/protocol/pool.md; test/coordination/model checks it.
 */
import type { Acl, MultiRequest, ZooKeeper } from "../../protocols/zookeeper/zookeeper.ts";
import type { Clock } from "../../base/support/clock.ts";
import { newGuid } from "../../base/support/guid.ts";
import { createFlag } from "../../protocols/zookeeper/jute/zookeeper_operations.ts";
import { createContainerRequest, createParentNodes } from "../nodes/create_nodes.ts";
import {
  deleteNodeIfThere,
  isServerRefusal,
  isTransientFailure,
  nullIfNoNode,
  readAfterOwnWrites,
  retryOnConnectionLoss,
} from "../nodes/node_requests.ts";
import { withinQueueLeaveTime } from "../nodes/session_waits.ts";
import type { PoolPath } from "./pool_path.ts";

/** How often a transaction is tried, because other calls join and leave meanwhile. */
const triesMax = 20;

export class SharedPoolList {
  readonly #zk: ZooKeeper;
  readonly #path: Pick<PoolPath, "shared" | "runs">;
  readonly #acl: Acl[];
  readonly #clock: Clock;
  readonly #guid = newGuid();
  #startedAt: bigint | null = null;
  #hasOthers = false;
  #hasRuns = true;
  /** Whether a request to join was sent, so that this run may be a member. */
  #mayBeMember = false;

  constructor(zk: ZooKeeper, { path, acl, clock }: {
    readonly path: Pick<PoolPath, "shared" | "runs">;
    readonly acl: Acl[];
    readonly clock: Clock;
  }) {
    this.#zk = zk;
    this.#path = path;
    this.#acl = acl;
    this.#clock = clock;
  }

  /** The transaction with which the list began; null if this run is not a member. */
  get startedAt(): bigint | null {
    return this.#startedAt;
  }

  /** Whether this run has been a member: records that other members kept may be left for it to delete. */
  get wasMember(): boolean {
    return this.#mayBeMember;
  }

  /** Whether the list had other members when this run joined it. */
  get hasOthers(): boolean {
    return this.#hasOthers;
  }

  /** Joins the list, or begins a new one. Must be called before an item is claimed. */
  async join(): Promise<void> {
    for (let tries = 1; this.#startedAt === null; tries++) {
      await retryOnConnectionLoss(this.#zk, async () => {
        this.#startedAt = await this.#tryJoin(tries === triesMax);
      }, { clock: this.#clock });
    }
  }

  /**
   * Leaves the list; the session continues. No job of this run may be running. Returns false if no server confirms this
   * in time; then the node ends with the session.
   */
  async leave(): Promise<boolean> {
    this.#startedAt = null;
    if (!this.#mayBeMember) return true;
    const deleting = () => deleteNodeIfThere(this.#zk, this.#ownNode);
    const leaving = retryOnConnectionLoss(this.#zk, deleting, { clock: this.#clock });
    const within = { session: this.#zk.session, clock: this.#clock, why: "responded" } as const;
    return await withinQueueLeaveTime(within, leaving.then(() => true, () => false)) ?? false;
  }

  /** Returns the start of the list that calls share now; null if there is no list. */
  async readStart(): Promise<bigint | null> {
    const found = await nullIfNoNode(this.#zk.getChildren(this.#path.shared));
    return found === null || found.children.length === 0 ? null : found.stat.czxid;
  }

  get #ownNode(): string {
    return `${this.#path.shared}/${this.#guid}`;
  }

  /** Returns the start of the list; null if other calls were faster. */
  async #tryJoin(isLast: boolean): Promise<bigint | null> {
    const { shared } = this.#path;
    const read = () => nullIfNoNode(this.#zk.getChildren(shared));
    // The outcome of an earlier try may be unknown.
    const found = await (this.#mayBeMember ? readAfterOwnWrites(this.#zk, shared, read) : read());
    if (found?.children.includes(this.#guid) === true) return found.stat.czxid; // the response was lost
    const members = found?.children ?? null;
    this.#hasOthers = members !== null && members.length > 0;
    this.#mayBeMember = true;
    const requests = this.#joinRequests(members);
    try {
      const joining = this.#zk.multi(requests);
      const reading = this.#zk.exists(shared);
      reading.catch(() => {}); // handled below
      await joining;
      return (await reading)?.czxid ?? null;
    } catch (thrown) {
      if (isTransientFailure(thrown)) throw thrown;
      if (isLast || !isServerRefusal(thrown, "NODEEXISTS", "NONODE", "NOTEMPTY")) throw thrown;
      if (requests[thrown.index ?? -1]?.path === this.#path.runs) {
        await this.#correctRuns(thrown.reason === "NODEEXISTS");
      }
      return null;
    }
  }

  /**
   * Joins a list while one of its members is there. Otherwise replaces the empty container in one transaction, which
   * proves that the old list had no member until then. A raised version of `runs` tells queries about the list.
   */
  #joinRequests(members: readonly string[] | null): MultiRequest[] {
    const { shared, runs } = this.#path;
    const acl = this.#acl;
    const data = new Uint8Array();
    this.#zk.usesContainer?.(shared);
    const [member] = members ?? [];
    const list: MultiRequest[] = member !== undefined
      ? [{ type: "check", path: `${shared}/${member}`, version: -1 }]
      : members === null
      ? [createContainerRequest(shared, acl)]
      : [{ type: "delete", path: shared, version: -1 }, createContainerRequest(shared, acl)];
    return [
      ...(this.#hasRuns ? [] : [createContainerRequest(runs, acl)]),
      { type: "setData", path: runs, data, version: -1 },
      ...list,
      { type: "create", path: this.#ownNode, data, acl, flags: createFlag.ephemeral },
    ];
  }

  /** Corrects `#hasRuns`, because the server may have removed the empty parents of a run that left. */
  async #correctRuns(isThere: boolean): Promise<void> {
    if (!isThere && !this.#hasRuns) await createParentNodes(this.#zk, this.#path.runs, this.#acl);
    this.#hasRuns = isThere;
  }
}
