/**
 * Passes a barrier: one party (barrier_party.ts) under one deadline and one signal, and what is said when it fails.
 * The protocol is in docs/protocol/barrier.md, and checked in test/model.
 */
import type { Acl, ZooKeeper } from "../../zookeeper/zookeeper.ts";
import { isSessionEnd } from "../../zookeeper/zookeeper_error.ts";
import { BatonError, messageOf } from "../../errors.ts";
import { onAbort, throwIfAborted } from "../../support/abort.ts";
import { type Clock, systemClock } from "../../support/clock.ts";
import { waitLimit, WaitTimeout } from "../../support/deadline.ts";
import { formatDuration } from "../../support/duration.ts";
import { printable } from "../../support/text.ts";
import { type BarrierMembership, ZooKeeperMembership } from "./barrier_membership.ts";
import { barrierStatus, describeBarrier } from "./barrier_messages.ts";
import type { OnMemberLost, ParticipantNode } from "./barrier_nodes.ts";
import { BarrierParticipant, type ParticipantOutcome } from "./barrier_participant.ts";
import { type BarrierPath, barrierPath } from "./barrier_path.ts";
import { partiesMax } from "./barrier_state.ts";
import { type HolderInfo, unknownHolder } from "../holder_info.ts";
import { type LeaveReason, withinLeaveTime } from "../leave_time.ts";
import { sessionTimeoutMsMin } from "../lock/acquire_lock.ts";
import { waitForFreshLease } from "../fresh_lease.ts";

export interface EnterBarrierOptions {
  /** How many start together. */
  readonly parties: number;
  /** When one is lost before the start: break the gathering (the default), or wait for another. */
  readonly onMemberLost?: OnMemberLost;
  /** How long to wait for the start, in milliseconds. "forever" when left out. */
  readonly wait?: "forever" | number;
  /** When the wait began, on the clock, if that was before this call: `wait` counts from there. */
  readonly sinceMs?: number;
  /** A signal of `waitLimit` limits a call that this one is part of, in the place of `wait`. */
  readonly signal?: AbortSignal;
  /** Who this is, for those who look. */
  readonly info?: HolderInfo;
  /** Called when the wait begins, and when this one hears that somebody came or went. */
  readonly onWaiting?: (gathered: number) => void;
  /** Where the barriers are: "/baton" when left out. */
  readonly root?: string;
  /** For every node that is made; the client's own when left out. */
  readonly acl?: Acl[];
  /** The client's own: leases are compared with it. */
  readonly clock?: Clock;
}

/**
 * Enters, and waits until as many as `parties` have entered and are alive: then all of them start. Rejects BARRIER_TIMEOUT
 * (a server has said that they are not), BARRIER_BROKEN, LIMIT_MISMATCH (the others want another number, or do otherwise when
 * one is lost), LOCK_LOST (started, and lost at once), CONFIG, UNREACHABLE (no server has answered in time, or the session
 * ended while waiting, where another is waited for), the signal's reason, and what a server refuses. Then nothing of it stays, or, if no server answers within 1 s, only until one does.
 */
export async function enterBarrier(
  zk: ZooKeeper,
  name: string,
  options: EnterBarrierOptions,
): Promise<BarrierMembership> {
  const attempt = new BarrierEntry(zk, name, options);
  return await attempt.run();
}

class BarrierEntry {
  readonly #zk: ZooKeeper;
  readonly #name: string;
  readonly #options: EnterBarrierOptions;
  readonly #clock: Clock;
  readonly #path: BarrierPath;
  readonly #startedMs: number;
  readonly #party: BarrierParticipant;
  /** A server has said that the others are not there. */
  #hasWaited = false;
  /** No server has said in time whether it has left: it goes on leaving, as long as the session lives. */
  #isLeaving = false;

  constructor(zk: ZooKeeper, name: string, options: EnterBarrierOptions) {
    const { parties, onMemberLost = "fail", info = unknownHolder } = options;
    if (!Number.isInteger(parties) || parties < 1 || parties > partiesMax) {
      throw new BatonError("USAGE", `A barrier of ${parties} parties: it takes a whole number from 1 to ${partiesMax}`);
    }
    this.#zk = zk;
    this.#name = name;
    this.#options = options;
    this.#path = barrierPath(name, options.root);
    this.#clock = options.clock ?? systemClock();
    this.#startedMs = options.sinceMs ?? this.#clock.now();
    this.#party = new BarrierParticipant(zk, {
      path: this.#path,
      parties,
      onLost: onMemberLost,
      info,
      acl: options.acl ?? zk.acl,
      clock: this.#clock,
      onWaiting: (_view, gathered) => {
        this.#hasWaited = true;
        options.onWaiting?.(gathered.length);
      },
    });
  }

  async run(): Promise<BarrierMembership> {
    const { signal, wait = "forever" } = this.#options;
    throwIfAborted(signal);
    const { session } = this.#zk;
    if (session.timeoutMs < sessionTimeoutMsMin) {
      throw new BatonError(
        "CONFIG",
        `The server allows a session timeout of ${session.timeoutMs} ms, and a barrier needs ${sessionTimeoutMsMin} ms ` +
          "at least to stop a job in time: raise the session timeout, or the server's maxSessionTimeout",
      );
    }
    const passing = this.#party.run();
    passing.catch(() => {}); // looked at below, however this ends
    const stopped = Promise.withResolvers<WaitTimeout | "signal" | "session">();
    const limit = waitLimit(this.#clock, wait === "forever" ? undefined : wait, { signal, sinceMs: this.#startedMs });
    const offs = [
      onAbort(session.ended, () => stopped.resolve("session")),
      onAbort(limit.signal, (reason) => stopped.resolve(reason instanceof WaitTimeout ? reason : "signal")),
      limit.cancel,
    ];
    try {
      const first = await Promise.race([passing, stopped.promise]);
      if (first === "session") throw this.#sessionEnded();
      if (first === "signal" || first instanceof WaitTimeout) return await this.#giveUp(first, passing);
      return await this.#proven(first);
    } catch (thrown) {
      const isLost = thrown instanceof BatonError && thrown.code === "LOCK_LOST";
      // A request may hear of the session's end before the session does.
      const isOver = session.ended.aborted || isSessionEnd(thrown);
      if (isOver && !signal?.aborted && !isLost) throw this.#sessionEnded(thrown);
      throw thrown;
    } finally {
      if (!this.#isLeaving) this.#party.stop();
      for (const off of offs) off();
    }
  }

  /** It may have been started in the same moment: then a wait that is over has ended well. */
  async #giveUp(why: WaitTimeout | "signal", passing: Promise<ParticipantOutcome>): Promise<BarrierMembership> {
    const { signal, parties } = this.#options;
    const { guid } = this.#party;
    if (why === "signal") {
      this.#party.giveUp("it was told to stop");
      const outcome = await this.#withinLeaveTime("stopped", passing);
      if (outcome === null) this.#leaveLater(passing);
      if (outcome?.do === "started") {
        await this.#withinLeaveTime("stopped", this.#membership(outcome).release().catch(() => {}));
      }
      throw signal?.reason;
    }
    const waited = formatDuration(why.waitMs);
    // The question goes first: who is there, this one included.
    const asking = barrierStatus(this.#zk, this.#path, { parties, guid }).catch(() => null);
    const leaving = why.waitMs === 0 ? "answered" : "late"; // one that does not wait has to be told
    const status = this.#withinLeaveTime(leaving, asking);
    this.#party.giveUp(`it stopped waiting after ${waited}`);
    const outcome = await this.#withinLeaveTime(leaving, passing);
    if (outcome === null) this.#leaveLater(passing);
    if (outcome !== null && outcome.do !== "left") return await this.#proven(outcome);
    const found = await status;
    const lasts = `its session ends within ${
      formatDuration(this.#zk.session.timeoutMs)
    }, and it may be counted up to then`;
    const rest = outcome === null ? `; ${lasts}` : "";
    if (outcome === null && !this.#hasWaited) {
      throw new BatonError("UNREACHABLE", `Barrier "${this.#name}": no server has answered within ${waited}${rest}`);
    }
    const who = found === null
      ? `no server has answered in time to say who is there${rest}`
      : describeBarrier(found, { guid, nowMs: Date.now() });
    throw new BatonError("BARRIER_TIMEOUT", `Barrier "${this.#name}" was not complete within ${waited}: ${who}`);
  }

  #leaveLater(passing: Promise<ParticipantOutcome>): void {
    this.#isLeaving = true;
    const leaving = passing.then((outcome) =>
      outcome.do === "started" ? this.#membership(outcome).release() : undefined
    );
    leaving.catch(() => {}); // with the session, at the latest
  }

  #withinLeaveTime<T>(why: LeaveReason, work: Promise<T>): Promise<T | null> {
    return withinLeaveTime({ session: this.#zk.session, clock: this.#clock, why }, work);
  }

  /** Begins no lease that is about to end. The others have started: whoever cannot tell in time that it lives is lost. */
  async #proven(outcome: ParticipantOutcome): Promise<BarrierMembership> {
    const { session } = this.#zk;
    // What has started is not given up because the wait for the start is over.
    const signal = this.#options.signal?.reason instanceof WaitTimeout ? undefined : this.#options.signal;
    const ends = AbortSignal.any([session.ended, ...(signal === undefined ? [] : [signal])]);
    if (outcome.do === "started") {
      try {
        await waitForFreshLease(session, { clock: this.#clock, signal: ends, isPatient: false });
      } catch (cause) {
        throwIfAborted(signal);
        const message = `Barrier "${this.#name}" is lost: it was started, and then ${messageOf(cause)}`;
        throw new BatonError("LOCK_LOST", message, { cause });
      }
    }
    return this.#membership(outcome);
  }

  #membership(outcome: ParticipantOutcome): BarrierMembership {
    if (outcome.do === "started") {
      return new ZooKeeperMembership(this.#zk, {
        name: this.#name,
        path: this.#path,
        guid: this.#party.guid,
        started: outcome,
        waitedMs: this.#clock.now() - this.#startedMs,
        clock: this.#clock,
      });
    }
    throw this.#failure(outcome);
  }

  #failure(outcome: Exclude<ParticipantOutcome, { do: "started" }>): BatonError {
    const broken = `Barrier "${this.#name}" is broken`;
    switch (outcome.do) {
      case "lost":
        return new BatonError("LOCK_LOST", `Barrier "${this.#name}" was started, and somebody had deleted this member`);
      case "deleted":
        return new BatonError("BARRIER_BROKEN", `${broken}: somebody deleted the node of this member before the start`);
      case "broken": {
        const { lost = [], why = "" } = outcome.broken ?? {};
        const who = lost.length === 0 ? "a member" : printable(lost.join(", "));
        return new BatonError(
          "BARRIER_BROKEN",
          `${broken}: ${who} was lost before the start${why === "" ? "" : `: ${printable(why)}`}`,
        );
      }
      case "disagreed":
        return this.#mismatch(outcome.first);
      case "left":
        return new BatonError("INTERNAL", `Barrier "${this.#name}" was left without a reason`);
    }
  }

  #mismatch({ parties, onLost }: ParticipantNode): BatonError {
    const { parties: mine, onMemberLost = "fail" } = this.#options;
    const what = parties === mine
      ? `do otherwise when a member is lost: "${onLost}", not "${onMemberLost}"`
      : `are a barrier of ${parties} parties, not ${mine}`;
    return new BatonError("LIMIT_MISMATCH", `Those who wait at barrier "${this.#name}" ${what}`);
  }

  /** Its node goes with it: a member lost before the start, which those who wait for another can replace. */
  #sessionEnded(cause?: unknown): BatonError {
    const reason: unknown = this.#zk.session.ended.reason ?? cause;
    const refused = reason instanceof BatonError && reason.code === "REFUSED";
    const breaks = (this.#options.onMemberLost ?? "fail") === "fail";
    const code = refused ? "REFUSED" : breaks ? "BARRIER_BROKEN" : "UNREACHABLE";
    const why = `the own session ended before the start: ${messageOf(reason)}`;
    return new BatonError(code, `Barrier "${this.#name}" is broken: ${why}`, { cause });
  }
}
