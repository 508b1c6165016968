/**
 * Claims a tick for one call: reads the schedule's node and history, decides, and writes. The lock prevents two runs at
 * the same time. `uptoMs`, the last settled time, prevents that a tick runs twice, because the grant's transaction also
 * sets it. See docs/protocol/tick.md.
 */
import type { Acl, MultiRequest, ZooKeeper } from "../../protocols/zookeeper/zookeeper.ts";
import { BatonError, errorMessage } from "../../base/errors.ts";
import type { Clock } from "../../base/support/clock.ts";
import { resultInTimeOrNull } from "../../base/support/deadline.ts";
import { formatDuration } from "../../base/support/duration.ts";
import { formatUtcMinute } from "../../base/support/instant.ts";
import { isSameTimeZone } from "../../base/schedule/civil_time.ts";
import { timeZoneFingerprint } from "../../base/schedule/zone_print.ts";
import { createFlag } from "../../protocols/zookeeper/jute/zookeeper_operations.ts";
import type { HolderInfo } from "../nodes/holder_info.ts";
import type { LockGrantClaim, LockSeenByClaim } from "../lock/grant_claim.ts";
import { createContainerRequest, createParentNodes } from "../nodes/create_nodes.ts";
import {
  isServerRefusal,
  isTransientFailure,
  nullIfNoNode,
  nullIfRefused,
  readAfterOwnWrites,
  readChildNames,
  retryOnConnectionLoss,
} from "../nodes/node_requests.ts";
import { parseHolderNode } from "../lock/lock_nodes.ts";
import { coordinationFolderPath, lockPath } from "../nodes/node_paths.ts";
import type { ZooKeeperLease } from "../nodes/zookeeper_lease.ts";
import { clearOldHistoriesSometimes } from "../history/clear_history.ts";
import {
  decideTick,
  type OpenTickAttempt,
  type SettledTickRecord,
  type TickAttempt,
  type TickCalendar,
  type TickDecision,
  type TickProgress,
  tickProgressAfterEnd,
  type TickRetryRules,
  triesGivenUp,
  tryGivenBack,
} from "./tick_decision.ts";
import {
  defaultHistoryLimits,
  deleteOldHistoryBlocks,
  emptyHistoryNode,
  historyAppendRequests,
  type HistoryLimits,
  type HistoryNodeContent,
  historyNodePath,
  historyShardOfPath,
  readHistoryNode,
} from "../history/history_log.ts";
import {
  emptyHistoryRecord,
  type HistoryRecord,
  lostHoldReason,
  type RecordedHoldEnd,
} from "../history/history_record.ts";
import type { TickServersClock } from "./servers_clock.ts";
import { LockBusyAtTickError, type NoTickForCallError, TickIsNearError, tickSettledError } from "./tick_errors.ts";
import { formatTickState, parseTickState, tickSchedulesFolder, type TickState } from "./tick_state.ts";
import { nextTickOfStoredSchedule } from "./tick_report.ts";

/**
 * How long after its time a tick may begin if no limit is set, in milliseconds. The limit of the clock skew is added to
 * this.
 */
export const tickLateMsDefault = 60_000;

/** The ticks and the identity of a schedule. The class `Schedule` implements it. */
export interface TickSchedule extends TickCalendar {
  /** The schedule in canonical form. */
  readonly text: string;
  readonly id: string;
  readonly zone: string;
}

export interface TickOptions {
  readonly schedule: TickSchedule;
  /** How long after its time a tick may begin, in milliseconds. */
  readonly lateMsMax: number;
  /** The most additional tries of a tick that failed or whose host died. */
  readonly retriesMax: number;
  /** The pause before the next try, in milliseconds. If undefined, the next call can begin the next try. */
  readonly retryDelayMs?: number;
  /** The pause before the next try of a tick whose host died, in milliseconds; `retryDelayMs` by default. */
  readonly lostDelayMs?: number;
  /** The largest allowed difference between the clocks of this host and of the servers, in milliseconds. */
  readonly skewMs: number;
  /** If a tick begins within this time, the call waits for it, in milliseconds; `skewMs` by default. */
  readonly earlyMs?: number;
  /** True to wait for a busy lock; false to skip the tick. */
  readonly waits: boolean;
  /** True to change a schedule that has another time zone or is settled up to a future time. */
  readonly replaces: boolean;
  /** If true, the first call ever only begins the schedule: it takes no tick from the time before this call. */
  readonly registers?: boolean;
  readonly info: HolderInfo;
  readonly limits?: HistoryLimits | undefined;
  readonly root?: string | undefined;
  readonly acl: Acl[];
  readonly clock: Clock;
  /** This host's wall clock, in Unix milliseconds. */
  readonly wallMs: () => number;
  /** This host's estimate of the servers' clock. Each call that asks the servers updates it. */
  readonly serversClock?: TickServersClock;
  /** Returns a random number from 0 up to, but not including, 1. */
  readonly random: () => number;
  /**
   * Called with a tick of another call that failed or was lost, when this call has given up its tries. No other call is
   * told of it.
   */
  readonly onGivenUp?: ((record: HistoryRecord) => void) | undefined;
}

/** How the command of a tick ended. It cannot be "lost", because only the next call records a lost command. */
export type TickCommandEnd = RecordedHoldEnd & { readonly result: "done" | "failed" | "stopped" };

interface ReadNodes {
  /** The state of the schedule; null if the node does not exist. */
  readonly state: TickState | null;
  readonly version: number;
  readonly head: HistoryNodeContent;
  readonly hasFolder: boolean;
  readonly hasShard: boolean;
}

/**
 * The number of refused writes to an unchanged schedule and history after which the history is no longer written,
 * because it must not stop the ticks.
 */
const refusalsMax = 8;
/** The longest time for deleting old nodes at the end of a call, in milliseconds. */
const clearMsMax = 1000;

export class TickClaim implements LockGrantClaim {
  readonly #zk: ZooKeeper;
  readonly #name: string;
  readonly #options: TickOptions;
  readonly #folder: string;
  readonly #path: string;
  readonly #history: string;
  #read: ReadNodes | null = null;
  #queuedAtWallMs = 0;
  /**
   * The servers' time, and the time on this process's clock at which it was read; null before the queue node is read.
   */
  #serverTime: { readonly guid: string; readonly ms: number; readonly atMs: number } | null = null;
  #claimed: { readonly run: TickAttempt; readonly beganMs: number } | null = null;
  #refusals = { of: "", count: 0 };
  #unrecorded: string | null = null;
  /** The earlier tick that is given up if the claim is granted. */
  #givenUpByClaim: HistoryRecord | null = null;
  #hasFailedFinally = false;

  constructor(zk: ZooKeeper, name: string, options: TickOptions) {
    this.#zk = zk;
    this.#name = name;
    this.#options = options;
    this.#folder = tickSchedulesFolder(name, options.root);
    this.#path = `${this.#folder}/${options.schedule.id}`;
    this.#history = historyNodePath(name, { root: options.root });
  }

  /** The tick that this call requested together with the lock. */
  get run(): TickAttempt | null {
    return this.#claimed?.run ?? null;
  }

  /** Whether an end that was recorded says that the tick failed, and that no call will try it again. */
  get hasFailedFinally(): boolean {
    return this.#hasFailedFinally;
  }

  /** Reports the earlier tick that the granted claim has given up. */
  claimGranted(): void {
    if (this.#givenUpByClaim !== null) this.#options.onGivenUp?.(this.#givenUpByClaim);
  }

  /** The reason why the servers refuse writes to the history; null if they accept them. */
  get unrecorded(): string | null {
    return this.#unrecorded;
  }

  /**
   * Throws TICK_DONE_ELSEWHERE if the schedule shows that no tick is due. The check needs no node in the lock's queue.
   */
  async checkDue(): Promise<void> {
    const { schedule, wallMs, skewMs, serversClock } = this.#options;
    await retryOnConnectionLoss(this.#zk, () => this.read(), { clock: this.#options.clock });
    const state = this.#read?.state;
    if (!state || state.open !== null || this.#options.replaces) return;
    this.#checkZone(state);
    const isWaiting = state.retry !== null && state.retry.fromMs > wallMs() + skewMs;
    if ((state.retry !== null && !isWaiting) || serversClock?.takeQuestion() === true) return;
    // The schedule is ahead of this clock, so a clock was or is wrong. Only the servers' clock can show which one.
    if (state.uptoMs > wallMs() + skewMs) return;
    const next = schedule.next(state.uptoMs);
    if (next === null || next > wallMs() + skewMs) throw this.#settledError(state.uptoMs, {});
  }

  queue(): void {
    this.#queuedAtWallMs = this.#options.wallMs();
  }

  async read(): Promise<void> {
    const [found, head, folder, shard] = await Promise.all([
      nullIfNoNode(this.#zk.getData(this.#path)),
      readHistoryNode(this.#zk, this.#history).catch((thrown: unknown) => {
        if (this.isRefusedHistory(thrown)) return emptyHistoryNode;
        throw thrown;
      }),
      this.#zk.exists(this.#folder),
      this.#zk.exists(historyShardOfPath(this.#history)),
    ]);
    this.#read = {
      state: found === null ? null : parseTickState(found.data, this.#path),
      version: found?.stat.version ?? -1,
      head,
      hasFolder: folder !== null,
      hasShard: shard !== null,
    };
  }

  async decide(lock: LockSeenByClaim): Promise<readonly MultiRequest[] | "wait" | "again"> {
    const nowMs = await this.#serverNow(lock);
    if (nowMs === null || this.#read === null) return "again";
    const { state } = this.#read;
    const { skewMs, waits, schedule } = this.#options;
    const isFuture = state !== null && state.uptoMs > nowMs + skewMs;
    if (state !== null && this.#options.replaces && (isFuture || !isSameTimeZone(state.zone, schedule.zone))) {
      await this.#write(this.#stateWith({ ...state, uptoMs: Math.min(state.uptoMs, nowMs) }), []);
      return "again";
    }
    if (state === null && this.#options.registers === true) {
      await this.#write(this.#stateWith({ uptoMs: nowMs, open: null, retry: null }), []);
      return "again";
    }
    if (state !== null) this.#checkZone(state);
    if (isFuture) throw this.#futureError(state.uptoMs, nowMs);
    const facts = { progress: state, nowMs, holders: lock.holders, isFree: lock.isFree };
    const decision = decideTick({ ...facts, ...this.#furtherTries, waits });
    switch (decision.do) {
      case "wait":
        return "wait";
      case "leave":
        throw this.#leaving(decision, nowMs);
      case "claim":
        return await this.#claimRequests(decision, lock, nowMs);
      case "settle":
        await this.#settle(decision, state as TickState, nowMs);
        return "again";
      case "skip":
        return await this.#skip(decision, lock);
    }
  }

  /**
   * Records that an ACL or a quota refuses the history. From then on the history is not written, because it must not
   * stop the tick.
   */
  isRefusedHistory(thrown: unknown): boolean {
    if (!isServerRefusal(thrown, "NOAUTH", "QUOTAEXCEEDED", "INVALIDACL")) return false;
    if (!thrown.path.startsWith(coordinationFolderPath("history", this.#options.root))) return false;
    this.#unrecorded ??= thrown.message;
    return true;
  }

  /**
   * Leaves the try to another call, because the command of this call will never start. Does nothing if another call has
   * already recorded the try as lost.
   */
  async giveBack({ guid, holderPath }: { readonly guid: string; readonly holderPath: string }): Promise<void> {
    for (let tries = 0; tries < refusalsMax; tries++) {
      await readAfterOwnWrites(this.#zk, this.#path, () => this.read());
      const state = this.#read?.state;
      if (!state || state.open?.guid !== guid) return;
      const requests = this.#givingBack(state, state.open);
      const writing = this.#zk.multi([{ type: "delete", path: holderPath, version: -1 }, ...requests]);
      if (await nullIfRefused(writing, "BADVERSION", "NONODE")) return;
    }
  }

  /**
   * Records the end and releases the lock in one transaction. If `end` is null, another call can take the try, as after
   * giveBack. Returns null if that was written; otherwise the reason.
   */
  async end(lease: ZooKeeperLease, end: TickCommandEnd | null): Promise<string | null> {
    const { clock } = this.#options;
    for (let tries = 0, refusals = 0; tries < refusalsMax && lease.isHeld(); tries++) {
      try {
        // Another server may not show the claim until a write of this session has been executed.
        const reading = () => tries === 0 ? this.read() : readAfterOwnWrites(this.#zk, this.#path, () => this.read());
        await retryOnConnectionLoss(this.#zk, reading, { clock, isWanted: () => lease.isHeld() });
        const requests = this.#endRequests(lease, end, refusals < refusalsMax - 1);
        if (requests === null && tries === 0) continue;
        if (requests === null) return "another call has recorded the tick as lost";
        await lease.releaseWith(requests);
        await this.#clear(requests);
        return null;
      } catch (thrown) {
        if (this.isRefusedHistory(thrown)) continue;
        if (isTransientFailure(thrown) && !this.#zk.session.ended.aborted) {
          if (await this.#hasEnded(lease)) return null;
          continue;
        }
        const isOwnGrant = isServerRefusal(thrown, "NONODE") && thrown.index === 0;
        if (isOwnGrant || !isServerRefusal(thrown, "BADVERSION", "NONODE", "NODEEXISTS")) return errorMessage(thrown);
        refusals++;
      }
    }
    return "the lock is lost, or other calls changed the schedule at the same time";
  }

  /** Deletes history that is over the limits. Usually there is none. */
  async #clear(written: readonly MultiRequest[]): Promise<void> {
    const { root, clock, random, limits = defaultHistoryLimits } = this.#options;
    const nowMs = this.#nowMs();
    const isBlockFull = written.some(({ path }) => path.startsWith(`${this.#history}/`));
    const clearing = async () => {
      if (isBlockFull || random() * 16 < 1) await deleteOldHistoryBlocks(this.#zk, this.#history, limits, nowMs);
      if (nowMs === null) return;
      const mayClear = createTickSchedulesCleaner(this.#zk, { root, nowMs });
      await clearOldHistoriesSometimes(this.#zk, { root, nowMs, random, mayClear });
    };
    await resultInTimeOrNull(clock, clearMsMax, clearing());
  }

  /** Returns true if the transaction of the end was executed although its response was lost. */
  async #hasEnded(lease: ZooKeeperLease): Promise<boolean> {
    const { clock } = this.#options;
    try {
      return await retryOnConnectionLoss(this.#zk, async () => {
        await readAfterOwnWrites(this.#zk, this.#path, () => this.read());
        return this.#read?.state?.open?.guid !== lease.holderId;
      }, { clock, isWanted: () => lease.isHeld() });
    } catch {
      return false;
    }
  }

  #endRequests(lease: ZooKeeperLease, end: TickCommandEnd | null, withHistory: boolean): MultiRequest[] | null {
    const claimed = this.#claimed;
    const state = this.#read?.state ?? null;
    if (claimed === null || state === null || state.open?.guid !== lease.holderId) return null;
    const { run } = claimed;
    this.#hasFailedFinally = false;
    if (end === null) return this.#givingBack(state, run);
    const result = end.result === "done" ? "done" : "failed";
    const nowMs = this.#nowMs() ?? claimed.beganMs;
    const progress = tickProgressAfterEnd(state, {
      run,
      guid: lease.holderId,
      result,
      nowMs,
      rules: this.#furtherTries,
    });
    this.#hasFailedFinally = result === "failed" && progress.retry === null;
    const { host, pid, user } = this.#options.info;
    const record: HistoryRecord = {
      ...emptyHistoryRecord(end.result, this.#options.schedule.id, claimed.run.tickMs),
      attempt: claimed.run.attempt,
      host,
      pid,
      user,
      token: lease.fencingToken.toString(),
      waitedMs: Math.round(lease.waitedMs),
      beganMs: claimed.beganMs,
      endedMs: this.#nowMs(),
      exitCode: end.exitCode,
      signal: end.signal,
      why: end.why,
    };
    return this.#requests({ ...state, ...progress }, withHistory ? [record] : []);
  }

  #givingBack(state: TickState, run: TickAttempt): MultiRequest[] {
    return this.#requests({ ...state, open: null, retry: tryGivenBack(run, this.#options.lateMsMax) }, []);
  }

  async #settle(
    { settled, retry }: Extract<TickDecision, { readonly do: "settle" }>,
    before: TickState,
    nowMs: number,
  ): Promise<void> {
    const records = settledRecords(settled, { id: this.#options.schedule.id, nowMs });
    const givenUp = this.#givenUp({ open: null, retry });
    if (await this.#write({ ...before, open: null, retry }, records) && givenUp !== null) {
      this.#options.onGivenUp?.(givenUp);
    }
  }

  /** Returns the record of the tick that this change abandons; null if it abandons none. */
  #givenUp(after: Pick<TickProgress, "open" | "retry">): HistoryRecord | null {
    const { state = null, head = emptyHistoryNode } = this.#read ?? {};
    const last = triesGivenUp(state, after);
    if (last === null) return null;
    const { id } = this.#options.schedule;
    if (state !== null && state.open !== null) return lostRecord(state.open, id);
    const isLast = ({ schedule, tickMs, attempt }: HistoryRecord) =>
      schedule === id && tickMs === last.tickMs && attempt === last.attempt;
    return head.records.find(isLast) ?? { ...emptyHistoryRecord("failed", id, last.tickMs), attempt: last.attempt };
  }

  async #claimRequests(
    { run, uptoMs, settled }: Extract<TickDecision, { readonly do: "claim" }>,
    { guid }: LockSeenByClaim,
    nowMs: number,
  ): Promise<MultiRequest[]> {
    const { info: { host, pid }, schedule: { id, zone } } = this.#options;
    await this.#createMissingParents();
    this.#claimed = { run, beganMs: nowMs };
    const open = { ...run, guid, host, pid, beganMs: nowMs };
    this.#givenUpByClaim = this.#givenUp({ open, retry: null });
    const state = { ...this.#stateWith({ uptoMs, open, retry: null }), zonePrint: timeZoneFingerprint(zone, nowMs) };
    return this.#requests(state, settledRecords(settled, { id, nowMs }));
  }

  async #skip(
    { uptoMs, settled }: Extract<TickDecision, { readonly do: "skip" }>,
    lock: LockSeenByClaim,
  ): Promise<"again"> {
    const { open = null, retry = null } = this.#read?.state ?? {};
    const running = open !== null && lock.holders.includes(open.guid) ? open : null;
    const why = running === null
      ? "the lock was busy"
      : `the tick of ${formatUtcMinute(running.tickMs)} still ran on ${running.host}`;
    const isDone = await this.#write(
      this.#stateWith({ uptoMs, open, retry }),
      settledRecords(settled, { id: this.#options.schedule.id, nowMs: uptoMs, why }),
    );
    if (!isDone) return "again";
    if (running === null) throw new LockBusyAtTickError(formatUtcMinute(uptoMs));
    throw new BatonError("TICK_SKIPPED", `${this.#subject} is skipped: ${why}`);
  }

  /**
   * Writes the state and the records. Returns false if the servers refused the write because another call was faster.
   */
  async #write(state: TickState, records: readonly HistoryRecord[]): Promise<boolean> {
    await this.#createMissingParents();
    try {
      const writing = this.#zk.multi(this.#requests(state, records));
      return await nullIfRefused(writing, "BADVERSION", "NONODE", "NODEEXISTS") !== null;
    } catch (thrown) {
      if (this.isRefusedHistory(thrown)) return false;
      throw thrown;
    }
  }

  #requests(state: TickState, records: readonly HistoryRecord[]): MultiRequest[] {
    const { version, state: before, head, hasFolder, hasShard } = this.#read as ReadNodes;
    const { acl, limits } = this.#options;
    const data = formatTickState(state);
    const ticks: MultiRequest[] = before !== null ? [{ type: "setData", path: this.#path, data, version }] : [
      ...(hasFolder ? [] : [createContainerRequest(this.#folder, acl)]),
      { type: "create", path: this.#path, data, acl, flags: createFlag.persistent },
    ];
    const of = `${version} ${head.version}`; // a write of another call is no sign that the history cannot be written
    this.#refusals = { of, count: this.#refusals.of === of ? this.#refusals.count + 1 : 0 };
    const isHistoryWritten = records.length > 0 && this.#refusals.count < refusalsMax && this.#unrecorded === null;
    return isHistoryWritten
      ? [...ticks, ...historyAppendRequests(this.#history, head, { records, acl, limits, hasParent: hasShard })]
      : ticks;
  }

  /**
   * Creates the nodes above the containers. These nodes are never removed, so they can be created in separate requests.
   */
  async #createMissingParents(): Promise<void> {
    const { hasFolder, hasShard } = this.#read as ReadNodes;
    const { acl } = this.#options;
    if (!hasFolder) await createParentNodes(this.#zk, this.#folder, acl);
    if (hasShard || this.#unrecorded !== null) return;
    await createParentNodes(this.#zk, historyShardOfPath(this.#history), acl).catch((thrown: unknown) => {
      if (!this.isRefusedHistory(thrown)) throw thrown;
    });
  }

  #stateWith({ uptoMs, open, retry }: TickProgress): TickState {
    const { schedule, info } = this.#options;
    const before = this.#read?.state ?? null;
    const isSame = before !== null && isSameTimeZone(before.zone, schedule.zone);
    return {
      schedule: schedule.text,
      zone: schedule.zone,
      zoneHost: isSame ? before.zoneHost : info.host,
      zonePrint: isSame ? before.zonePrint : "",
      uptoMs,
      open,
      retry,
    };
  }

  /**
   * Returns a time that is never ahead of the servers' clock: the creation time of this call's queue node plus the time
   * since then. Returns null if the node is gone. Throws CLOCK_DISAGREES if the clocks differ too much.
   */
  async #serverNow({ guid, queueNode }: LockSeenByClaim): Promise<number | null> {
    const { clock, skewMs, wallMs } = this.#options;
    if (this.#serverTime?.guid !== guid) {
      const stat = await this.#zk.exists(queueNode);
      if (stat === null) return null;
      const ms = Number(stat.ctime);
      clock.noticeSuspend(); // otherwise, suspended time would be added later
      this.#serverTime = { guid, ms, atMs: clock.now() };
      if (Math.abs(ms - wallMs()) <= skewMs) this.#options.serversClock?.learn(ms, this.#queuedAtWallMs);
      // The node was created between the request and now. The difference of the clocks is therefore between these two
      // values.
      const low = ms - wallMs();
      const high = ms - this.#queuedAtWallMs;
      const difference = low > 0 ? low : high < 0 ? high : 0;
      if (Math.abs(difference) > skewMs) {
        const distance = formatDuration(Math.abs(difference));
        const direction = difference > 0 ? "behind" : "ahead of";
        throw new BatonError(
          "CLOCK_DISAGREES",
          `${this.#subject}: the clock of this host is ${distance} ${direction} that of the servers; ` +
            `the limit is ${formatDuration(skewMs)} (--skew). No tick was taken. ` +
            "Check NTP on this host and on the servers",
        );
      }
    }
    return this.#nowMs();
  }

  #nowMs(): number | null {
    const known = this.#serverTime;
    return known === null ? null : Math.floor(known.ms + this.#options.clock.now() - known.atMs);
  }

  #checkZone({ zone, zoneHost }: TickState): void {
    const { schedule } = this.#options;
    if (isSameTimeZone(zone, schedule.zone)) return;
    const by = zoneHost === "" ? "" : `, written by host ${zoneHost}`;
    throw new BatonError(
      "CONFIG",
      `${this.#subject} has the time zone ${zone}${by}, and this call has ${schedule.zone}: ` +
        `use --timezone ${zone}, or --replace-schedule to change it for all hosts`,
    );
  }

  get #furtherTries(): TickRetryRules {
    const { schedule, retriesMax, retryDelayMs = 0, lostDelayMs, lateMsMax } = this.#options;
    return { calendar: schedule, retriesMax, retryDelayMs, lostDelayMs, lateMsMax };
  }

  /** Returns true if an earlier tick can be tried again before the tick for which this call waits. */
  async mayRetry(): Promise<boolean> {
    const { retriesMax, root } = this.#options;
    if (retriesMax === 0) return false;
    await this.read();
    const { open = null, retry = null } = this.#read?.state ?? {};
    if (open === null) return retry !== null && retry.fromMs <= (this.#nowMs() ?? 0);
    const grants = await readChildNames(this.#zk, lockPath(this.#name, root).holders);
    return !grants.some((grant) => parseHolderNode(grant)?.guid === open.guid);
  }

  #leaving({ isRunning, againMs }: Extract<TickDecision, { readonly do: "leave" }>, nowMs: number): Error {
    const { schedule, skewMs, earlyMs = skewMs } = this.#options;
    const next = schedule.next(nowMs);
    const last = schedule.last(nowMs);
    const nearMs = last === null || next === null ? earlyMs : Math.min(earlyMs, (next - last) / 2);
    if (next !== null && next - nowMs <= nearMs) {
      return new TickIsNearError(Math.min(next, againMs ?? next), { nowMs, nextTickMs: next });
    }
    return this.#settledError(nowMs, { isRunning, againMs });
  }

  #settledError(
    nowMs: number,
    more: { readonly isRunning?: boolean; readonly againMs?: number | null },
  ): NoTickForCallError {
    const { state = null, head = emptyHistoryNode } = this.#read ?? {};
    return tickSettledError(this.#subject, {
      calendar: this.#options.schedule,
      state,
      records: head.records,
      nowMs,
      ...more,
    });
  }

  #futureError(uptoMs: number, nowMs: number): BatonError {
    const upto = formatUtcMinute(uptoMs);
    return new BatonError(
      "CONFIG",
      `${this.#subject} is settled up to ${upto}, but the servers' clock says ${formatUtcMinute(nowMs)}: ` +
        "the clocks were wrong. If they are right now, use baton cron reset NAME once",
    );
  }

  get #subject(): string {
    return `Schedule "${this.#options.schedule.text}" of lock "${this.#name}"`;
  }
}

/** How long an unused schedule is kept, in milliseconds, counted from its first tick that was not run. */
const keptMs = 90 * 24 * 3_600_000;

/**
 * Returns a function that deletes the schedules of a lock whose history is old. The function returns false if a
 * schedule is in use.
 */
export function createTickSchedulesCleaner(
  zk: ZooKeeper,
  { root, nowMs }: { readonly root?: string | undefined; readonly nowMs: number },
): (encodedName: string) => Promise<boolean> {
  return (encodedName) => clearSchedules(zk, `${coordinationFolderPath("ticks", root)}/${encodedName}`, nowMs);
}

/** Deletes the schedules of a lock one after the other. Stops and returns false if a schedule is in use. */
async function clearSchedules(zk: ZooKeeper, folder: string, nowMs: number): Promise<boolean> {
  for (const id of await readChildNames(zk, folder)) {
    const path = `${folder}/${id}`;
    const found = await nullIfNoNode(zk.getData(path));
    if (found === null) continue;
    const state = parseTickState(found.data, path);
    const next = nextTickOfStoredSchedule(state, state.uptoMs);
    if (next === null || next > nowMs - keptMs) return false;
    if (await nullIfRefused(zk.delete(path, found.stat.version), "BADVERSION", "NONODE") === null) return false;
  }
  return true;
}

function lostRecord({ tickMs, attempt, host, pid, beganMs }: OpenTickAttempt, id: string): HistoryRecord {
  return { ...emptyHistoryRecord("lost", id, tickMs), attempt, host, pid, beganMs, why: lostHoldReason };
}

/** Returns the records of the ticks that a decision settles. `why` is the reason of a skip. */
function settledRecords(
  settled: readonly SettledTickRecord[],
  { id, nowMs, why = "" }: { readonly id: string; readonly nowMs: number; readonly why?: string },
): HistoryRecord[] {
  return settled.map((one) => {
    if (one.result === "lost") return lostRecord(one.run, id);
    const record = emptyHistoryRecord(one.result, id, one.tickMs);
    if (one.result === "skipped") return { ...record, why };
    const { untilMs, count } = one;
    return { ...record, untilMs, count, why: `no host took it before ${formatUtcMinute(nowMs)}` };
  });
}
