/**
 * Waits that end with the connection or the session, and the function that runs an attempt to acquire a lock or to
 * enter a barrier.
 */
import type { ZooKeeperSession } from "../../protocols/zookeeper/zookeeper.ts";
import { steadyLeaseMs } from "../../protocols/zookeeper/session_timing.ts";
import { BatonError } from "../../base/errors.ts";
import { CleanupScope, onAbort, rejectOnAbort, throwIfAborted } from "../../base/support/abort.ts";
import { backoffMs, requestBackoff } from "../../base/support/backoff.ts";
import type { Clock } from "../../base/support/clock.ts";
import { resultInTimeOrNull, startCallDeadline, WaitTimeout } from "../../base/support/deadline.ts";
import { OneTimeEvent } from "../../base/support/event.ts";
import { isServerRefusal, isTransientFailure } from "./node_requests.ts";

/** A watch, with the number of the connection on which the watch was set. */
export interface ArmedNodeWatch {
  readonly event: OneTimeEvent;
  readonly connections: number;
}

/** The waits of one contender, for a watch or for a pause. `stop` ends all of them. */
export class ContenderWaits {
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

  /** Ends the current wait. Later waits end immediately; pauses still last their full time. */
  stop(): void {
    this.#isStopped = true;
    this.wake();
  }

  /** Ends the current wait or pause. */
  wake(): void {
    this.#event?.set();
  }

  /**
   * Calls `advance` until it returns a result. After a lost response, `recover` sets the next step. The first retry
   * follows immediately, and later retries follow after a pause. Returns null after `stop`.
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

  /** Returns a new watch. The caller must call this before the request that sets the watch on the server. */
  arm(): ArmedNodeWatch {
    return { event: new OneTimeEvent(), connections: this.#session.connections };
  }

  /** Returns true when the watch has fired. Returns false when the watch's connection is lost, and after `stop`. */
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

  /** Waits for the back-off time. It grows with the number of failures. */
  async pause(failures: number): Promise<void> {
    const event = new OneTimeEvent();
    if (!this.#isStopped) this.#event = event;
    await resultInTimeOrNull(this.#clock, backoffMs(failures, requestBackoff), event.wait());
  }
}

/**
 * The longest time for leaving a queue, in milliseconds: after a stop request, after a timeout, after a response, or
 * while returning a claim that would otherwise be lost.
 */
const leaveMsMax = { stopped: 600, late: 300, responded: 1000, claimed: 3000 } as const;

export type QueueLeaveReason = keyof typeof leaveMsMax;

/**
 * Waits for `work`. Returns null if `work` takes longer than the leave time; after that, `work` continues until the
 * session ends.
 */
export async function withinQueueLeaveTime<T>(
  { session, clock, why }: {
    readonly session: ZooKeeperSession;
    readonly clock: Clock;
    readonly why: QueueLeaveReason;
  },
  work: Promise<T>,
): Promise<T | null> {
  // Does not wait without a connection, because no response can arrive.
  return await resultInTimeOrNull(clock, session.state === "connected" ? leaveMsMax[why] : 0, work);
}

/**
 * Waits until the session's lease is as long as regular heartbeats keep it; usually it already is. After this process
 * was suspended, the lease of a live session may have expired; in that case, waits for a response of the ZooKeeper
 * leader. Rejects with the signal's reason. If `isPatient` is false, rejects with UNREACHABLE if no response arrives
 * within the session timeout.
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
  using _ends = new CleanupScope(
    session.guard(),
    session.subscribe(() => isProven() && resolve()),
    onAbort(signal, reject),
    isPatient ? () => {} : clock.startTimer(session.timeoutMs, () => reject(new BatonError("UNREACHABLE", why))),
  );
  await promise;
}

/** Minimum session timeout in milliseconds. A shorter session leaves no time to reconnect and to stop a command. */
export const sessionTimeoutMsMin = 2000;

/** The steps that differ between acquiring a lock and entering a barrier. */
export interface AcquisitionSteps<Outcome, Held> {
  shortTimeoutMessage(timeoutMs: number): string;
  /** Runs the contender or participant until its outcome is known. */
  run(): Promise<Outcome>;
  /** Returns what the session holds after this outcome. If the outcome means an error, throws the error. */
  take(outcome: Outcome, stop: AbortSignal): Promise<Held>;
  /** Called when the time to wait has passed. Throws the error, or returns what was acquired at the same moment. */
  timeOut(timeout: WaitTimeout): Promise<Held>;
  /** Leaves the queue or barrier, or returns what was acquired. Only the first call has an effect. */
  leave(why: QueueLeaveReason): Promise<unknown>;
  /** Returns the error for the end of the session. `cause` is the failure that the end of the session has caused. */
  sessionEndedError(reason: unknown, cause: unknown): unknown;
}

/**
 * Runs `steps` until they have acquired what they want, the time or the session ends, or the signal aborts. Rejects
 * with CONFIG if the session timeout is too short. Rejects with the error that `steps` throw, after leaving, or trying
 * to leave for as long as the `QueueLeaveReason` allows. If `startCallDeadline` made the signal, it limits the larger
 * call that contains this one.
 */
export async function runAcquisition<Outcome, Held>(
  steps: AcquisitionSteps<Outcome, Held>,
  { session, clock, signal, startedMs, waitMs }: {
    readonly session: ZooKeeperSession;
    readonly clock: Clock;
    readonly signal: AbortSignal | undefined;
    /** When the wait started, on the clock. */
    readonly startedMs: number;
    /** The longest wait, in milliseconds; undefined for no limit. */
    readonly waitMs: number | undefined;
  },
): Promise<Held> {
  throwIfAborted(signal);
  if (session.timeoutMs < sessionTimeoutMsMin) {
    throw new BatonError("CONFIG", steps.shortTimeoutMessage(session.timeoutMs));
  }
  const stop = new AbortController();
  using limit = startCallDeadline(clock, waitMs, { sinceMs: startedMs });
  using _ends = new CleanupScope(
    onAbort(signal, (reason) => stop.abort(reason)),
    onAbort(session.ended, (reason) => stop.abort(reason)),
    onAbort(limit.signal, (reason) => stop.abort(reason)),
  );
  let leaveReason: QueueLeaveReason = "responded";
  try {
    try {
      const outcome = await rejectOnAbort(steps.run(), stop.signal);
      // An outcome and a stop request may arrive in the same turn of the event loop. The stop request wins.
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
