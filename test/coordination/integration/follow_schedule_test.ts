/** `baton cron` on one host: which ticks a job takes, skips and gives back while it, or others, run. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { followSchedule, type FollowScheduleContext } from "../../../src/coordination/cron/follow_schedule.ts";
import type { CronJob } from "../../../src/coordination/cron/crontab.ts";
import { CronJobSlots } from "../../../src/coordination/cron/cron_job_slots.ts";
import { acquireTick, type LockLeaseWithTick } from "../../../src/coordination/tick/acquire_tick.ts";
import { readTickSchedules } from "../../../src/coordination/tick/tick_report.ts";
import { historyNodePath, readHistoryRecords } from "../../../src/coordination/history/history_log.ts";
import { createParentNodes } from "../../../src/coordination/nodes/create_nodes.ts";
import { formatTickState, tickSchedulesFolder } from "../../../src/coordination/tick/tick_state.ts";
import { TickServersClock } from "../../../src/coordination/tick/servers_clock.ts";
import { unknownHolder } from "../../../src/coordination/nodes/holder_info.ts";
import { BatonError } from "../../../src/base/errors.ts";
import { systemClock } from "../../../src/base/support/clock.ts";
import { OneTimeEvent } from "../../../src/base/support/event.ts";
import type { ZooKeeper } from "../../../src/protocols/zookeeper/zookeeper.ts";
import { describeBackend, type RunningBackend } from "../../support/backends.ts";
import { tierBackends } from "../../support/tier.ts";
import { eventually } from "../../support/eventually.ts";
import { LockCrew } from "../../support/lock_crew.ts";
import { every } from "../../support/short_schedule.ts";

const hourMs = 3_600_000;
const skewMs = 30_000;

function jobOf(name: string, periodMs: number, options: Partial<CronJob["options"]> = {}): CronJob {
  const none = {
    catchUpMs: undefined,
    maxHoldMs: undefined,
    onFailure: undefined,
    historyKeep: undefined,
    historyMaxAge: undefined,
  };
  return {
    ...{ line: 1, name, schedule: every(periodMs), command: "true", input: null, variables: new Map() },
    options: { ...none, retriesMax: 0, retryDelayMs: 0, jitterMs: 0, overlap: "skip", ...options },
  };
}

/** One host: the ticks that it has begun, and how it ends them. */
class CronHost {
  readonly zk: ZooKeeper;
  readonly slots: CronJobSlots;
  /** Ticks whose command was started, in order. */
  readonly started: number[] = [];
  readonly events: string[] = [];
  readonly stop = new AbortController();
  /** Of the last run. */
  lease: LockLeaseWithTick["lease"] | null = null;
  /** The clock of its leases is ahead: they are lost, and the session lives on. */
  aheadMs = 0;
  readonly #root: string;
  readonly #following: Promise<void>[] = [];
  #finish = new OneTimeEvent();

  constructor(zk: ZooKeeper, root: string, slots = 8) {
    this.zk = zk;
    this.#root = root;
    this.slots = new CronJobSlots(slots);
  }

  follow(job: CronJob, signal: AbortSignal = this.stop.signal): Promise<void> {
    const following = followSchedule(job, this.#context, signal);
    this.#following.push(following);
    return following;
  }

  /** Lets the commands that run now end. */
  finish(): void {
    this.#finish.set();
    this.#finish = new OneTimeEvent();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.stop.abort(new BatonError("REVOKED", "the test ends"));
    this.finish();
    await Promise.all(this.#following);
  }

  get #context(): FollowScheduleContext {
    const clock = systemClock();
    const context = {
      serversClock: new TickServersClock(clock, Date.now),
      ...{
        zk: this.zk,
        slots: this.slots,
        onBreach() {},
        tellFailure() {},
        place: { connect: {} },
        describe: () => unknownHolder,
      },
      log: (_level: string, event: string) => void this.events.push(event),
      settings: { splay: 0, skew: skewMs, root: this.#root, publishCommand: false },
      runJob: async (_job: CronJob, tick: LockLeaseWithTick) => {
        this.started.push(tick.run.tickMs);
        this.lease = tick.lease;
        await this.#finish.wait();
        await tick.end({ result: "done", exitCode: 0, signal: null, why: "" });
        return { hasBreach: false, failed: null };
      },
      clock: {
        now: () => clock.now() + this.aheadMs,
        noticeSuspend: () => clock.noticeSuspend(),
        // The pause between two looks.
        startTimer: (ms: number, call: () => void) => clock.startTimer(ms === 30_000 ? 100 : ms, call),
      },
    };
    return context as unknown as FollowScheduleContext;
  }
}

for (const kind of tierBackends) {
  describeBackend(kind, () => {
    let backend: RunningBackend;
    let crew: LockCrew;
    beforeAll(async () => {
      backend = await kind.start();
      crew = new LockCrew(backend.servers);
    }, 40_000);
    afterAll(async () => {
      await crew[Symbol.asyncDispose]();
      await backend.close();
    });

    const recordsOf = async (name: string) => {
      const records = await readHistoryRecords(await crew.client(), historyNodePath(name, { root: crew.root }));
      return records.flatMap(({ result, tickMs, count }) => ({ result, tickMs, count }));
    };
    const whenRecorded = async (name: string, result: string, count = 1) =>
      await eventually(async () => (await recordsOf(name)).filter((one) => one.result === result).length >= count, {
        ...{ what: `${count} records "${result}" of ${name}`, withinMs: 15_000 },
      });

    test("a job whose lease was lost while the session lives on keeps no other run from its lock", async () => {
      await using host = new CronHost(await crew.client(), crew.root);
      void host.follow(jobOf("lost", 700));
      await eventually(() => host.started.length === 1, { what: "the first run" });
      host.aheadMs = hourMs;
      expect(host.lease?.isHeld()).toBe(false);
      host.aheadMs = 0;
      host.finish();
      await whenRecorded("lost", "lost");
      await eventually(() => host.started.length > 1, { what: "the next run" });
    }, 20_000);

    test(
      "ticks that come while the job runs on the only host are skipped and recorded, and none runs late",
      async () => {
        await using host = new CronHost(await crew.client(), crew.root);
        void host.follow(jobOf("long", 700));
        await eventually(() => host.started.length === 1, { what: "the first run" });
        await whenRecorded("long", "skipped", 2);
        const endedMs = Date.now();
        host.finish();
        await eventually(() => host.started.length === 2, { what: "the second run" });
        expect(host.started[1]).toBeGreaterThan(endedMs - 700);
        const records = await recordsOf("long");
        expect(records.filter(({ result }) => result === "missed")).toEqual([]);
        expect(records.find(({ result }) => result === "done")?.tickMs).toBe(host.started[0]!);
        const skipped = records.filter(({ result }) => result === "skipped").map(({ tickMs }) => tickMs);
        expect(skipped).not.toContain(host.started[1]!);
      },
      30_000,
    );

    test(
      "with overlap=wait, the newest tick that came during a run on the only host begins right after it",
      async () => {
        await using host = new CronHost(await crew.client(), crew.root);
        void host.follow(jobOf("patient", 600, { overlap: "wait" }));
        await eventually(() => host.started.length === 1, { what: "the first run" });
        await eventually(() => Date.now() > (host.started[0] ?? 0) + 1500, { what: "two more ticks" });
        host.finish();
        await eventually(() => host.started.length === 2, { what: "the second run" });
        expect((await recordsOf("patient")).map(({ result }) => result)).toEqual(["done", "missed"]);
      },
      30_000,
    );

    test(
      "a new schedule is registered although all slots are busy, so that its ticks are not missing from the history",
      async () => {
        await using host = new CronHost(await crew.client(), crew.root, 1);
        void host.follow(jobOf("busy", 300));
        await eventually(() => host.started.length === 1, { what: "the job that has the only slot" });
        void host.follow(jobOf("late", 700, { catchUpMs: hourMs }));
        const registered = async () => (await readTickSchedules(host.zk, "late", crew.root)).length === 1;
        await eventually(registered, { what: "the registration" });
        const [{ uptoMs = 0 } = {}] = await readTickSchedules(host.zk, "late", crew.root);
        await eventually(() => Date.now() > uptoMs + 1500, { what: "two ticks" });
        expect(host.started).toHaveLength(1);
        host.finish();
        await whenRecorded("late", "missed");
      },
      30_000,
    );

    test("a tick that waits for a slot when its job is retired is given back, and another host runs it", async () => {
      await using busy = new CronHost(await crew.client(), crew.root, 1);
      const lock = await crew.acquire(await crew.client(), "slotless");
      const retire = new AbortController();
      const job = jobOf("slotless", 24 * hourMs, { overlap: "wait", catchUpMs: 2 * 24 * hourMs });
      const tickMs = job.schedule.last(Date.now()) ?? 0;
      const claimed = async () => (await readTickSchedules(busy.zk, "slotless", crew.root))[0]?.open;
      await seed(job, tickMs - 1);
      const following = busy.follow(job, retire.signal);
      const queued = async () => (await busy.zk.getChildren(`${crew.root}/locks/slotless/q`)).children.length > 0;
      await eventually(queued, { what: "the wait for the lock" });
      void busy.follow(jobOf("other", 300));
      await eventually(() => busy.started.length === 1, { what: "the job that has the only slot" });
      await lock.release();
      await eventually(async () => (await claimed())?.tickMs === tickMs, { what: "the claim" });
      retire.abort(new BatonError("REVOKED", "the job is no longer in the file"));
      await following;
      expect(await claimed()).toBeNull();
      expect(await recordsOf("slotless")).toEqual([]);
      await using other = new CronHost(await crew.client(), crew.root);
      void other.follow(job);
      await eventually(() => other.started.length === 1, { what: "the run on the other host" });
      expect(other.started).toEqual([tickMs]);
    }, 30_000);

    test("a host without retries runs a tick that another host has given back after it had looked", async () => {
      await using host = new CronHost(await crew.client(), crew.root);
      const job = jobOf("returned", 24 * hourMs, { catchUpMs: 2 * 24 * hourMs });
      const tick = await claim(job);
      void host.follow(job);
      await eventually(() => host.events.includes("tick_settled"), { what: "the look" });
      expect(host.started).toEqual([]);
      expect(await tick.end(null)).toBeNull();
      await eventually(() => host.started.length === 1, { what: "the run" });
      expect(host.started).toEqual([tick.run.tickMs]);
    }, 30_000);

    async function claim({ name, schedule }: CronJob): Promise<LockLeaseWithTick> {
      const zk = await crew.client();
      const { root } = crew;
      const fixed = { lateMsMax: 2 * 24 * hourMs, retriesMax: 0, skewMs, waits: false, replaces: false };
      const local = { clock: systemClock(), wallMs: Date.now, random: () => 0.5 };
      const tick = { ...fixed, ...local, schedule, root, info: unknownHolder, acl: zk.acl };
      return await acquireTick(zk, name, { root, tick });
    }

    /** The schedule as another host has left it. */
    async function seed({ name, schedule }: CronJob, uptoMs: number): Promise<void> {
      const zk = await crew.client();
      const path = `${tickSchedulesFolder(name, crew.root)}/${schedule.id}`;
      await createParentNodes(zk, path, zk.acl);
      const progress = { uptoMs, open: null, retry: null };
      await zk.create(
        path,
        formatTickState({ ...progress, schedule: schedule.text, zone: "UTC", zoneHost: "", zonePrint: "" }),
      );
    }
  });
}
