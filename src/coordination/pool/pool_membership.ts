/**
 * Shows a run's terms to the others, and looks at theirs: an ephemeral child of `runs`, of the session that holds the items'
 * locks. Whoever was there before with other terms is in the way: pool_admission.ts. Why that suffices is in
 * docs/protocol/pool.md.
 */
import type { Acl, ZooKeeper } from "../../zookeeper/zookeeper.ts";
import { abortable, throwIfAborted } from "../../support/abort.ts";
import { backoffMs } from "../../support/backoff.ts";
import type { Clock } from "../../support/clock.ts";
import { newGuid } from "../../support/guid.ts";
import { createFlag } from "../../wire/jute/zookeeper_operations.ts";
import { Event } from "../../support/event.ts";
import { containerRequest } from "../container_request.ts";
import type { HolderInfo } from "../holder_info.ts";
import { withinLeaveTime } from "../leave_time.ts";
import type { Lease } from "../../process/lease.ts";
import { createParents } from "../lock/create_contender.ts";
import { lockPathAt } from "../lock/lock_path.ts";
import { isRefusal, isTransient, nullIfNoNode } from "../request_errors.ts";
import { readAfterSync } from "../read_after_sync.ts";
import { retryOnConnectionLoss } from "../retry_on_connection_loss.ts";
import { admissionOf, runPrefix } from "./pool_admission.ts";
import type { PoolPath } from "./pool_path.ts";
import { formatTerms, parseTerms, type PoolTerms, termsHash, termsMismatch } from "./pool_terms.ts";

export interface PoolMembershipOptions {
  readonly component: string;
  readonly path: PoolPath;
  readonly total: number | null;
  readonly info: HolderInfo;
  readonly acl: Acl[];
  readonly clock: Clock;
}

/** What has to be made before the own node can be. */
type MissingNode = "nothing" | "runs" | "own" | "parents";

/** So often what is missing is made without a pause: others, and the server, make and reap it meanwhile. */
const triesWithoutPause = 5;
/** So long others get to step back, milliseconds: they have been refused, and end. */
const withdrawMsMax = 2000;
const recheckWait = { firstMs: 20, maxMs: 200 };

export class PoolMembership {
  readonly #zk: ZooKeeper;
  readonly #options: PoolMembershipOptions;
  readonly #terms: PoolTerms;
  readonly #refused = new AbortController();
  #signal: AbortSignal | undefined;
  /** Null before the terms are shown for the first time. */
  #admitted: Promise<void> | null = null;
  /** Of the own node. */
  #guid = "";
  /** Its name; null as long as no list has shown it. */
  #name: string | null = null;

  constructor(zk: ZooKeeper, options: PoolMembershipOptions) {
    this.#zk = zk;
    this.#options = options;
    this.#terms = { templates: options.path.templates, total: options.total };
  }

  /**
   * What is acquired, once nobody of other terms was there before: until then no item may be asked for. For the first time the
   * terms are shown beside that, in the same write. Rejects CONFIG and LIMIT_MISMATCH when somebody was there, at once, with
   * nothing acquired; what acquiring rejects with; the signal's reason; and what the servers refuse.
   */
  async joinDuring<L extends Lease>(acquire: (refused: AbortSignal) => Promise<L>, signal: AbortSignal): Promise<L> {
    const acquiring = acquire(this.#refused.signal);
    this.#admitted ??= this.#join(signal);
    const [lease, entered] = await Promise.allSettled([acquiring, abortable(this.#admitted, signal)]);
    if (entered.status === "fulfilled") {
      if (lease.status === "fulfilled") return lease.value;
      throw lease.reason;
    }
    if (lease.status === "fulfilled") await lease.value.release().catch(() => {}); // with the session, at the latest
    // Other terms say more than that the component is busy; of a session that has ended, and of the time, the lock says more.
    const isLockAsked = this.#zk.session.ended.aborted || entered.reason === signal.reason;
    throw lease.status === "rejected" && isLockAsked ? lease.reason : entered.reason;
  }

  /** Takes the terms back, while the session lives on: when no job is left that could still run. */
  async leave(): Promise<void> {
    const { clock } = this.#options;
    const { session } = this.#zk;
    if (this.#admitted === null) return;
    const leaving = this.#admitted.catch(() => {}).then(() => this.#leave());
    await withinLeaveTime({ session, clock, why: "answered" }, leaving.catch(() => {})); // else it goes with the session
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
    let lateMs = Infinity;
    for (let waits = 0;;) {
      throwIfAborted(this.#signal);
      const admission = admissionOf(names, this.#guid);
      if (admission.kind === "admitted") return;
      if (admission.kind === "gone") {
        names = await this.#announce(); // somebody has deleted it
        continue;
      }
      lateMs = Math.min(lateMs, clock.now() + withdrawMsMax);
      if (admission.kind === "refused" || clock.now() >= lateMs) await this.#refuse(admission.by);
      if (admission.kind === "waiting") await this.#pause(waits++);
      names = await this.#retryPatiently(() => this.#list());
    }
  }

  async #leave(): Promise<void> {
    const { clock, path } = this.#options;
    await retryOnConnectionLoss(this.#zk, async () => {
      const name = this.#name ?? this.#ownIn(await this.#listAfterSync());
      if (name !== null) await nullIfNoNode(this.#zk.delete(`${path.runs}/${name}`, -1));
    }, { clock });
  }

  /** Rejects, unless who stands in the way has left meanwhile. */
  async #refuse(by: string): Promise<void> {
    const { component, path } = this.#options;
    const found = await this.#retryPatiently(() => nullIfNoNode(this.#zk.getData(`${path.runs}/${by}`)));
    if (found !== null) throw termsMismatch(component, this.#terms, parseTerms(found.data));
  }

  /** The names of all who show their terms, the own one among them. */
  async #announce(): Promise<readonly string[]> {
    const { path, acl } = this.#options;
    for (let missing: MissingNode = "nothing", tries = 0;; tries++) {
      if (tries > triesWithoutPause) await this.#pause(tries);
      if (missing === "parents") await this.#retryPatiently(() => createParents(this.#zk, lockPathAt(path.own), acl));
      this.#guid = newGuid();
      this.#name = null;
      // In one write, and answered in order: the list that is read has the own node in it, and all that came before it.
      const creating = this.#create(missing);
      const looking = this.#list();
      looking.catch(() => {}); // looked at below, unless the creation has failed
      try {
        await creating;
        return this.#findOwn(await looking);
      } catch (thrown) {
        if (isRefusal(thrown, "NODEEXISTS")) missing = missing === "runs" ? "nothing" : "runs";
        else if (isRefusal(thrown, "NONODE")) missing = missing === "own" ? "parents" : "own";
        else if (!isTransient(thrown)) throw thrown;
        else {
          const names = this.#findOwn(await this.#retryPatiently(() => this.#listAfterSync()));
          if (this.#name !== null) return names;
          missing = "nothing";
        }
      }
    }
  }

  async #create(missing: MissingNode): Promise<void> {
    const { path, total, info, acl } = this.#options;
    const node = `${path.runs}/${runPrefix(termsHash(path, total), this.#guid)}`;
    const data = formatTerms({ ...this.#terms, info }, Date.now());
    if (missing === "nothing") {
      await this.#zk.create(node, data, { mode: "ephemeralSequential", acl });
      return;
    }
    // Together with their first child: a container that never had one would never be reaped.
    const folders = missing === "runs" ? [path.runs] : [path.own, path.runs];
    await this.#zk.multi([
      ...folders.map((at) => containerRequest(at, acl)),
      { type: "create", path: node, data, acl, flags: createFlag.ephemeralSequential },
    ]);
  }

  #findOwn(names: readonly string[]): readonly string[] {
    this.#name = this.#ownIn(names);
    return names;
  }

  #ownIn(names: readonly string[]): string | null {
    return names.find((name) => name.includes(`-${this.#guid}-`)) ?? null;
  }

  async #list(): Promise<readonly string[]> {
    return (await nullIfNoNode(this.#zk.getChildren(this.#options.path.runs)))?.children ?? [];
  }

  /** As new as whatever was asked before. */
  #listAfterSync(): Promise<readonly string[]> {
    return readAfterSync(this.#zk, this.#options.path.runs, () => this.#list());
  }

  /** However long it takes, as the wait for the component. */
  async #retryPatiently<T>(ask: () => Promise<T>): Promise<T> {
    const { clock } = this.#options;
    const isWanted = () => this.#signal?.aborted !== true;
    for (;;) {
      try {
        return await retryOnConnectionLoss(this.#zk, ask, { clock, isWanted });
      } catch (thrown) {
        throwIfAborted(this.#signal);
        if (!isTransient(thrown) || this.#zk.session.ended.aborted) throw thrown;
      }
    }
  }

  async #pause(waits: number): Promise<void> {
    const event = new Event();
    this.#options.clock.after(backoffMs(waits, recheckWait), event.set);
    await event.wait();
  }
}
