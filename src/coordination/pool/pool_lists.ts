/**
 * The lists of --query that are in use. Each run announces its list, so that the end of an item is recorded while an
 * older list is in use. Each new list increases the version of `runs`; an unchanged version proves that there is no new
 * list.
 */
import type { Acl, MultiRequest, ZooKeeper } from "../../protocols/zookeeper/zookeeper.ts";
import type { Clock } from "../../base/support/clock.ts";
import { newGuid } from "../../base/support/guid.ts";
import { createFlag } from "../../protocols/zookeeper/jute/zookeeper_operations.ts";
import { containerRequest, createParents } from "../nodes/create_nodes.ts";
import { withinLeaveTime } from "../nodes/session_waits.ts";
import { childNames, deleteIfThere, isRefusal, nullIfNoNode, retryOnConnectionLoss } from "../nodes/node_requests.ts";
import { listName, otherLists } from "./item_record.ts";
import type { PoolPath } from "./pool_path.ts";

/** The maximum number of tries: the server and other runs create and remove nodes meanwhile. */
const triesMax = 8;

export class PoolLists {
  readonly #zk: ZooKeeper;
  readonly #runs: string;
  readonly #acl: Acl[];
  readonly #clock: Clock;
  readonly #guid = newGuid();
  #listedAt: bigint | null = null;
  /** The version of `runs` at which no other run had a list; null if one had, or if it is unknown. */
  #noOtherListVersion: number | null = null;

  constructor(zk: ZooKeeper, { path, acl, clock }: {
    readonly path: Pick<PoolPath, "runs">;
    readonly acl: Acl[];
    readonly clock: Clock;
  }) {
    this.#zk = zk;
    this.#runs = path.runs;
    this.#acl = acl;
    this.#clock = clock;
  }

  /** The transaction at which the list was requested; null for a list that does not change. */
  get listedAt(): bigint | null {
    return this.#listedAt;
  }

  /** Must be called before the list is requested. From now on, no item of the previous list may be claimed. */
  async begin(): Promise<void> {
    this.#noOtherListVersion = null;
    await retryOnConnectionLoss(this.#zk, async () => {
      const { listed, looked } = await this.#announce();
      this.#listedAt = listed.mzxid;
      this.#noOtherListVersion = looked.length === 0 ? listed.version : null;
    }, { clock: this.#clock });
  }

  /** Detects lists of other runs, for a run that announces none. */
  async detectOthers(): Promise<void> {
    await retryOnConnectionLoss(this.#zk, async () => {
      // The responses have this order: a list that begins between both increases the version.
      const [runs, others] = await Promise.all([nullIfNoNode(this.#zk.getData(this.#runs)), this.#otherLists()]);
      this.#noOtherListVersion = runs !== null && others.length === 0 ? runs.stat.version : null;
    }, { clock: this.#clock });
  }

  /** A check that succeeds only while no other run has a list; null if one has. */
  noOtherListCheck(): MultiRequest | null {
    return this.#noOtherListVersion === null
      ? null
      : { type: "check", path: this.#runs, version: this.#noOtherListVersion };
  }

  /** The check failed: another run has begun a list. */
  onOtherListBegun(failed: MultiRequest): void {
    if (failed.type === "check" && failed.version === this.#noOtherListVersion) this.#noOtherListVersion = null;
  }

  /** The start of the oldest list, including the own one unless it is over; null if there is none. */
  async oldestListStart({ isOwnOver }: { readonly isOwnOver: boolean }): Promise<bigint | null> {
    const names = await this.#otherLists();
    const stats = await Promise.all(names.map((name) => this.#zk.exists(`${this.#runs}/${name}`)));
    const begun = stats.flatMap((stat) => (stat === null ? [] : [stat.mzxid]));
    if (!isOwnOver && this.#listedAt !== null) begun.push(this.#listedAt);
    return begun.reduce<bigint | null>((least, one) => (least === null || one < least ? one : least), null);
  }

  /** Ends the list of this run; the session continues. */
  async end(): Promise<void> {
    if (this.#listedAt === null) return;
    const node = `${this.#runs}/${listName(this.#guid)}`;
    const deleting = retryOnConnectionLoss(this.#zk, () => deleteIfThere(this.#zk, node), {
      clock: this.#clock,
    });
    const within = { session: this.#zk.session, clock: this.#clock, why: "responded" } as const;
    await withinLeaveTime(within, deleting.catch(() => {})); // otherwise it ends with the session
  }

  async #otherLists(): Promise<string[]> {
    return otherLists(await childNames(this.#zk, this.#runs), this.#guid);
  }

  /**
   * Creates or rewrites the own node and increases the version of `runs`, in one transaction, so that both have its
   * zxid.
   */
  async #announce() {
    const path = `${this.#runs}/${listName(this.#guid)}`;
    const data = new Uint8Array();
    const raise: MultiRequest = { type: "setData", path: this.#runs, data, version: -1 };
    const make: MultiRequest = { type: "create", path, data, acl: this.#acl, flags: createFlag.ephemeral };
    const touch: MultiRequest = { type: "setData", path, data, version: -1 };
    let isThere = this.#listedAt !== null;
    let hasRuns = true;
    for (let tries = 1;; tries++) {
      const parents = hasRuns ? [] : [containerRequest(this.#runs, this.#acl)];
      const showing = this.#zk.multi([...parents, isThere ? touch : make, raise]);
      const looking = this.#otherLists();
      looking.catch(() => {}); // handled below
      try {
        const raised = (await showing).at(-1);
        if (raised?.type === "setData") return { listed: raised.stat, looked: await looking };
      } catch (thrown) {
        if (tries === triesMax || !isRefusal(thrown, "NODEEXISTS", "NONODE")) throw thrown;
        if (isRefusal(thrown, "NODEEXISTS")) [isThere, hasRuns] = [hasRuns, true];
        else if (isThere) isThere = false;
        else {
          // The node with the shared settings was deleted, and the server removed the empty parents.
          if (!hasRuns) await createParents(this.#zk, this.#runs, this.#acl);
          hasRuns = false;
        }
      }
    }
  }
}
