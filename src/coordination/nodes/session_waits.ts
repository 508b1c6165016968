/** Waits that depend on the state of a session, and the loop that acquires what a session can hold. */
import type { ZooKeeperSession } from "../../protocols/zookeeper/zookeeper.ts";
import { steadyLeaseMs } from "../../protocols/zookeeper/session_timing.ts";
import { BatonError } from "../../base/errors.ts";
import { abortable, onAbort, TaskScope, throwIfAborted } from "../../base/support/abort.ts";
import { backoffMs, requestBackoff } from "../../base/support/backoff.ts";
import type { Clock } from "../../base/support/clock.ts";
import { resultWithin, startCallDeadline, WaitTimeout } from "../../base/support/deadline.ts";
import { OneTimeEvent } from "../../base/support/event.ts";
import { isServerRefusal, isTransientFailure } from "./node_requests.ts";

/** A watch and the number of the connection it was armed on. */
export interface ArmedNodeWatch {
  readonly event: OneTimeEvent;
  readonly connections: number;
}

/** Waits of one contender: for a watch to fire, or for a pause to end. `stop` ends them all. */
export class SessionWaits {
  readonly #session: ZooKeeperSession;
  readonly #clock: Clock;
  #isStopped = false;
  #event: OneTimeEvent | null = null;

  constructor(session: ZooKeeperSession, clock: Clock) {
    this.#session = session;
    this.#clock = clock;
  }

  get isStopped(): boolean {
    return this.#isStopped;
  }

  /** Ends the current wait. Later waits end immediately; pauses still take their time. */
  stop(): void {
    this.#isStopped = true;
    this.wake();
  }

  /** Ends the current wait or pause. */
  wake(): void {
    this.#event?.set();
  }

  /**
   * Calls `advance` until it returns a result. After a lost response, `recover` chooses the next step, which follows
   * immediately the first time. Returns null after `stop`.
   */
  async repeat<T>(advance: () => Promise<T | null>, recover: () => void): Promise<T | null> {
    for (let failures = 0; !this.#isStopped;) {
      try {
        const result = await advance();
        if (result !== null && !this.#isStopped) return result;
        failures = 0;
      } catch (thrown) {
        if (!isTransientFailure(thrown)) throw thrown;
        recover();
        if (failures > 0) await this.pause(failures);
        failures++;
      }
    }
    return null;
  }

  /** Returns a new watch. The caller arms it before it sends the request that sets the watch on the server. */
  arm(): ArmedNodeWatch {
    return { event: new OneTimeEvent(), connections: this.#session.connections };
  }

  /** True when the watch fired; false when its connection is lost, or after `stop`. */
  async waitFor({ event, connections }: ArmedNodeWatch): Promise<boolean> {
    let changed = true;
    const giveUp = () => {
      changed = false;
      event.set();
    };
    const check = () => {
      if (this.#session.connections !== connections || this.#session.state === "ended") giveUp();
    };
    const off = this.#session.subscribe((change) => change === "state" && check());
    this.#event = event;
    if (this.#isStopped) giveUp();
    check();
    await event.wait();
    off();
    this.#event = null;
    return changed && !this.#isStopped;
  }

  /** Waits for the back-off time, which grows with the number of failures. */
  async pause(failures: number): Promise<void> {
    const event = new OneTimeEvent();
    if (!this.#isStopped) this.#event = event;
    await resultWithin(this.#clock, backoffMs(failures, requestBackoff), event.wait());
  }
}

/**
 * How long a call may take to leave a queue, in milliseconds: after a stop request, after a timeout, after a response,
 * and to give back a claim that would otherwise be lost.
 */
const leaveMsMax = { stopped: 600, late: 300, responded: 1000, claimed: 3000 } as const;

export type LeaveReason = keyof typeof leaveMsMax;

/** Returns null if the work takes too long; the work itself continues until the session ends. */
export async function withinLeaveTime<T>(
  { session, clock, why }: { readonly session: ZooKeeperSession; readonly clock: Clock; readonly why: LeaveReason },
  work: Promise<T>,
): Promise<T | null> {
  // No response can arrive without a connection.
  return await resultWithin(clock, session.state === "connected" ? leaveMsMax[why] : 0, work);
}

/**
 * Waits until the session's lease is as long as steady heartbeats keep it; nearly always this resolves immediately.
 * After the process was suspended, the session may be alive with an expired lease: then it waits for a response of the
 * ZooKeeper leader. Rejects with the signal's reason, and UNREACHABLE when `isPatient` is false and no response arrives
 * within T.
 */
export async function waitForFreshSessionLease(session: ZooKeeperSession, { clock, signal, isPatient }: {
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly isPatient: boolean;
}): Promise<void> {
  const isProven = () => {
    clock.noticeSuspend();
    return session.leaseEndMs() - clock.now() >= steadyLeaseMs(session.timeoutMs);
  };
  if (isProven()) return;
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const why = `no server has responded for ${session.timeoutMs} ms, and the session may have ended`;
  using _ends = new TaskScope(
    session.guard(),
    session.subscribe(() => isProven() && resolve()),
    onAbort(signal, reject),
    isPatient ? () => {} : clock.startTimer(session.timeoutMs, () => reject(new BatonError("UNREACHABLE", why))),
  );
  await promise;
}

/** Minimum session timeout in milliseconds. A shorter session leaves no time to reconnect and to stop a command. */
export const sessionTimeoutMsMin = 2000;

/** Steps in which acquiring a lock and entering a barrier differ. */
export interface AcquisitionSteps<Outcome, Held> {
  /** The message for a session timeout below the minimum. */
  shortTimeoutMessage(timeoutMs: number): string;
  /** Runs the step machine to its outcome. */
  run(): Promise<Outcome>;
  /** Returns what the session holds after this outcome, or throws what the outcome means. */
  take(outcome: Outcome, stop: AbortSignal): Promise<Held>;
  /** Throws the error for the end of the wait, or returns what was acquired at the same moment. */
  timeOut(timeout: WaitTimeout): Promise<Held>;
  /** Leaves, or gives back what was acquired. Only the first call has an effect. */
  leave(why: LeaveReason): Promise<unknown>;
  /** Returns the error for the end of the session, of which `cause` is the consequence. */
  sessionEndedError(reason: unknown, cause: unknown): unknown;
}

/**
 * Runs a step machine until it has acquired what it wants, the wait or the session ends, or the signal aborts. Rejects
 * CONFIG for a session timeout that is too short, and with what `steps` throw; the attempt has left then, or has tried
 * to as long as the reason allows. A signal of `startCallDeadline` limits the larger call that this one is part of.
 */
export async function runAcquisition<Outcome, Held>(
  steps: AcquisitionSteps<Outcome, Held>,
  { session, clock, signal, startedMs, waitMs }: {
    readonly session: ZooKeeperSession;
    readonly clock: Clock;
    readonly signal: AbortSignal | undefined;
    /** Start of the wait on the clock. */
    readonly startedMs: number;
    /** Undefined for a wait without a limit. */
    readonly waitMs: number | undefined;
  },
): Promise<Held> {
  throwIfAborted(signal);
  if (session.timeoutMs < sessionTimeoutMsMin) {
    throw new BatonError("CONFIG", steps.shortTimeoutMessage(session.timeoutMs));
  }
  const stop = new AbortController();
  using limit = startCallDeadline(clock, waitMs, { sinceMs: startedMs });
  using _ends = new TaskScope(
    onAbort(signal, (reason) => stop.abort(reason)),
    onAbort(session.ended, (reason) => stop.abort(reason)),
    onAbort(limit.signal, (reason) => stop.abort(reason)),
  );
  let leaveReason: LeaveReason = "responded";
  try {
    try {
      const outcome = await abortable(steps.run(), stop.signal);
      // An outcome and a request to stop may arrive in the same turn of the event loop: the request to stop wins.
      throwIfAborted(stop.signal);
      return await steps.take(outcome, stop.signal);
    } catch (thrown) {
      if (stop.signal.aborted) leaveReason = "stopped";
      if (!(thrown instanceof WaitTimeout) || thrown !== stop.signal.reason) throw thrown;
      leaveReason = "late";
      return await steps.timeOut(thrown);
    }
  } catch (failure) {
    await steps.leave(leaveReason);
    // A request may fail with the end of the session before the session reports it.
    const isOver = session.ended.aborted || isServerRefusal(failure, "SESSIONEXPIRED");
    throw isOver && !signal?.aborted ? steps.sessionEndedError(session.ended.reason ?? failure, failure) : failure;
  }
}
