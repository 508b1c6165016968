/**
 * One attempt at a lock, step by step: contend, look, decide, wait, ask for the grant. Every step may be begun again after
 * any failure, because each begins by looking. Decisions are queue_position.ts; test/model checks the whole.
 */
import type { Acl, MultiRequest, ZooKeeper } from "../../zookeeper/zookeeper.ts";
import { BatonError } from "../../errors.ts";
import type { Clock } from "../../support/clock.ts";
import { newGuid } from "../../support/guid.ts";
import { createFlag } from "../../wire/jute/zookeeper_operations.ts";
import { type ArmedWatch, AttemptWaits } from "../attempt_waits.ts";
import { containerRequest } from "../container_request.ts";
import { createContender, createParents, type MissingNodes } from "./create_contender.ts";
import { limitStateCodec, type LockStateCodec } from "./lock_state_codec.ts";
import { formatNodeInfo, type HolderInfo } from "../holder_info.ts";
import type { LockMode } from "../../process/lease.ts";
import { contenderPrefix, holderName, parseContender, parseHolder } from "./lock_nodes.ts";
import type { LockPath } from "./lock_path.ts";
import { type LockView, readLock } from "./lock_view.ts";
import { isRefusal, isTransient, nullIfNoNode } from "../request_errors.ts";
import { readAfterSync } from "../read_after_sync.ts";
import { freeSlot, isCompatible, isFreeAfterChange, type QueuePosition, queuePosition } from "./queue_position.ts";

/** What to do where the stored limit is another. set-when-free: this one where nobody holds, else fail. */
export type LimitPolicy = "fail" | "adopt" | "set" | "set-when-free";

export interface ContenderOptions {
  readonly path: LockPath;
  readonly mode: LockMode;
  /** Permits, when the mode is "permit". */
  readonly limit: number;
  readonly limitPolicy: LimitPolicy;
  readonly priority: number;
  readonly info: HolderInfo;
  readonly acl: Acl[];
  readonly clock: Clock;
  /** False: one decision, no waiting. */
  readonly waits: boolean;
  readonly onQueued: (view: LockView, position: QueuePosition) => void;
  /** What is written beside the version; the limit alone when left out. */
  readonly state?: LockStateCodec;
  /** Nobody has used the lock for a while, as far as the caller knows: its nodes are missing. */
  readonly isNew?: boolean;
}

export interface Granted {
  readonly do: "granted";
  readonly guid: string;
  /** The holder's node. */
  readonly node: string;
  /** Which of the permits. */
  readonly slot: number | null;
  /** Of how many, by the state that the grant was made with. */
  readonly limit: number | null;
  readonly token: bigint;
}

export type ContenderOutcome =
  | Granted
  | { readonly do: "busy"; readonly view: LockView; readonly position: QueuePosition }
  | { readonly do: "stopped" };

type ContenderStep =
  | { readonly do: "contend" | "recover" }
  | { readonly do: "look"; readonly watch: boolean }
  | { readonly do: "decide"; readonly view: LockView | null; readonly armed: ArmedWatch | null }
  | { readonly do: "grant"; readonly view: LockView }
  | ContenderOutcome;

const readOnly: ContenderStep = { do: "look", watch: false };
/** Whoever saw its predecessor go is most likely the first now, and will wait for the holders. */
const readAndWatch: ContenderStep = { do: "look", watch: true };

export class Contender {
  readonly #zk: ZooKeeper;
  readonly #options: ContenderOptions;
  readonly #state: LockStateCodec;
  readonly #waits: AttemptWaits;
  #guid = "";
  /** The own node in the queue; null as long as no answer has named it. */
  #node: string | null = null;
  /** The holder's node that was asked for last. */
  #requestedHolder: string | null = null;
  #missing: MissingNodes = "nothing";
  #hasAnnounced = false;
  #isBusy = false;

  constructor(zk: ZooKeeper, options: ContenderOptions) {
    this.#zk = zk;
    this.#options = options;
    this.#state = options.state ?? limitStateCodec;
    this.#waits = new AttemptWaits(zk.session, options.clock);
    if (options.isNew === true) this.#missing = "lock";
  }

  get guid(): string {
    return this.#guid;
  }

  /** Others are in the way, by the last that a server said; false from when the grant is asked for. */
  get isBusy(): boolean {
    return this.#isBusy;
  }

  /** Until granted, or busy, or stopped. Rejects with what the server refuses for good, and when the session has ended. */
  async run(): Promise<ContenderOutcome> {
    let step: ContenderStep = { do: "contend" };
    for (let failures = 0;;) {
      if (this.#waits.isStopped) return { do: "stopped" };
      try {
        if (step.do === "granted" || step.do === "busy" || step.do === "stopped") return step;
        step = await this.#runStep(step);
        failures = 0;
      } catch (thrown) {
        if (!isTransient(thrown)) throw thrown;
        step = { do: "recover" };
        if (failures > 0) await this.#waits.pause(failures);
        failures++;
      }
    }
  }

  /** Sends nothing more but what `leave` sends. */
  stop(): void {
    this.#waits.stop();
  }

  /**
   * Takes whatever this attempt may have made off the server: its place in the queue, and the grant that was on its way.
   * Ends when that is done or the session has ended, however long it takes.
   */
  async leave(): Promise<void> {
    this.stop();
    for (let failures = 0; this.#guid !== "" && !this.#zk.session.ended.aborted; failures++) {
      try {
        this.#node ??= await this.#findNode();
        if (this.#node === null) return;
        const { path } = this.#options;
        const leaving = [`${path.queue}/${this.#node}`];
        // The grant is a write of this session too: both deletions come after it.
        if (this.#requestedHolder !== null) leaving.push(`${path.holders}/${this.#requestedHolder}`);
        await Promise.all(leaving.map((node) => nullIfNoNode(this.#zk.delete(node, -1))));
        return;
      } catch (thrown) {
        if (!isTransient(thrown)) return; // the session has ended, or an ACL has changed: nothing more can be done
        await this.#waits.pause(failures);
      }
    }
  }

  #runStep(step: Exclude<ContenderStep, ContenderOutcome>): Promise<ContenderStep> {
    switch (step.do) {
      case "contend":
        return this.#contend();
      case "recover":
        return readAfterSync(this.#zk, this.#options.path.lock, () => this.#read(false));
      case "look":
        return this.#read(step.watch);
      case "decide":
        return this.#decide(step.view, step.armed);
      case "grant":
        return this.#grant(step.view);
    }
  }

  async #contend(): Promise<ContenderStep> {
    const { path, mode, priority, acl, info } = this.#options;
    this.#guid = newGuid();
    this.#node = null;
    this.#requestedHolder = null;
    this.#hasAnnounced = false;
    const prefix = `${path.queue}/${contenderPrefix(priority, mode, this.#guid)}`;
    const state = this.#state.initial(mode === "permit" ? this.#options.limit : null);
    for (let tries = 0;; tries++) {
      if (this.#missing === "parents") await createParents(this.#zk, path, acl);
      if (this.#waits.isStopped) return { do: "stopped" };
      // In one write, and answered in order: the queue that is read has the own node in it.
      const creating = createContender(this.#zk, path, {
        missing: this.#missing,
        prefix,
        acl,
        state,
        permanent: this.#state.permanent,
        data: this.#data(info),
      });
      const reading = readLock(this.#zk, path);
      reading.catch(() => {}); // looked at below, unless the creation has failed
      const created = await creating;
      if ("node" in created) {
        this.#missing = "nothing";
        this.#node = created.node;
        return { do: "decide", view: await reading, armed: null };
      }
      this.#missing = created.missing;
      if (tries > 3) await this.#waits.pause(tries);
    }
  }

  async #read(watch: boolean): Promise<ContenderStep> {
    const armed = this.#waits.arm();
    const view = await readLock(this.#zk, this.#options.path, watch ? { watchHolders: armed.event.set } : {});
    return { do: "decide", view, armed: watch ? armed : null };
  }

  async #decide(view: LockView | null, armed: ArmedWatch | null): Promise<ContenderStep> {
    if (view === null) return { do: "contend" };
    const { holders, queue } = view;
    const limit = this.#limitIn(view);
    const position = queuePosition({ holders, queue, guid: this.#guid, mode: this.#options.mode, limit });
    this.#node ??= queue.find((name) => parseContender(name)?.guid === this.#guid) ?? null;
    this.#isBusy = position.kind === "queued" || position.kind === "blocked";
    switch (position.kind) {
      case "gone":
        return { do: "contend" };
      case "held":
        return await this.#claim(position.holder, limit);
      case "eligible":
        return { do: "grant", view };
    }
    if (!this.#options.waits) return { do: "busy", view, position };
    if (position.passed && !this.#hasAnnounced) return await this.#announce(view);
    this.#options.onQueued(view, position);
    return position.kind === "queued"
      ? await this.#awaitPredecessor(position.watch)
      : await this.#awaitHolders(view, limit, armed);
  }

  /** The own node among the holders: granted, though the answer was lost. */
  async #claim(node: string, limit: number): Promise<ContenderStep> {
    const stat = await this.#zk.exists(`${this.#options.path.holders}/${node}`);
    if (stat === null) return readOnly;
    if (stat.ephemeralOwner !== this.#zk.session.id) return { do: "contend" };
    return this.#granted(node, { token: stat.czxid, limit });
  }

  /**
   * Whoever waits for the holders may ask for the grant without looking at the queue again. A contender that comes
   * later and stands before it moves the version, so that this fails and the other looks.
   */
  async #announce(view: LockView): Promise<ContenderStep> {
    try {
      await this.#zk.setData(this.#options.path.lock, this.#state.unchanged(view), view.version);
    } catch (thrown) {
      if (!isRefusal(thrown, "BADVERSION", "NONODE")) throw thrown; // refused: moved already, by a grant
    }
    this.#hasAnnounced = true;
    return readAndWatch;
  }

  async #awaitPredecessor(name: string): Promise<ContenderStep> {
    const armed = this.#waits.arm();
    // Not `exists`, which leaves its watch behind also when the node is gone already.
    const watch = armed.event.set;
    const found = await nullIfNoNode(this.#zk.getData(`${this.#options.path.queue}/${name}`, { watch }));
    if (found !== null) await this.#waits.waitFor(armed);
    return readAndWatch;
  }

  async #awaitHolders(view: LockView, limit: number, armed: ArmedWatch | null): Promise<ContenderStep> {
    const { mode, path } = this.#options;
    let { holders } = view;
    if (armed === null) {
      armed = this.#waits.arm();
      const list = await nullIfNoNode(this.#zk.getChildren(path.holders, { watch: armed.event.set }));
      this.#isBusy = list !== null && !isCompatible(mode, list.children, limit);
      if (list === null || !this.#isBusy) return readOnly;
      holders = list.children;
    }
    const changed = await this.#waits.waitFor(armed);
    // Saves a round trip of every hand-over; why it is safe is said at isFreeAfterChange.
    return changed && isFreeAfterChange(holders) ? { do: "grant", view: { ...view, holders: [] } } : readOnly;
  }

  async #grant(view: LockView): Promise<ContenderStep> {
    const { path, mode, acl, info } = this.#options;
    const slot = mode === "permit" ? freeSlot(view.holders) : null;
    const node = holderName({ mode, slot, guid: this.#guid });
    this.#requestedHolder = node;
    this.#isBusy = false;
    const limit = mode === "permit" ? this.#limitIn(view) : view.state.limit;
    const state = this.#state.afterGrant(view, { guid: this.#guid, limit });
    const multi: MultiRequest[] = [
      { type: "setData", path: path.lock, data: state, version: view.version },
      { type: "create", path: `${path.holders}/${node}`, data: this.#data(info), acl, flags: createFlag.ephemeral },
      { type: "delete", path: `${path.queue}/${this.#node}`, version: -1 },
    ];
    // In the same transaction, so that no crash leaves an empty container that was never used, which is never reaped.
    if (!view.hasHolders) multi.splice(1, 0, containerRequest(path.holders, acl));
    try {
      const [guarded] = await this.#zk.multi(multi);
      if (guarded?.type !== "setData") throw new BatonError("PROTOCOL", "A grant was answered with something else");
      return this.#granted(node, { token: guarded.stat.mzxid, limit });
    } catch (thrown) {
      // Another grant came first, or a container was reaped or made, or somebody deleted the lock: the look will tell.
      if (isRefusal(thrown, "BADVERSION", "NONODE", "NODEEXISTS")) return readOnly;
      throw thrown;
    }
  }

  #granted(node: string, { token, limit }: { token: bigint; limit: number | null }): Granted {
    const slot = parseHolder(node)?.slot ?? null;
    return { do: "granted", guid: this.#guid, node, slot, limit: slot === null ? null : limit, token };
  }

  /** Throws LIMIT_MISMATCH. */
  #limitIn({ state, holders }: LockView): number {
    const { mode, limit, limitPolicy, path } = this.#options;
    if (mode !== "permit" || limitPolicy === "set" || state.limit === null || state.limit === limit) return limit;
    // No holder, as long as the version that was read stands, which guards the grant.
    if (limitPolicy === "set-when-free" && holders.length === 0) return limit;
    if (limitPolicy === "adopt") return state.limit;
    throw new BatonError(
      "LIMIT_MISMATCH",
      `"${path.lock}" has a limit of ${state.limit}, not ${limit}: ask for ${state.limit}, or choose the limit policy ` +
        "adopt (take what is stored) or set (store the new one)",
    );
  }

  async #findNode(): Promise<string | null> {
    const { path } = this.#options;
    const [, list] = await Promise.all([this.#zk.sync(path.lock), nullIfNoNode(this.#zk.getChildren(path.queue))]);
    return list?.children.find((name) => parseContender(name)?.guid === this.#guid) ?? null;
  }

  #data(info: HolderInfo): Uint8Array {
    const { timeoutMs } = this.#zk.session;
    return formatNodeInfo({ ...info, sinceMs: Date.now(), sessionTimeoutMs: timeoutMs, revoke: null });
  }
}
