/**
 * Enters a barrier: runs one participant (barrier_participant.ts) with a deadline and a signal, and explains failures.
 * docs/protocol/barrier.md describes the protocol; test/coordination/model checks it.
 */
import type { ZooKeeper } from "../../protocols/zookeeper/zookeeper.ts";
import { BatonError, errorMessage } from "../../base/errors.ts";
import { anyAbortSignal, throwIfAborted } from "../../base/support/abort.ts";
import { type Clock, systemClock } from "../../base/support/clock.ts";
import { WaitTimeout } from "../../base/support/deadline.ts";
import { formatDuration } from "../../base/support/duration.ts";
import { printable } from "../../base/support/text.ts";
import { type BarrierMembership, ZooKeeperBarrierMembership } from "./barrier_membership.ts";
import {
  type BarrierMemberLossPolicy,
  type BarrierParticipantNode,
  barrierParticipantsMax,
  barrierResponseNodeName,
  isInCurrentBarrierGeneration,
  parseBarrierParticipantNodes,
} from "./barrier_state.ts";
import { BarrierParticipant, type BarrierParticipantOutcome, type StartedParticipant } from "./barrier_participant.ts";
import { coordinationObjectPath } from "../nodes/node_paths.ts";
import { nameOfHolder, unknownHolder } from "../nodes/holder_info.ts";
import { readAfterSync } from "../nodes/node_requests.ts";
import {
  type AcquisitionSteps,
  type QueueLeaveReason,
  runAcquisition,
  sessionTimeoutMsMin,
  waitForFreshSessionLease,
  withinQueueLeaveTime,
} from "../nodes/session_waits.ts";
import type { AcquireLockOptions } from "../lock/acquire_lock.ts";
import { type BarrierParticipantStatus, readBarrierParticipants, readBarrierView } from "./barrier_view.ts";

export interface EnterBarrierOptions
  extends Pick<AcquireLockOptions, "sinceMs" | "signal" | "info" | "root" | "acl" | "clock"> {
  /** The number of processes that start together. */
  readonly parties: number;
  /**
   * The reaction to the loss of a member before the start: the barrier breaks (the default), or waits for another
   * participant.
   */
  readonly onMemberLost?: BarrierMemberLossPolicy;
  /** Maximum wait for the start, in milliseconds; "forever" by default. */
  readonly wait?: "forever" | number;
  /** Called when the wait begins, and when participants came or left. `gathered` is the number of participants. */
  readonly onWaiting?: (gathered: number) => void;
}

/**
 * Enters the barrier and waits until `parties` participants have entered and are alive. Then all of them start. Rejects
 * with the signal's reason, with errors of the server, or with one of these codes:
 * - BARRIER_TIMEOUT, BARRIER_BROKEN, CONFIG
 * - LIMIT_MISMATCH: the others have other options
 * - LOCK_LOST: the barrier was started, and this member was lost immediately
 * - UNREACHABLE: no server responded in time, or the session ended while a lost member can be replaced
 *
 * After a rejection, the call has left the barrier. If no server responds within 1 s, it leaves as soon as one does.
 */
export async function enterBarrier(
  zk: ZooKeeper,
  name: string,
  options: EnterBarrierOptions,
): Promise<BarrierMembership> {
  return await new BarrierEntry(zk, name, options).enter();
}

class BarrierEntry implements AcquisitionSteps<BarrierParticipantOutcome, BarrierMembership> {
  readonly #zk: ZooKeeper;
  readonly #name: string;
  readonly #options: EnterBarrierOptions;
  readonly #clock: Clock;
  readonly #path: string;
  readonly #startedMs: number;
  readonly #party: BarrierParticipant;
  /** True if a server has responded that participants are missing. */
  #hasWaited = false;
  #passing = Promise.resolve<BarrierParticipantOutcome>({ do: "left" });
  #leaving: Promise<BarrierParticipantOutcome | null> | null = null;
  #releasing: Promise<void> | null = null;

  constructor(zk: ZooKeeper, name: string, options: EnterBarrierOptions) {
    const { parties, onMemberLost = "fail", info = unknownHolder } = options;
    if (!Number.isInteger(parties) || parties < 1 || parties > barrierParticipantsMax) {
      throw new BatonError(
        "USAGE",
        `Invalid number of parties ${parties}: expected a whole number from 1 to ${barrierParticipantsMax}`,
      );
    }
    this.#zk = zk;
    this.#name = name;
    this.#options = options;
    this.#path = coordinationObjectPath("barriers", name, options.root);
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

  enter(): Promise<BarrierMembership> {
    const { signal, wait = "forever" } = this.#options;
    return runAcquisition(this, {
      session: this.#zk.session,
      clock: this.#clock,
      signal,
      startedMs: this.#startedMs,
      waitMs: wait === "forever" ? undefined : wait,
    });
  }

  shortTimeoutMessage(timeoutMs: number): string {
    return `The server allows a session timeout of ${timeoutMs} ms, and a barrier needs ` +
      `${sessionTimeoutMsMin} ms at least to stop a job in time: raise the session timeout, or the server's ` +
      "maxSessionTimeout";
  }

  run(): Promise<BarrierParticipantOutcome> {
    this.#passing = this.#party.run();
    return this.#passing;
  }

  /**
   * Waits for a fresh lease after the start. If this member gets no lease in time, it is lost, because the others have
   * started.
   */
  async take(outcome: BarrierParticipantOutcome): Promise<BarrierMembership> {
    if (outcome.do !== "started") throw this.#outcomeError(outcome);
    const { session } = this.#zk;
    // The time limit has no effect after the start.
    const signal = this.#options.signal?.reason instanceof WaitTimeout ? undefined : this.#options.signal;
    const ends = anyAbortSignal(session.ended, signal);
    try {
      await waitForFreshSessionLease(session, { clock: this.#clock, signal: ends, isPatient: false });
    } catch (cause) {
      throwIfAborted(signal);
      const message = `Barrier "${this.#name}" was started, but this member lost it: ${errorMessage(cause)}`;
      throw new BatonError("LOCK_LOST", message, { cause });
    }
    return this.#toMembership(outcome);
  }

  /** Gives up waiting. If the barrier started at the same moment, the wait was successful. */
  async timeOut({ waitMs }: WaitTimeout): Promise<BarrierMembership> {
    const { parties } = this.#options;
    const { guid } = this.#party;
    const waited = formatDuration(waitMs);
    // Reads the status before leaving, so that the status includes this participant.
    const asking = barrierStatus(this.#zk, this.#path, { parties, guid }).catch(() => null);
    const why = waitMs === 0 ? "responded" : "late"; // a call that does not wait still needs a response
    const status = this.#withinLeaveTime(why, asking);
    const outcome = await this.#giveUp(why, `it stopped waiting after ${waited}`);
    if (outcome !== null && outcome.do !== "left") return await this.take(outcome);
    const found = await status;
    const sessionTimeout = formatDuration(this.#zk.session.timeoutMs);
    const lasts = `; this participant may be counted until its session ends, within ${sessionTimeout}`;
    const rest = outcome === null ? lasts : "";
    if (outcome === null && !this.#hasWaited) {
      throw new BatonError("UNREACHABLE", `Barrier "${this.#name}": no server responded within ${waited}${rest}`);
    }
    const who = found === null
      ? "no server reported the participants in time"
      : describeBarrier(found, { guid, nowMs: Date.now() });
    throw new BatonError("BARRIER_TIMEOUT", `Barrier "${this.#name}" was not complete within ${waited}: ${who}${rest}`);
  }

  /** Leaves the barrier, even after its start: the others wait for this member as long as its session lives. */
  async leave(why: QueueLeaveReason): Promise<void> {
    const outcome = await this.#giveUp(why, "it was stopped").catch(() => null);
    if (outcome?.do === "started") await this.#withinLeaveTime("stopped", this.#release(outcome));
  }

  /**
   * Returns the error for an ended session. This participant's node ends with the session, so the others lose a member
   * before the start.
   */
  sessionEndedError(reason: unknown, cause: unknown): unknown {
    if (cause instanceof BatonError && cause.code === "LOCK_LOST") return cause;
    const refused = reason instanceof BatonError && reason.code === "REFUSED";
    const breaks = (this.#options.onMemberLost ?? "fail") === "fail";
    const code = refused ? "REFUSED" : breaks ? "BARRIER_BROKEN" : "UNREACHABLE";
    const why = `the session ended before the start: ${errorMessage(reason)}`;
    return new BatonError(code, `Barrier "${this.#name}" is broken: ${why}`, { cause });
  }

  /**
   * Leaves, and returns the outcome; null if no server confirms it in time. In that case, leaving continues while the
   * session exists.
   */
  #giveUp(why: QueueLeaveReason, reason: string): Promise<BarrierParticipantOutcome | null> {
    return this.#leaving ??= this.#giveUpOnce(why, reason);
  }

  async #giveUpOnce(why: QueueLeaveReason, reason: string): Promise<BarrierParticipantOutcome | null> {
    this.#party.giveUp(reason);
    const outcome = await this.#withinLeaveTime(why, this.#passing);
    if (outcome === null) {
      const leaving = this.#passing.then((late) => late.do === "started" ? this.#release(late) : undefined);
      leaving.catch(() => {}); // leaving ends with the session at the latest
    }
    return outcome;
  }

  /** Releases the membership, without retrying. If that fails, the membership ends with the session at the latest. */
  #release(started: StartedParticipant): Promise<void> {
    return this.#releasing ??= this.#toMembership(started).release().catch(() => {});
  }

  #withinLeaveTime<T>(why: QueueLeaveReason, work: Promise<T>): Promise<T | null> {
    return withinQueueLeaveTime({ session: this.#zk.session, clock: this.#clock, why }, work);
  }

  #toMembership(started: StartedParticipant): BarrierMembership {
    return new ZooKeeperBarrierMembership(this.#zk, {
      name: this.#name,
      path: this.#path,
      guid: this.#party.guid,
      started,
      waitedMs: this.#clock.now() - this.#startedMs,
      clock: this.#clock,
    });
  }

  #outcomeError(outcome: Exclude<BarrierParticipantOutcome, { do: "started" }>): BatonError {
    const broken = `Barrier "${this.#name}" is broken`;
    switch (outcome.do) {
      case "lost":
        return new BatonError(
          "LOCK_LOST",
          `Barrier "${this.#name}" was started, but the node of this member was deleted`,
        );
      case "deleted":
        return new BatonError("BARRIER_BROKEN", `${broken}: the node of this member was deleted before the start`);
      case "broken": {
        const { lost = [], why = "" } = outcome.broken ?? {};
        const who = lost.length === 0 ? "a member" : printable(lost.join(", "));
        return new BatonError(
          "BARRIER_BROKEN",
          `${broken}: ${who} was lost before the start${why === "" ? "" : `: ${printable(why)}`}`,
        );
      }
      case "disagreed":
        return this.#mismatchError(outcome.first);
      case "left":
        return new BatonError("INTERNAL", `Barrier "${this.#name}" was left without a reason`);
    }
  }

  #mismatchError({ parties, onLost }: BarrierParticipantNode): BatonError {
    const { parties: mine, onMemberLost = "fail" } = this.#options;
    const what = parties === mine
      ? `use --on-member-lost ${onLost}, and this one ${onMemberLost}`
      : `wait for ${parties} parties, and this one for ${mine}`;
    return new BatonError("LIMIT_MISMATCH", `Cannot enter barrier "${this.#name}": the other participants ${what}`);
  }
}

/** The reasons why a barrier has not started. */
interface BarrierStatus {
  readonly parties: number;
  /** The participants in the order of arrival. If there are many, only the first of them. */
  readonly gathered: readonly BarrierParticipantStatus[];
  readonly gatheredCount: number;
  /** The members of an earlier generation that have not left yet. */
  readonly leaving: readonly BarrierParticipantStatus[];
  /** GUIDs of participants that did not respond to the round. */
  readonly silent: readonly string[];
}

/** The most participants whose data is read. */
const detailsMax = 20;

/** Reads the status of the generation in which the participant `guid` waits. */
async function barrierStatus(
  zk: ZooKeeper,
  path: string,
  { parties, guid }: { readonly parties: number; readonly guid: string },
): Promise<BarrierStatus> {
  const view = await readAfterSync(zk, path, () => readBarrierView(zk, path));
  const nodes = parseBarrierParticipantNodes(view?.children ?? []);
  const isOpen = (node: BarrierParticipantNode) => view !== null && isInCurrentBarrierGeneration(view.state, node);
  const gathered = nodes.filter(isOpen);
  const round = view?.state.round ?? null;
  const silent = gathered.filter((node) =>
    round?.members.includes(node.guid) && node.guid !== guid &&
    !view?.children.includes(barrierResponseNodeName(round.id, node.guid))
  );
  const [named, leaving] = await Promise.all([
    readBarrierParticipants(zk, path, gathered.slice(0, detailsMax)),
    readBarrierParticipants(zk, path, nodes.filter((node) => !isOpen(node)).slice(0, detailsMax)),
  ]);
  return { parties, gathered: named, gatheredCount: gathered.length, leaving, silent: silent.map((node) => node.guid) };
}

/**
 * Returns `2 of 3 are here: root@db1:812 (agent) for 12s, and this one; 1 is missing`. `nowMs` is in Unix milliseconds.
 */
function describeBarrier(status: BarrierStatus, { guid, nowMs }: { guid: string; nowMs: number }): string {
  const { parties, gathered, gatheredCount, leaving, silent } = status;
  const others = gathered.filter(({ node }) => node.guid !== guid);
  const isHere = others.length < gathered.length;
  const names = listParties(others, nowMs, gatheredCount - gathered.length);
  const who = [...names, ...(isHere ? ["this one"] : [])].join(", ");
  const missing = parties - gatheredCount;
  const parts = [`${gatheredCount} of ${parties} are here${who === "" ? "" : `: ${who}`}`];
  if (missing > 0) parts.push(missing === 1 ? "1 is missing" : `${missing} are missing`);
  if (leaving.length > 0) {
    parts.push(`the previous generation has not ended: ${listParties(leaving, nowMs, 0).join(", ")}`);
  }
  const notResponding = gathered.filter(({ node }) => silent.includes(node.guid));
  if (missing <= 0 && notResponding.length > 0) {
    parts.push(`no response from ${notResponding.map(nameOfHolder).join(", ")}`);
  }
  return parts.join("; ");
}

const namedMax = 8;

function listParties(parties: readonly BarrierParticipantStatus[], nowMs: number, more: number): string[] {
  const named = parties.slice(0, namedMax).map((party) => {
    // The wall clocks of two machines may differ: a negative time counts as 0.
    const since = party.sinceMs === 0 ? "" : ` for ${formatDuration(Math.max(0, nowMs - party.sinceMs))}`;
    return `${nameOfHolder(party)}${since}${party.reason === "" ? "" : ` (${printable(party.reason)})`}`;
  });
  const rest = parties.length - named.length + more;
  return rest > 0 ? [...named, `${rest} more`] : named;
}
