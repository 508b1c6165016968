/**
 * Takes a lock: one attempt (contender.ts) under one deadline and one signal, and what is said when it fails.
 * The protocol is in docs/protocol/lock.md, and checked in test/model.
 */
import type { Acl, ZooKeeper } from "../../zookeeper/zookeeper.ts";
import { BatonError, messageOf } from "../../errors.ts";
import { abortable, onAbort, throwIfAborted } from "../../support/abort.ts";
import { type Clock, systemClock } from "../../support/clock.ts";
import { type Deadline, waitLimit, WaitOver } from "../../support/deadline.ts";
import { formatDuration } from "../../support/duration.ts";
import { Contender, type Granted, type LimitPolicy } from "./lock_contender.ts";
import type { GuardedState } from "./lock_state_codec.ts";
import { type HolderInfo, parseNodeInfo, type Revocation, unknownHolder } from "../holder_info.ts";
import type { LockMode } from "../../process/lease.ts";
import { ForeignContender } from "../interop/interop_contender.ts";
import { type ForeignRecipe, isCuratorRevocation } from "../interop/interop_node_names.ts";
import { foreignPath } from "../interop/interop_path.ts";
import { foreignStatus } from "../interop/interop_status.ts";
import { type LeaveReason, withinLeaveTime } from "../leave_time.ts";
import { describeLock } from "./lock_messages.ts";
import { type LockPath, lockPath } from "./lock_path.ts";
import { isLimit, limitMax } from "./lock_state.ts";
import { type LockStatus, lockStatus } from "./lock_status.ts";
import { waitForFreshLease } from "../fresh_lease.ts";
import { ZooKeeperLease } from "../zookeeper_lease.ts";

export interface AcquireOptions {
  /** "exclusive" when left out. */
  readonly mode?: LockMode;
  /** Permits, for mode "permit". */
  readonly limit?: number;
  /** When the stored limit is another: fail (the default), adopt the stored one, set this one, or do so where nobody holds. */
  readonly limitPolicy?: LimitPolicy;
  /** 0 (first) to 999; 100 when left out. */
  readonly priority?: number;
  /**
   * "none": only if it is free at once, by the first answer, which has to come within the session timeout. A number:
   * milliseconds. "forever" when left out.
   */
  readonly wait?: "none" | "forever" | number;
  /** When the wait began, on the clock, if that was before this call: `wait` counts from there. */
  readonly sinceMs?: number;
  /** A signal of `waitLimit` limits a call that this one is part of, in the place of `wait`. */
  readonly signal?: AbortSignal;
  /** Who this is, for those who look. */
  readonly info?: HolderInfo;
  /** Called when the wait begins, when the place in the queue changes, and every `progressMs`. */
  readonly onWaiting?: (status: WaitingStatus) => void;
  /** Called when somebody else has to be waited for, each time that this is found; asks nothing. */
  readonly onQueued?: () => void;
  /** Milliseconds; 0, the default, never looks by itself. */
  readonly progressMs?: number;
  /** Where the locks are: "/baton" when left out. */
  readonly root?: string;
  /** The lock's own place, instead of one made from root and name. */
  readonly path?: LockPath;
  /** What messages call it: "lock" when left out. */
  readonly thing?: string;
  /** What is written into the guarded state; a lock's limit when left out. */
  readonly state?: GuardedState;
  /** The caller has seen that there is no such lock: saves a round trip, and a wrong guess costs one. */
  readonly isNew?: boolean;
  /**
   * The name is the path of a lock that others take by this recipe of theirs: exclusive, and shared where it knows that.
   * Limits, priorities, root, path and state have no meaning then.
   */
  readonly recipe?: ForeignRecipe | undefined;
  /** For every node that is made; the client's own when left out. */
  readonly acl?: Acl[];
  /** The client's own: leases are compared with it. */
  readonly clock?: Clock;
}

export interface WaitingStatus {
  /** 1 is the next. */
  readonly place: number;
  readonly waitedMs: number;
  readonly status: LockStatus;
}

/** A shorter session leaves no time to notice, to change servers and to stop a job. Milliseconds. */
export const sessionTimeoutMsMin = 2000;
/** So many holders and waiters are asked who they are, for a sentence or a line. */
const detailsMax = 100;

/**
 * Waits for the lock and returns the lease. Rejects LOCK_BUSY (`wait: "none"`), LOCK_TIMEOUT (a server has said that it is
 * busy), LIMIT_MISMATCH, CONFIG (T below 2 s, or a foreign node), UNREACHABLE (no server has answered in time, or the
 * session ended while waiting), the signal's reason, and what a server refuses. Then nothing of it stays: it has left the
 * queue, or, if no server answers within 1 s, leaves as soon as one does.
 */
export async function acquireLock(
  zk: ZooKeeper,
  name: string,
  options: AcquireOptions = {},
): Promise<ZooKeeperLease> {
  const attempt = new Attempt(zk, name, options);
  return await attempt.run();
}

function foreignRevocation(data: Uint8Array): Revocation | null {
  return isCuratorRevocation(data) ? { by: "Curator's Revoker", reason: "" } : parseNodeInfo(data).revoke;
}

/** What stands in line for it. */
interface LockAttempt {
  /** Of its node; empty as long as there is none. */
  readonly guid: string;
  /** Others are in the way, by the last that a server said. */
  readonly isBusy: boolean;
  run(): Promise<Granted | { readonly do: "busy" | "stopped" }>;
  leave(): Promise<void>;
}

class Attempt {
  readonly #zk: ZooKeeper;
  readonly #name: string;
  readonly #options: AcquireOptions;
  readonly #clock: Clock;
  readonly #path: LockPath;
  readonly #mode: LockMode;
  readonly #startedMs: number;
  readonly #contender: LockAttempt;
  #isTelling = false;
  #isOver = false;
  #leaving: Promise<string> | null = null;

  constructor(zk: ZooKeeper, name: string, options: AcquireOptions) {
    const { mode = "exclusive", recipe } = options;
    this.#zk = zk;
    this.#name = name;
    this.#options = options;
    this.#mode = mode;
    this.#path = options.path ?? (recipe === undefined ? lockPath(name, options.root) : foreignPath(name));
    this.#clock = options.clock ?? systemClock();
    this.#startedMs = options.sinceMs ?? this.#clock.now();
    this.#contender = this.#newContender();
  }

  #newContender(): LockAttempt {
    const { recipe, info = unknownHolder, acl = this.#zk.acl, state, isNew = false } = this.#options;
    const { limit = 1, limitPolicy = "fail", priority = 100 } = this.#options;
    if (!isLimit(limit)) {
      throw new BatonError("USAGE", `A limit of ${limit} is not a whole number from 1 to ${limitMax}`);
    }
    const common = {
      path: this.#path,
      mode: this.#mode,
      info,
      acl,
      clock: this.#clock,
      waits: !this.#isImpatient,
      onQueued: () => {
        this.#options.onQueued?.();
        void this.#tellWaiting();
      },
    };
    if (recipe !== undefined) return new ForeignContender(this.#zk, { ...common, recipe });
    const guarded = state === undefined ? {} : { state };
    return new Contender(this.#zk, { ...common, limit, limitPolicy, priority, isNew, ...guarded });
  }

  #status(): Promise<LockStatus> {
    const { recipe } = this.#options;
    return recipe === undefined
      ? lockStatus(this.#zk, this.#name, { path: this.#path, detailsMax })
      : foreignStatus(this.#zk, this.#name, { recipe, detailsMax });
  }

  async run(): Promise<ZooKeeperLease> {
    throwIfAborted(this.#options.signal);
    const { session } = this.#zk;
    if (session.timeoutMs < sessionTimeoutMsMin) {
      throw new BatonError(
        "CONFIG",
        `The server allows a session timeout of ${session.timeoutMs} ms, and a lock needs ${sessionTimeoutMsMin} ms at ` +
          "least to stop a job in time: raise the session timeout, or the server's maxSessionTimeout",
      );
    }
    const { progressMs = 0, onWaiting } = this.#options;
    const stop = new AbortController();
    const limit = this.#limit();
    const offs = [
      onAbort(this.#options.signal, (reason) => stop.abort(reason)),
      onAbort(session.ended, (reason) => stop.abort(reason)),
      onAbort(limit.signal, (reason) => stop.abort(reason)),
      limit.cancel,
      progressMs > 0 && onWaiting !== undefined ? this.#tick(progressMs) : () => {},
    ];
    try {
      const outcome = await abortable(this.#contender.run(), stop.signal);
      // Granted and stopped in the same turn: nobody wants it any more.
      throwIfAborted(stop.signal);
      if (outcome.do === "granted") {
        await waitForFreshLease(session, { clock: this.#clock, signal: stop.signal, isPatient: !this.#isImpatient });
        return this.#lease(outcome);
      }
      throw await this.#refusal("LOCK_BUSY", { within: "", why: "answered" });
    } catch (thrown) {
      const isLate = thrown instanceof WaitOver && thrown === stop.signal.reason;
      const failure = isLate ? await this.#late(thrown) : thrown;
      await this.#leave(isLate ? "late" : stop.signal.aborted ? "stopped" : "answered");
      throw session.ended.aborted && !this.#options.signal?.aborted ? this.#sessionEnded(failure) : failure;
    } finally {
      this.#isOver = true;
      for (const off of offs) off();
    }
  }

  get #thing(): string {
    return this.#options.thing ?? "lock";
  }

  /** One that waits for nothing but an answer gives up when whatever the session held is lost. */
  #limit(): Deadline {
    const { wait = "forever" } = this.#options;
    const waitMs = wait === "forever" ? undefined : this.#isImpatient ? this.#zk.session.timeoutMs : Number(wait);
    return waitLimit(this.#clock, waitMs, { sinceMs: this.#startedMs });
  }

  get #isImpatient(): boolean {
    return this.#options.wait === "none" || this.#options.wait === 0;
  }

  #lease(granted: Granted): ZooKeeperLease {
    return new ZooKeeperLease(this.#zk, {
      name: this.#name,
      thing: this.#thing,
      path: this.#path.lock,
      holderPath: `${this.#path.holders}/${granted.node}`,
      holderId: granted.guid,
      mode: this.#mode,
      slot: granted.slot,
      limit: granted.limit,
      fencingToken: granted.token,
      waitedMs: this.#clock.now() - this.#startedMs,
      clock: this.#clock,
      revocationIn: this.#options.recipe === undefined ? undefined : foreignRevocation,
    });
  }

  /** Asks who is in the way and leaves at the same time: the questions go first, both in one write. */
  async #refusal(
    code: "LOCK_BUSY" | "LOCK_TIMEOUT",
    { within, why }: { readonly within: string; readonly why: LeaveReason },
  ): Promise<BatonError> {
    const asking = this.#status().catch(() => null);
    const [status, rest] = await Promise.all([this.#withinLeaveTime(why, asking), this.#leave(why)]);
    const who = status === null
      ? `no server has answered in time to say who holds it${rest}`
      : describeLock(status, { guid: this.#contender.guid, nowMs: Date.now() });
    return new BatonError(code, `Cannot acquire ${this.#thing} "${this.#name}"${within}: ${who}`);
  }

  /** Busy is what a server has said. A grant that was asked for without an answer is none: it may have been made. */
  async #late({ waitMs }: WaitOver): Promise<BatonError> {
    if (this.#contender.isBusy) {
      return await this.#refusal("LOCK_TIMEOUT", { within: ` within ${waitMs} ms`, why: "late" });
    }
    const rest = await this.#leave("late");
    const what = `Cannot acquire ${this.#thing} "${this.#name}"`;
    return new BatonError("UNREACHABLE", `${what}: no server has answered within ${formatDuration(waitMs)}${rest}`);
  }

  #sessionEnded(cause: unknown): BatonError {
    const reason: unknown = this.#zk.session.ended.reason;
    const code = reason instanceof BatonError && reason.code === "REFUSED" ? "REFUSED" : "UNREACHABLE";
    const why = `the session ended before it was granted: ${messageOf(reason)}`;
    return new BatonError(code, `Cannot acquire ${this.#thing} "${this.#name}": ${why}`, { cause });
  }

  /** Once. What there is to say of what stays on the servers; nothing when it has left in time. */
  #leave(why: LeaveReason): Promise<string> {
    return this.#leaving ??= this.#leaveOnce(why);
  }

  async #leaveOnce(why: LeaveReason): Promise<string> {
    const left = await this.#withinLeaveTime(why, this.#contender.leave().then(() => ""));
    const { session } = this.#zk;
    if (left !== null || session.ended.aborted) return left ?? "";
    return `; its session, with what it may have there, ends within ${formatDuration(session.timeoutMs)}`;
  }

  #withinLeaveTime<T>(why: LeaveReason, work: Promise<T>): Promise<T | null> {
    return withinLeaveTime({ session: this.#zk.session, clock: this.#clock, why }, work);
  }

  #tick(progressMs: number): () => void {
    let cancel = () => {};
    const next = () => {
      cancel = this.#clock.after(progressMs, () => void this.#tellWaiting().then(() => this.#isOver || next()));
    };
    next();
    return () => cancel();
  }

  /** For display: a failure is not worth a word, the wait itself will have it too. */
  async #tellWaiting(): Promise<void> {
    const { onWaiting } = this.#options;
    if (onWaiting === undefined || this.#isTelling) return;
    this.#isTelling = true;
    try {
      const status = await this.#status();
      const mine = status.waiters.findIndex((waiter) => waiter.holderId === this.#contender.guid);
      if (this.#isOver || mine === -1) return;
      onWaiting({ place: mine + 1, waitedMs: this.#clock.now() - this.#startedMs, status });
    } catch {
      // told above
    } finally {
      this.#isTelling = false;
    }
  }
}
