/**
 * Announces the shared settings of a run in an ephemeral child of `runs`. An earlier run with other settings prevents
 * the admission (pool_admission.ts). The session that holds the items' locks owns the node. docs/protocol/pool.md
 * proves that this is sufficient.
 */
import type { ZooKeeper } from "../../protocols/zookeeper/zookeeper.ts";
import { rejectOnAbort, throwIfAborted } from "../../base/support/abort.ts";
import { backoffMs, requestBackoff } from "../../base/support/backoff.ts";
import { sleep } from "../../base/support/deadline.ts";
import { newGuid } from "../../base/support/guid.ts";
import {
  createContainerRequest,
  createContenderNode,
  createParentNodes,
  type MissingContainers,
} from "../nodes/create_nodes.ts";
import { withinQueueLeaveTime } from "../nodes/session_waits.ts";
import type { Lease } from "../../base/process/lease.ts";
import {
  deleteNodeIfThere,
  isTransientFailure,
  nullIfNoNode,
  readChildNames,
  readWriteOutcome,
  retryOnConnectionLoss,
} from "../nodes/node_requests.ts";
import { decidePoolAdmission, poolRunNodePrefix } from "./pool_admission.ts";
import type { PoolRunContext, PoolRunOptions } from "./pool_run_options.ts";
import {
  formatPoolRunInfo,
  parsePoolRunInfo,
  poolSettingsHash,
  poolSettingsMismatchError,
  type SharedPoolSettings,
} from "./shared_pool_settings.ts";

type PoolMembershipOptions = PoolRunContext & Pick<PoolRunOptions, "total">;

/** How often parents are created without a pause, although other runs and the server remove them. */
const triesWithoutPause = 5;
/** How long to wait until refused runs withdraw, in milliseconds. */
const withdrawMsMax = 2000;

export class PoolMembership {
  readonly #zk: ZooKeeper;
  readonly #options: PoolMembershipOptions;
  readonly #settings: SharedPoolSettings;
  readonly #refused = new AbortController();
  #signal: AbortSignal | undefined;
  /** Null before the shared settings are announced. */
  #admitted: Promise<void> | null = null;
  #guid = "";
  /** The name of this run's own node; null until a list of nodes contains it. */
  #name: string | null = null;

  constructor(zk: ZooKeeper, options: PoolMembershipOptions) {
    this.#zk = zk;
    this.#options = options;
    this.#settings = { templates: options.path.templates, total: options.total };
  }

  /**
   * Returns the lease from `acquire` when the run is admitted; before that, no item may be listed. The first call also
   * announces the shared settings, in parallel. Rejects immediately with CONFIG or LIMIT_MISMATCH, without a lease, if
   * an earlier run has other settings. Otherwise rejects with an error of `acquire` or of the servers, or with the
   * reason of the signal.
   */
  async joinDuring<L extends Lease>(acquire: (refused: AbortSignal) => Promise<L>, signal: AbortSignal): Promise<L> {
    const acquiring = acquire(this.#refused.signal);
    this.#admitted ??= this.#join(signal);
    const [lease, entered] = await Promise.allSettled([acquiring, rejectOnAbort(this.#admitted, signal)]);
    if (entered.status === "fulfilled") {
      if (lease.status === "fulfilled") return lease.value;
      throw lease.reason;
    }
    // If this release fails, the lease ends with the session.
    if (lease.status === "fulfilled") await lease.value.release().catch(() => {});
    // The error that says more is thrown. Different settings say more than a busy component. If the session has ended
    // or the time is up, the error of the lock says more.
    const usesLockError = this.#zk.session.ended.aborted || entered.reason === signal.reason;
    throw lease.status === "rejected" && usesLockError ? lease.reason : entered.reason;
  }

  /** Withdraws the shared settings while the session continues. No job may be running. */
  async leave(): Promise<void> {
    const { clock } = this.#options;
    const { session } = this.#zk;
    if (this.#admitted === null) return;
    const leaving = this.#admitted.catch(() => {}).then(() => this.#leave());
    // If no server responds, the node ends with the session.
    await withinQueueLeaveTime({ session, clock, why: "responded" }, leaving.catch(() => {}));
  }

  #join(signal: AbortSignal): Promise<void> {
    this.#signal = signal;
    const entering = this.#awaitAdmission();
    entering.catch((thrown: unknown) => this.#refused.abort(thrown));
    return entering;
  }

  async #awaitAdmission(): Promise<void> {
    const { clock } = this.#options;
    throwIfAborted(this.#signal);
    let names = await this.#announce();
    let deadlineMs = Infinity;
    for (let waits = 0;;) {
      throwIfAborted(this.#signal);
      const admission = decidePoolAdmission(names, this.#guid);
      if (admission.kind === "admitted") return;
      if (admission.kind === "gone") {
        await this.#retryPatiently(() => this.#deleteOwnNode()); // another server may still show the node to other runs
        names = await this.#announce();
        continue;
      }
      deadlineMs = Math.min(deadlineMs, clock.now() + withdrawMsMax);
      if (admission.kind === "refused" || clock.now() >= deadlineMs) await this.#refuse(admission.by);
      if (admission.kind === "waiting") await this.#pause(waits++);
      names = await this.#retryPatiently(() => this.#listRuns());
    }
  }

  async #leave(): Promise<void> {
    await retryOnConnectionLoss(this.#zk, () => this.#deleteOwnNode(), { clock: this.#options.clock });
  }

  async #deleteOwnNode(): Promise<void> {
    const name = this.#name ?? this.#ownNameIn(await this.#listRunsAfterOwnWrites());
    if (name !== null) await deleteNodeIfThere(this.#zk, `${this.#options.path.runs}/${name}`);
  }

  /** Rejects, unless the conflicting run has left meanwhile. */
  async #refuse(by: string): Promise<void> {
    const { component, path } = this.#options;
    const found = await this.#retryPatiently(() => nullIfNoNode(this.#zk.getData(`${path.runs}/${by}`)));
    if (found !== null) throw poolSettingsMismatchError(component, this.#settings, parsePoolRunInfo(found.data));
  }

  /** Announces the shared settings. Returns the names of all announced runs, including this run. */
  async #announce(): Promise<readonly string[]> {
    const { path, acl } = this.#options;
    for (let missing: MissingContainers = "nothing", tries = 0;; tries++) {
      if (tries > triesWithoutPause) await this.#pause(tries);
      if (missing === "parents") await this.#retryPatiently(() => createParentNodes(this.#zk, path.own, acl));
      this.#guid = newGuid();
      this.#name = null;
      // The server processes these requests in order, so the list contains this run's node and all earlier nodes.
      const creating = this.#create(missing);
      const looking = this.#listRuns();
      looking.catch(() => {}); // handled below
      try {
        const created = await creating;
        if ("node" in created) return this.#findOwn(await looking);
        missing = created.missing;
      } catch (thrown) {
        if (!isTransientFailure(thrown)) throw thrown;
        const names = this.#findOwn(await this.#retryPatiently(() => this.#listRunsAfterOwnWrites()));
        if (this.#name !== null) return names;
        missing = "nothing";
      }
    }
  }

  #create(missing: MissingContainers): ReturnType<typeof createContenderNode> {
    const { path, total, info, acl } = this.#options;
    return createContenderNode(this.#zk, {
      missing,
      containers: [createContainerRequest(path.own, acl), createContainerRequest(path.runs, acl)],
      prefix: `${path.runs}/${poolRunNodePrefix(poolSettingsHash(path, total), this.#guid)}`,
      data: formatPoolRunInfo({ ...this.#settings, info }, Date.now()),
      acl,
    });
  }

  #findOwn(names: readonly string[]): readonly string[] {
    this.#name = this.#ownNameIn(names);
    return names;
  }

  #ownNameIn(names: readonly string[]): string | null {
    return names.find((name) => name.includes(`-${this.#guid}-`)) ?? null;
  }

  #listRuns(): Promise<readonly string[]> {
    return readChildNames(this.#zk, this.#options.path.runs);
  }

  /** Reads the names of all announced runs after a lost response. */
  #listRunsAfterOwnWrites(): Promise<readonly string[]> {
    const isThere = (names: readonly string[]) => this.#ownNameIn(names) !== null;
    return readWriteOutcome(this.#zk, this.#options.path.runs, () => this.#listRuns(), isThere);
  }

  /** Retries until the signal aborts, without a time limit. */
  #retryPatiently<T>(ask: () => Promise<T>): Promise<T> {
    const { clock } = this.#options;
    return retryOnConnectionLoss(this.#zk, ask, { clock, signal: this.#signal, limitMs: Infinity });
  }

  #pause(waits: number): Promise<void> {
    return sleep(this.#options.clock, backoffMs(waits, requestBackoff));
  }
}
