/**
 * The lists of `--query` that items may still be taken from. Each run shows its own, so that the end of an item is kept as
 * long as there is a list from before it; the version of `runs`, which every new list raises, says that none has come.
 */
import type { Acl, MultiRequest, ZooKeeper } from "../../zookeeper/zookeeper.ts";
import type { Clock } from "../../support/clock.ts";
import { newGuid } from "../../support/guid.ts";
import { createFlag } from "../../wire/jute/zookeeper_operations.ts";
import { containerRequest } from "../container_request.ts";
import { withinLeaveTime } from "../leave_time.ts";
import { createParents } from "../lock/create_contender.ts";
import { lockPathAt } from "../lock/lock_path.ts";
import { isRefusal, nullIfNoNode } from "../request_errors.ts";
import { retryOnConnectionLoss } from "../retry_on_connection_loss.ts";
import { listName, otherLists } from "./item_record.ts";
import type { PoolPath } from "./pool_path.ts";

/** So often what is missing is made: the server, and others, make and reap it meanwhile. */
const triesMax = 8;

export class PoolLists {
  readonly #zk: ZooKeeper;
  readonly #runs: string;
  readonly #acl: Acl[];
  readonly #clock: Clock;
  readonly #guid = newGuid();
  #listedAt: bigint | null = null;
  /** The version of `runs` at which no other run had a list; null where one had, or nobody knows. */
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

  /** The transaction before which all was done that the own list knows of; null for a list that is not asked for again. */
  get listedAt(): bigint | null {
    return this.#listedAt;
  }

  /** Before the list is asked for. From now on nothing may be taken from the one before. */
  async begin(): Promise<void> {
    this.#noOtherListVersion = null;
    await retryOnConnectionLoss(this.#zk, async () => {
      const { listed, looked } = await this.#announce();
      this.#listedAt = listed.mzxid;
      this.#noOtherListVersion = looked.length === 0 ? listed.version : null;
    }, { clock: this.#clock });
  }

  /** For a run that shows no list: whether others do. */
  async detectOthers(): Promise<void> {
    await retryOnConnectionLoss(this.#zk, async () => {
      // In this order, and answered in it: a list that comes between the two raises the version.
      const [runs, others] = await Promise.all([nullIfNoNode(this.#zk.getData(this.#runs)), this.#otherLists()]);
      this.#noOtherListVersion = runs !== null && others.length === 0 ? runs.stat.version : null;
    }, { clock: this.#clock });
  }

  /** What holds as long as no other run has a list that an item's end may be news to; null where one has. */
  noOtherListCheck(): MultiRequest | null {
    return this.#noOtherListVersion === null
      ? null
      : { type: "check", path: this.#runs, version: this.#noOtherListVersion };
  }

  /** The check has failed: another run has begun a list. False when it was the own one, and the check is another now. */
  otherListBegun(failed: MultiRequest): void {
    if (failed.type === "check" && failed.version === this.#noOtherListVersion) this.#noOtherListVersion = null;
  }

  /** When the oldest list was begun, the own one among them unless it is over; null when there is none. */
  async oldest({ isOwnOver }: { readonly isOwnOver: boolean }): Promise<bigint | null> {
    const names = await this.#otherLists();
    const stats = await Promise.all(names.map((name) => this.#zk.exists(`${this.#runs}/${name}`)));
    const begun = stats.flatMap((stat) => (stat === null ? [] : [stat.mzxid]));
    if (!isOwnOver && this.#listedAt !== null) begun.push(this.#listedAt);
    return begun.reduce<bigint | null>((least, one) => (least === null || one < least ? one : least), null);
  }

  /** Nothing is taken any more, and the session lives on. */
  async end(): Promise<void> {
    if (this.#listedAt === null) return;
    const node = `${this.#runs}/${listName(this.#guid)}`;
    const deleting = retryOnConnectionLoss(this.#zk, () => nullIfNoNode(this.#zk.delete(node, -1)), {
      clock: this.#clock,
    });
    const within = { session: this.#zk.session, clock: this.#clock, why: "answered" } as const;
    await withinLeaveTime(within, deleting.catch(() => {})); // else it goes with the session
  }

  async #otherLists(): Promise<string[]> {
    return otherLists((await nullIfNoNode(this.#zk.getChildren(this.#runs)))?.children ?? [], this.#guid);
  }

  /** Makes the own node, or writes it again, and raises the version of `runs`: in one transaction, whose zxid both have. */
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
      looking.catch(() => {}); // looked at below, unless showing it has failed
      try {
        const raised = (await showing).at(-1);
        if (raised?.type === "setData") return { listed: raised.stat, looked: await looking };
      } catch (thrown) {
        if (tries === triesMax || !isRefusal(thrown, "NODEEXISTS", "NONODE")) throw thrown;
        if (isRefusal(thrown, "NODEEXISTS")) [isThere, hasRuns] = [hasRuns, true];
        else if (isThere) isThere = false;
        else {
          // Somebody has deleted the node by which the run shows its terms, and the server has reaped what was empty then.
          if (!hasRuns) await createParents(this.#zk, lockPathAt(this.#runs), this.#acl);
          hasRuns = false;
        }
      }
    }
  }
}
