/**
 * One contender for a lock, step by step: create a node, read, decide, wait, request the grant. Each step begins with a read,
 * so that it can be repeated after any failure. queue_position.ts decides; test/model checks the protocol.
 */
import type { Acl, MultiRequest, ZooKeeper } from "../../zookeeper/zookeeper.ts";
import { BatonError } from "../../errors.ts";
import type { Clock } from "../../support/clock.ts";
import { newGuid } from "../../support/guid.ts";
import { createFlag } from "../../wire/jute/zookeeper_operations.ts";
import { type ArmedWatch, AttemptWaits } from "../session_waits.ts";
import { containerRequest, createMember, createParents, type MissingNodes } from "./create_nodes.ts";
import { limitStateCodec, type LockStateCodec, type LockView, readLock } from "./lock_state.ts";
import { formatNewNode, type HolderInfo } from "../holder_info.ts";
import type { LockMode } from "../../process/lease.ts";
import { contenderPrefix, holderName, parseContender, parseHolder } from "./lock_nodes.ts";
import type { LockPath } from "./lock_path.ts";
import {
  childNames,
  deleteIfThere,
  nullIfNoNode,
  nullIfRefused,
  readAfterOwnWrites,
  retryOnConnectionLoss,
} from "../request_errors.ts";
import { freeSlot, isCompatible, isFreeAfterChange, queuePosition } from "./queue_position.ts";

/** Action when the stored limit differs. set-when-free: replace it if no process holds the lock, else fail. */
export type LimitPolicy = "fail" | "adopt" | "set" | "set-when-free";

/** Options of a contender of any protocol. */
export interface CommonContenderOptions {
  readonly path: LockPath;
  readonly mode: LockMode;
  readonly info: HolderInfo;
  readonly acl: Acl[];
  readonly clock: Clock;
  /** False: one decision, no waiting. */
  readonly waits: boolean;
  readonly onQueued: () => void;
}

interface ContenderOptions extends CommonContenderOptions {
  /** Number of permits, for mode "permit". */
  readonly limit: number;
  readonly limitPolicy: LimitPolicy;
  readonly priority: number;
  /** Format of the data of the lock's node; only the limit when left out. */
  readonly state?: LockStateCodec;
  /** True when the caller expects the lock's nodes to be missing. */
  readonly isNew?: boolean;
}

export interface Granted {
  readonly do: "granted";
  readonly guid: string;
  /** Name of the holder's node. */
  readonly node: string;
  /** Number of the permit, from 0. */
  readonly slot: number | null;
  /** Number of permits at the time of the grant. */
  readonly limit: number | null;
  readonly token: bigint;
}

export type ContenderOutcome = Granted | { readonly do: "busy" } | { readonly do: "stopped" };

type ContenderStep =
  | { readonly do: "contend" | "recover" }
  | { readonly do: "read"; readonly watch: boolean }
  | { readonly do: "decide"; readonly view: LockView | null; readonly armed: ArmedWatch | null }
  | { readonly do: "grant"; readonly view: LockView }
  | ContenderOutcome;

const readOnly: ContenderStep = { do: "read", watch: false };
/** A contender whose predecessor has gone is probably the first now, and will wait for the holders. */
const readAndWatch: ContenderStep = { do: "read", watch: true };

export class Contender {
  readonly #zk: ZooKeeper;
  readonly #options: ContenderOptions;
  readonly #state: LockStateCodec;
  readonly #waits: AttemptWaits;
  #guid = "";
  /** Own node in the queue; null until a response has contained its name. */
  #node: string | null = null;
  /** Name of the holder's node in the last request for a grant. */
  #requestedHolder: string | null = null;
  #missing: MissingNodes = "nothing";
  #hasAnnounced = false;
  #isBusy = false;

  constructor(zk: ZooKeeper, options: ContenderOptions) {
    this.#zk = zk;
    this.#options = options;
    this.#state = options.state ?? limitStateCodec;
    this.#waits = new AttemptWaits(zk.session, options.clock);
    if (options.isNew === true) this.#missing = "outer";
  }

  get guid(): string {
    return this.#guid;
  }

  /** Whether other contenders were in the way in the last response; false as soon as the grant is requested. */
  get isBusy(): boolean {
    return this.#isBusy;
  }

  /** Runs until granted, busy or stopped. Rejects with a permanent refusal of the server, and when the session has ended. */
  async run(): Promise<ContenderOutcome> {
    let step: Exclude<ContenderStep, ContenderOutcome> = { do: "contend" };
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
   * Deletes the nodes that this contender may have created: in the queue, and as a holder if a grant was requested.
   * Ends when that is done or the session has ended, however long it takes.
   */
  async leave(): Promise<void> {
    this.#waits.stop();
    if (this.#guid === "") return;
    await retryOnConnectionLoss(this.#zk, async () => {
      this.#node ??= await this.#findNode();
      if (this.#node === null) return;
      const { path } = this.#options;
      const leaving = [`${path.queue}/${this.#node}`];
      // The grant is a write of the same session: both deletions are executed after it.
      if (this.#requestedHolder !== null) leaving.push(`${path.holders}/${this.#requestedHolder}`);
      await Promise.all(leaving.map((node) => deleteIfThere(this.#zk, node)));
    }, { clock: this.#options.clock, limitMs: Infinity })
      .catch(() => {}); // the session has ended, or the ACL has changed: no retry can help
  }

  #runStep(step: Exclude<ContenderStep, ContenderOutcome>): Promise<ContenderStep> {
    switch (step.do) {
      case "contend":
        return this.#contend();
      case "recover":
        return readAfterOwnWrites(this.#zk, this.#options.path.lock, () => this.#read(false));
      case "read":
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
    const lock: MultiRequest = this.#state.permanent
      ? { type: "create", path: path.lock, data: state, acl, flags: createFlag.persistent }
      : containerRequest(path.lock, acl, state);
    for (let tries = 0;; tries++) {
      if (this.#missing === "parents") await createParents(this.#zk, path.lock, acl);
      if (this.#waits.isStopped) return { do: "stopped" };
      // Both requests go in one packet and are executed in order: the queue that is read contains the own node.
      const creating = createMember(this.#zk, {
        missing: this.#missing,
        containers: [lock, containerRequest(path.queue, acl)],
        prefix,
        acl,
        data: formatNewNode(info, this.#zk.session),
      });
      const reading = readLock(this.#zk, path);
      reading.catch(() => {}); // awaited below, unless the creation has failed
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
    const view = await readLock(this.#zk, this.#options.path, watch ? armed.event.set : undefined);
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
        await this.#deleteLostNode();
        return { do: "contend" };
      case "held":
        return await this.#confirmGrant(position.holder, limit);
      case "eligible":
        return { do: "grant", view };
    }
    if (!this.#options.waits) return { do: "busy" };
    if (position.passed && !this.#hasAnnounced) return await this.#changeVersion(view);
    this.#options.onQueued();
    return position.kind === "queued"
      ? await this.#awaitPredecessor(position.watch)
      : await this.#awaitHolders(view, limit, armed);
  }

  /** An ensemble whose servers differ may still have a node that this server has not: it would stay in front of all others. */
  async #deleteLostNode(): Promise<void> {
    if (this.#node !== null) await deleteIfThere(this.#zk, `${this.#options.path.queue}/${this.#node}`);
  }

  /** Returns the grant for an own node among the holders: the response to the request was lost. */
  async #confirmGrant(node: string, limit: number): Promise<ContenderStep> {
    const stat = await this.#zk.exists(`${this.#options.path.holders}/${node}`);
    if (stat === null) return readOnly;
    if (stat.ephemeralOwner !== this.#zk.session.id) return { do: "contend" };
    return this.#toGranted(node, { token: stat.czxid, limit });
  }

  /**
   * Changes the version of the lock's node. A contender that waits for the holders requests the grant without reading the
   * queue again; a later contender of better priority changes the version, so that this request fails and the queue is read.
   */
  async #changeVersion(view: LockView): Promise<ContenderStep> {
    const writing = this.#zk.setData(this.#options.path.lock, this.#state.unchanged(view), view.version);
    await nullIfRefused(writing, "BADVERSION", "NONODE"); // refused: a grant has changed the version already
    this.#hasAnnounced = true;
    return readAndWatch;
  }

  async #awaitPredecessor(name: string): Promise<ContenderStep> {
    const armed = this.#waits.arm();
    // getData, not exists: exists leaves a watch even when the node is gone.
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
    // Saves one round trip per handoff; isFreeAfterChange says why it is safe.
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
      {
        type: "create",
        path: `${path.holders}/${node}`,
        data: formatNewNode(info, this.#zk.session),
        acl,
        flags: createFlag.ephemeral,
      },
      { type: "delete", path: `${path.queue}/${this.#node}`, version: -1 },
    ];
    // The container belongs to the transaction: the server would never remove one that a crash had left without a child.
    if (!view.hasHolders) multi.splice(1, 0, containerRequest(path.holders, acl));
    const made = await nullIfRefused(this.#zk.multi(multi), "BADVERSION", "NONODE", "NODEEXISTS");
    // Another grant came first, or a container was removed or created, or the lock was deleted: the next read shows it.
    if (made === null) return readOnly;
    const [guarded] = made;
    if (guarded?.type !== "setData") throw new BatonError("PROTOCOL", "Unexpected response to a grant request");
    return this.#toGranted(node, { token: guarded.stat.mzxid, limit });
  }

  #toGranted(node: string, { token, limit }: { token: bigint; limit: number | null }): Granted {
    const slot = parseHolder(node)?.slot ?? null;
    return { do: "granted", guid: this.#guid, node, slot, limit: slot === null ? null : limit, token };
  }

  /** Throws LIMIT_MISMATCH. */
  #limitIn({ state, holders }: LockView): number {
    const { mode, limit, limitPolicy, path } = this.#options;
    if (mode !== "permit" || limitPolicy === "set" || state.limit === null || state.limit === limit) return limit;
    // The version guards the grant: as long as it is unchanged, there is still no holder.
    if (limitPolicy === "set-when-free" && holders.length === 0) return limit;
    if (limitPolicy === "adopt") return state.limit;
    throw new BatonError(
      "LIMIT_MISMATCH",
      `"${path.lock}" has limit ${state.limit}, not ${limit}. Ask for ${state.limit}, or use limit policy adopt (take the ` +
        "stored limit) or set (store the new one)",
    );
  }

  async #findNode(): Promise<string | null> {
    const { path } = this.#options;
    const queue = await readAfterOwnWrites(this.#zk, path.lock, () => childNames(this.#zk, path.queue));
    return queue.find((name) => parseContender(name)?.guid === this.#guid) ?? null;
  }
}
