/**
 * One contender for a lock, step by step: create a node, read, decide, wait, request the grant. Each step begins with a
 * read, so that a step can be repeated after any failure. A grant may be made in advance; the contender then waits
 * until the older grants are gone. queue_position.ts decides; test/coordination/model checks the protocol.
 */
import type { Acl, MultiRequest, Stat, WatchEvent, ZooKeeper } from "../../protocols/zookeeper/zookeeper.ts";
import { BatonError } from "../../base/errors.ts";
import { CleanupScope } from "../../base/support/abort.ts";
import type { Clock } from "../../base/support/clock.ts";
import { newGuid } from "../../base/support/guid.ts";
import { createFlag } from "../../protocols/zookeeper/jute/zookeeper_operations.ts";
import { type ArmedNodeWatch, ContenderWaits } from "../nodes/session_waits.ts";
import type { LockGrantClaim } from "./grant_claim.ts";
import {
  createContainerRequest,
  createContenderNode,
  createParentNodes,
  type MissingContainers,
} from "../nodes/create_nodes.ts";
import { lockLimitStateCodec, type LockStateCodec, type LockView, readLockView } from "./lock_state.ts";
import { formatNewHolderNodeInfo, type HolderInfo } from "../nodes/holder_info.ts";
import type { LockMode } from "../../base/process/lease.ts";
import { contenderNodePrefix, holderNodeName, parseContenderNode, parseHolderNode } from "./lock_nodes.ts";
import type { LockPath } from "../nodes/node_paths.ts";
import {
  deleteNodeIfThere,
  nullIfNoNode,
  nullIfRefused,
  readAfterOwnWrites,
  readChildNames,
  readWriteOutcome,
  retryOnConnectionLoss,
} from "../nodes/node_requests.ts";
import {
  freePermitSlot,
  isCompatibleLockMode,
  type LockQueuePosition,
  lockQueuePosition,
  lockRequestAfterGrantChange,
  mayActAfterLostResponse,
  type OutrankedLockGrants,
} from "./queue_position.ts";

export interface CommonLockContenderOptions {
  readonly path: LockPath;
  readonly mode: LockMode;
  readonly info: HolderInfo;
  readonly acl: Acl[];
  readonly clock: Clock;
  /** If false, the contender decides once and does not wait. */
  readonly waits: boolean;
  readonly onQueued: () => void;
}

interface ContenderOptions extends CommonLockContenderOptions {
  readonly limit: number;
  readonly priority: number;
  /** The format of the data of the lock's node. By default, the data contains only the limit. */
  readonly state?: LockStateCodec;
  /** True if the caller expects that the lock's nodes do not exist yet. */
  readonly isNew?: boolean;
  /** A claim to make in the same transaction as the grant. A grant with a claim is never requested in advance. */
  readonly claim?: LockGrantClaim | undefined;
}

export interface GrantedLockContender {
  readonly do: "granted";
  readonly guid: string;
  readonly node: string;
  /**
   * The path of this contender's queue node; null if the node no longer exists. Releasing the lock also deletes this
   * node.
   */
  readonly queueNode: string | null;
  /**
   * The time from a grant in advance to the start of the hold, in milliseconds; 0 for any other grant.
   */
  readonly aheadMs: number;
  /** The number of the permit, from 0. */
  readonly slot: number | null;
  /** The number of permits at the time of the grant. */
  readonly limit: number | null;
  readonly token: bigint;
}

export type LockContenderOutcome = GrantedLockContender | { readonly do: "busy" } | { readonly do: "stopped" };

type ContenderStep =
  | { readonly do: "contend" | "recover" }
  | { readonly do: "read"; readonly watch: boolean }
  | { readonly do: "decide"; readonly view: LockView | null; readonly armed: ArmedNodeWatch | null }
  | { readonly do: "grant"; readonly view: LockView; readonly claimed?: readonly MultiRequest[] }
  | { readonly do: "advance"; readonly view: LockView }
  /** This contender's grant exists. The other grants, in `others`, may be older, newer, or gone. */
  | ({ readonly do: "await older" } & Pick<GrantNames, "own" | "others">)
  | LockContenderOutcome;

interface FollowedGrants {
  readonly armed: ArmedNodeWatch;
  readonly grants: OlderGrants;
}

interface AwaitOlder extends Pick<GrantNames, "own" | "others"> {
  readonly following: Promise<FollowedGrants>;
}

const readOnly: ContenderStep = { do: "read", watch: false };
/** The step after the predecessor is gone. The contender is then probably the first, and will wait for the holders. */
const readAndWatch: ContenderStep = { do: "read", watch: true };

export class LockQueueContender {
  readonly #zk: ZooKeeper;
  readonly #options: ContenderOptions;
  readonly #state: LockStateCodec;
  readonly #waits: ContenderWaits;
  #guid = "";
  /** Name of this contender's queue node; null until a response has contained it. */
  #node: string | null = null;
  #nodeData: Uint8Array = new Uint8Array(0);
  /** Name of the holder's node in the last request for a grant. */
  #requestedGrant: string | null = null;
  /** Time of the last request for a grant in advance, on the clock. */
  #advancedAtMs: number | null = null;
  #missing: MissingContainers = "nothing";
  #hasAnnounced = false;
  #isBusy = false;

  constructor(zk: ZooKeeper, options: ContenderOptions) {
    this.#zk = zk;
    this.#options = options;
    this.#state = options.state ?? lockLimitStateCodec;
    this.#waits = new ContenderWaits(zk.session, options.clock);
    if (options.isNew === true) this.#missing = "outer";
  }

  get guid(): string {
    return this.#guid;
  }

  /** True if a grant with a claim was requested, so that `leave` has to return the claim. */
  get hasClaimed(): boolean {
    return this.#options.claim !== undefined && this.#requestedGrant !== null;
  }

  /** True if the last response showed other contenders ahead of this one. Becomes false when the grant is requested. */
  get isBusy(): boolean {
    return this.#isBusy;
  }

  /**
   * Runs until the contender is granted, busy or stopped. Rejects when the server permanently refuses a request or the
   * session ends.
   */
  async run(): Promise<LockContenderOutcome> {
    let step: Exclude<ContenderStep, LockContenderOutcome> = { do: "contend" };
    const outcome = await this.#waits.repeat(async () => {
      const next = await this.#runStep(step);
      if (next.do === "granted" || next.do === "busy" || next.do === "stopped") return next;
      step = next;
      return null;
    }, () => {
      step = { do: "recover" };
    });
    return outcome ?? { do: "stopped" };
  }

  /**
   * Deletes the nodes that this contender may have created: its queue node and, if a grant was requested, its holder's
   * node. Retries until they are deleted or the session has ended.
   */
  async leave(): Promise<void> {
    this.#waits.stop();
    if (this.#guid === "") return;
    await retryOnConnectionLoss(this.#zk, async () => {
      const { path, claim } = this.#options;
      if (claim !== undefined && this.#requestedGrant !== null) {
        await claim.giveBack({ guid: this.#guid, holderPath: `${path.holders}/${this.#requestedGrant}` });
      }
      this.#node ??= await this.#findNode();
      if (this.#node === null) return;
      const leaving = [`${path.queue}/${this.#node}`];
      // The request for the grant is a write of the same session. Both deletions are therefore executed after it.
      if (this.#requestedGrant !== null) leaving.push(`${path.holders}/${this.#requestedGrant}`);
      await Promise.all(leaving.map((node) => deleteNodeIfThere(this.#zk, node)));
    }, { clock: this.#options.clock, limitMs: Infinity })
      .catch(() => {}); // the session has ended, or the ACL has changed: no retry can help
  }

  #runStep(step: Exclude<ContenderStep, LockContenderOutcome>): Promise<ContenderStep> {
    switch (step.do) {
      case "contend":
        return this.#contend();
      case "recover":
        return this.#recover();
      case "read":
        return this.#read(step.watch);
      case "decide":
        return this.#decide(step.view, step.armed);
      case "grant":
        return this.#grant(step.view, step.claimed);
      case "advance":
        return this.#advance(step.view);
      case "await older":
        return this.#awaitOlder({ ...step, following: this.#followGrants(step.own, step.others) });
    }
  }

  async #contend(): Promise<ContenderStep> {
    const { path, mode, priority, acl, info } = this.#options;
    this.#guid = newGuid();
    this.#node = null;
    this.#requestedGrant = null;
    this.#hasAnnounced = false;
    const prefix = `${path.queue}/${contenderNodePrefix(priority, mode, this.#guid)}`;
    const state = this.#state.initial(mode === "permit" ? this.#options.limit : null);
    const lock: MultiRequest = this.#state.permanent
      ? { type: "create", path: path.lock, data: state, acl, flags: createFlag.persistent }
      : createContainerRequest(path.lock, acl, state);
    const containers = [lock, createContainerRequest(path.queue, acl)] as const;
    const data = this.#nodeData = formatNewHolderNodeInfo(info, this.#zk.session);
    this.#zk.usesContainer?.(path.holders);
    this.#options.claim?.queue();
    for (let tries = 0;; tries++) {
      if (this.#waits.isStopped) return { do: "stopped" };
      // All requests go in one packet and are executed in order, so the queue that is read contains this contender's
      // node.
      const parents = this.#missing === "parents" ? createParentNodes(this.#zk, path.lock, acl) : Promise.resolve();
      parents.catch(() => {}); // awaited below, if the node was not created
      const creating = createContenderNode(this.#zk, { missing: this.#missing, containers, prefix, acl, data });
      const reading = this.#readLock();
      reading.catch(() => {}); // awaited below, unless the creation has failed
      const created = await creating;
      if ("node" in created) {
        this.#missing = "nothing";
        this.#node = created.node;
        return { do: "decide", view: await reading, armed: null };
      }
      await parents;
      this.#missing = created.missing;
      if (tries > 3) await this.#waits.pause(tries);
    }
  }

  async #recover(): Promise<ContenderStep> {
    const { mode, path, claim } = this.#options;
    const hasAsked = this.#requestedGrant !== null || claim !== undefined;
    const isEnough = (view: LockView | null) =>
      view !== null && mayActAfterLostResponse(this.#positionIn(view), { mode, grants: view.grants, hasAsked });
    const view = await readWriteOutcome(this.#zk, path.lock, () => this.#readLock(), isEnough);
    return { do: "decide", view, armed: null };
  }

  async #read(watch: boolean): Promise<ContenderStep> {
    const armed = this.#waits.arm();
    const view = await this.#readLock(watch ? armed.event.set : undefined);
    return { do: "decide", view, armed: watch ? armed : null };
  }

  /**
   * Reads the lock. Reads what the claim needs before the lock: if another claim is made between the two reads, this
   * claim then fails.
   */
  async #readLock(watch?: () => void): Promise<LockView | null> {
    const { claim, path } = this.#options;
    if (claim === undefined) return await readLockView(this.#zk, path, watch);
    const [, view] = await Promise.all([claim.read(), readLockView(this.#zk, path, watch)]);
    return view;
  }

  async #decide(view: LockView | null, armed: ArmedNodeWatch | null, oldest?: string): Promise<ContenderStep> {
    if (view === null) {
      this.#missing = "parents"; // creating existing nodes takes no extra time, because all requests go in one packet
      return { do: "contend" };
    }
    const { grants, queue } = view;
    this.#checkLimit(view);
    const { mode, waits, claim } = this.#options;
    const position = this.#positionIn(view, oldest);
    this.#node ??= queue.find((name) => parseContenderNode(name)?.guid === this.#guid) ?? null;
    this.#isBusy = position.kind !== "gone" && position.kind !== "granted" && position.kind !== "eligible";
    switch (position.kind) {
      case "gone":
        // This server does not have the node, but another server of the ensemble may. There it would block all
        // contenders behind it.
        if (this.#node !== null) await deleteNodeIfThere(this.#zk, `${this.#options.path.queue}/${this.#node}`);
        return { do: "contend" };
      case "granted": {
        const { grant } = position;
        const others = mode === "exclusive" ? grants.filter((name) => name !== grant) : [];
        return { do: "await older", own: grant, others };
      }
    }
    if (claim !== undefined) {
      const claimed = await claim.decide({
        isFree: position.kind === "eligible",
        holders: grants.flatMap((name) => parseHolderNode(name)?.guid ?? []),
        guid: this.#guid,
        queueNode: `${this.#options.path.queue}/${this.#node}`,
      });
      if (claimed === "again") return readOnly;
      if (claimed !== "wait") return { do: "grant", view, claimed };
    } else if (position.kind === "eligible") return { do: "grant", view };
    if (!waits && claim === undefined) return { do: "busy" };
    if (position.kind === "unclear") return await this.#readAges(view);
    if (position.kind === "outranks") return await this.#withdraw(view, position);
    if (position.kind === "next") return { do: "advance", view };
    if (position.passed && !this.#hasAnnounced) return await this.#changeVersion(view);
    this.#options.onQueued();
    return position.kind === "queued"
      ? await this.#awaitPredecessor(position.watch)
      : await this.#awaitChange(view, armed);
  }

  #positionIn(view: LockView, oldest?: string): LockQueuePosition {
    const { mode, limit, waits, claim } = this.#options;
    return lockQueuePosition({
      ...view,
      guid: this.#guid,
      mode,
      limit,
      mayAdvance: this.#state.mayAdvance && waits && claim === undefined,
      ...(oldest === undefined ? {} : { oldest }),
    });
  }

  /**
   * Changes the version of the lock's node, to announce a contender with a better priority. A contender that waits for
   * the grants to change requests its grant without reading the queue again. That request now fails, and the contender
   * reads the queue.
   */
  async #changeVersion(view: LockView): Promise<ContenderStep> {
    const writing = this.#zk.setData(this.#options.path.lock, this.#state.unchanged(view), view.version);
    await nullIfRefused(writing, "BADVERSION", "NONODE"); // refused: a grant has changed the version already
    this.#hasAnnounced = true;
    return readAndWatch;
  }

  async #awaitPredecessor(name: string): Promise<ContenderStep> {
    const armed = this.#waits.arm();
    // Does not use `exists`, which would leave a watch even if the node is gone.
    const watch = armed.event.set;
    const found = await nullIfNoNode(this.#zk.getData(`${this.#options.path.queue}/${name}`, { watch }));
    if (found !== null) await this.#waits.waitFor(armed);
    return readAndWatch;
  }

  async #awaitChange(view: LockView, armed: ArmedNodeWatch | null): Promise<ContenderStep> {
    const { mode, limit, path } = this.#options;
    let { grants } = view;
    if (armed === null) {
      armed = this.#waits.arm();
      const list = await nullIfNoNode(this.#zk.getChildren(path.holders, { watch: armed.event.set }));
      this.#isBusy = list !== null && !isCompatibleLockMode(mode, list.children, limit);
      if (list === null || !this.#isBusy) return readOnly;
      if (list.children.length !== grants.length) return readAndWatch;
      grants = list.children;
    }
    const changed = await this.#waits.waitFor(armed);
    // Saves one round trip at each handoff; see lockRequestAfterGrantChange. With a claim, the lock must be read again.
    const request = changed && this.#options.claim === undefined ? lockRequestAfterGrantChange(mode, grants) : null;
    if (request === null) return readOnly;
    return request === "next"
      ? { do: "advance", view: { ...view, grants } }
      : { do: "grant", view: { ...view, grants: [] } };
  }

  /**
   * Decides again, now knowing the oldest grant. The ages of the grants are read after the version, so the version
   * protects this decision.
   */
  async #readAges(view: LockView): Promise<ContenderStep> {
    const stats = await Promise.all(
      view.grants.map(async (name) => ({ name, stat: await this.#zk.exists(`${this.#options.path.holders}/${name}`) })),
    );
    const aged = stats.flatMap(({ name, stat }) => (stat === null ? [] : [{ name, czxid: stat.czxid }]));
    if (aged.length < stats.length) return readOnly;
    const oldest = aged.reduce((first, one) => (one.czxid < first.czxid ? one : first));
    return await this.#decide(view, null, oldest.name);
  }

  /**
   * Withdraws grants that contenders behind this one got in advance; those contenders are still in the queue. The
   * transaction checks that the holder's grant exists: without it, one of the other grants would hold the lock.
   */
  async #withdraw(view: LockView, { grants, oldest }: OutrankedLockGrants): Promise<ContenderStep> {
    const { path } = this.#options;
    const withdrawing = this.#zk.multi([
      { type: "setData", path: path.lock, data: this.#state.unchanged(view), version: view.version },
      { type: "check", path: `${path.holders}/${oldest}`, version: -1 },
      ...grants.map((name) => ({ type: "delete", path: `${path.holders}/${name}`, version: -1 }) as const),
    ]);
    // A refusal means that another contender was faster, or a grant is gone.
    if (await nullIfRefused(withdrawing, "BADVERSION", "NONODE") !== null) this.#hasAnnounced = true;
    return readAndWatch;
  }

  async #grant(view: LockView, claimed: readonly MultiRequest[] = []): Promise<ContenderStep> {
    const { path, mode, acl } = this.#options;
    const slot = mode === "permit" ? freePermitSlot(view.grants) : null;
    const node = holderNodeName({ mode, slot, guid: this.#guid });
    this.#requestedGrant = node;
    this.#isBusy = false;
    const limit = mode === "permit" ? this.#options.limit : view.state.limit;
    const state = this.#state.afterGrant(view, { guid: this.#guid, limit });
    const multi: MultiRequest[] = [
      { type: "setData", path: path.lock, data: state, version: view.version },
      this.#creationOf(node),
      { type: "delete", path: `${path.queue}/${this.#node}`, version: -1 },
      ...claimed,
    ];
    // Creates the container in the same transaction: if a crash left a container without a child, the server would
    // never remove it.
    if (!view.hasGrantsNode) multi.splice(1, 0, createContainerRequest(path.holders, acl));
    const made = await nullIfRefused(this.#zk.multi(multi), "BADVERSION", "NONODE", "NODEEXISTS").catch((thrown) => {
      if (this.#options.claim?.isRefusedHistory(thrown) === true) return null;
      throw thrown;
    });
    // Another grant came first, a container was removed or created, or the lock was deleted. The next read shows which.
    if (made === null) return readOnly;
    const [guarded] = made;
    if (guarded?.type !== "setData") throw new BatonError("PROTOCOL", "Unexpected response to a grant request");
    return this.#toGranted(node, { token: guarded.stat.mzxid, queueNode: null, aheadMs: 0 });
  }

  /**
   * Requests a grant in advance, behind the others. The write to this contender's queue node wakes the next contender,
   * which then checks whether it can also get a grant.
   */
  async #advance(view: LockView): Promise<ContenderStep> {
    const { path, mode } = this.#options;
    const own = holderNodeName({ mode, slot: null, guid: this.#guid });
    this.#requestedGrant = own;
    this.#advancedAtMs = this.#options.clock.now();
    const requesting = this.#zk.multi([
      { type: "setData", path: path.lock, data: this.#state.unchanged(view), version: view.version },
      this.#creationOf(own),
      { type: "setData", path: `${path.queue}/${this.#node}`, data: this.#nodeData, version: -1 },
    ]);
    const following = this.#followGrants(own, view.grants);
    following.catch(() => {}); // awaited below, unless the request has failed
    if (await nullIfRefused(requesting, "BADVERSION", "NONODE", "NODEEXISTS") === null) return readOnly;
    return await this.#awaitOlder({ own, others: view.grants, following });
  }

  #creationOf(grant: string): MultiRequest {
    const { path, acl, info } = this.#options;
    const data = formatNewHolderNodeInfo(info, this.#zk.session);
    return { type: "create", path: `${path.holders}/${grant}`, data, acl, flags: createFlag.ephemeral };
  }

  async #followGrants(own: string, others: readonly string[]): Promise<FollowedGrants> {
    const armed = this.#waits.arm();
    const names = { folder: this.#options.path.holders, own, others };
    return { armed, grants: await OlderGrants.read(this.#zk, names, armed.event.set) };
  }

  /** Waits until no older grant is left. During the wait, the session keeps its lease as if it held the lock. */
  async #awaitOlder({ own, others, following }: AwaitOlder): Promise<ContenderStep> {
    using _lease = new CleanupScope(this.#zk.session.guard());
    for (let next: Promise<FollowedGrants> | null = following; !this.#waits.isStopped; next = null) {
      const { armed, grants } = await (next ?? this.#followGrants(own, others));
      if (grants.own === null) return readOnly; // the grant was withdrawn, or deleted by force
      if (grants.own.ephemeralOwner !== this.#zk.session.id) return { do: "contend" };
      let isCurrent = true;
      if (!grants.isOldest) {
        this.#isBusy = true;
        this.#options.onQueued();
        // The order of the events after a reconnect does not show the order of the changes.
        isCurrent = await this.#waits.waitFor(armed);
      }
      if (isCurrent && grants.isOldest) {
        this.#isBusy = false;
        const queueNode = this.#node === null ? null : `${this.#options.path.queue}/${this.#node}`;
        const nowMs = this.#options.clock.now();
        return this.#toGranted(own, {
          token: grants.own.czxid,
          queueNode,
          aheadMs: nowMs - (this.#advancedAtMs ?? nowMs),
        });
      }
    }
    return { do: "stopped" };
  }

  #toGranted(
    node: string,
    grant: Pick<GrantedLockContender, "token" | "queueNode" | "aheadMs">,
  ): GrantedLockContender {
    const slot = parseHolderNode(node)?.slot ?? null;
    return { do: "granted", guid: this.#guid, node, slot, limit: slot === null ? null : this.#options.limit, ...grant };
  }

  /**
   * Throws LIMIT_MISMATCH if the lock is held with another limit. If the lock has no holders, it gets the new limit.
   */
  #checkLimit({ state, grants }: LockView): void {
    const { mode, limit, path } = this.#options;
    if (mode !== "permit" || state.limit === null || state.limit === limit || grants.length === 0) return;
    throw new BatonError(
      "LIMIT_MISMATCH",
      `"${path.lock}" is held with limit ${state.limit}, not ${limit}. Ask for ${state.limit}, or for ${limit} when ` +
        "no process holds it: that changes its limit",
    );
  }

  async #findNode(): Promise<string | null> {
    const { path } = this.#options;
    const queue = await readAfterOwnWrites(this.#zk, path.lock, () => readChildNames(this.#zk, path.queue));
    return queue.find((name) => parseContenderNode(name)?.guid === this.#guid) ?? null;
  }
}

interface GrantNames {
  readonly folder: string;
  readonly own: string;
  /** The grants that existed when this contender's grant was requested. They may be gone by now. */
  readonly others: readonly string[];
}

/**
 * Follows the grants that are older than this contender's grant. While an older grant exists, the oldest grant holds
 * the lock.
 */
class OlderGrants {
  readonly #onChange: () => void;
  readonly #older = new Set<string>();
  readonly #deleted = new Set<string>();
  /** The stat of this contender's grant; null if the grant did not exist. */
  own: Stat | null = null;
  #isStale = false;

  private constructor(onChange: () => void) {
    this.#onChange = onChange;
  }

  /**
   * Reads all grants and watches them. `onChange` is called when no older grant is left, and when the grants must be
   * read again.
   *
   * This contender's grant is read last. The grant can be withdrawn only while an older grant exists. If it still
   * exists after the older grants were gone, it is therefore safe. Later, the events show the same order, because a
   * server sends them in the order of the changes.
   */
  static async read(zk: ZooKeeper, { folder, own, others }: GrantNames, onChange: () => void): Promise<OlderGrants> {
    const grants = new OlderGrants(onChange);
    const found = await Promise.all([
      ...others.map((name) => {
        return nullIfNoNode(zk.getData(`${folder}/${name}`, { watch: (event) => grants.#onOther(name, event) }));
      }),
      nullIfNoNode(zk.getData(`${folder}/${own}`, { watch: () => grants.#setStale() })),
    ]);
    const ownStat = grants.own = found.pop()?.stat ?? null;
    for (const [at, other] of found.entries()) {
      const name = others[at] ?? "";
      const isOlder = other !== null && ownStat !== null && other.stat.czxid < ownStat.czxid;
      if (isOlder && !grants.#deleted.has(name)) grants.#older.add(name);
    }
    return grants;
  }

  /** True when no older grant is left, and nothing else has changed since the read. */
  get isOldest(): boolean {
    return this.own !== null && this.#older.size === 0 && !this.#isStale;
  }

  #onOther(name: string, { type }: WatchEvent): void {
    if (type !== "deleted") return this.#setStale(); // its data changed: the watch is used up
    this.#deleted.add(name);
    if (this.#older.delete(name) && this.#older.size === 0) this.#onChange();
  }

  #setStale(): void {
    this.#isStale = true;
    this.#onChange();
  }
}
