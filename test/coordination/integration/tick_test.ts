import { afterAll, beforeAll, expect, test } from "bun:test";
import { acquireTick } from "../../../src/coordination/tick/acquire_tick.ts";
import { clearOldHistoriesInShard } from "../../../src/coordination/history/clear_history.ts";
import { createTickSchedulesCleaner } from "../../../src/coordination/tick/tick_claim.ts";
import type { TickOptions, TickSchedule } from "../../../src/coordination/tick/tick_claim.ts";
import {
  historyNodePath,
  historyShardOfPath,
  readHistoryRecords,
} from "../../../src/coordination/history/history_log.ts";
import {
  formatTickState,
  parseTickState,
  tickSchedulesFolder,
  type TickState,
} from "../../../src/coordination/tick/tick_state.ts";
import { unknownHolder } from "../../../src/coordination/nodes/holder_info.ts";
import { BatonError } from "../../../src/base/errors.ts";
import { Schedule } from "../../../src/base/schedule/schedule.ts";
import { systemClock } from "../../../src/base/support/clock.ts";
import { sleep } from "../../../src/base/support/deadline.ts";
import type { ZooKeeper } from "../../../src/protocols/zookeeper/zookeeper.ts";
import { describeBackend, type RunningBackend } from "../../support/backends.ts";
import { tierBackends } from "../../support/tier.ts";
import { eventually } from "../../support/eventually.ts";
import { every, ticksBetween } from "../../support/short_schedule.ts";
import { LockCrew } from "../../support/lock_crew.ts";

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;
/** A tick a day, the last one half an hour ago. */
const tickMs = Math.floor((Date.now() - hourMs / 2) / 60_000) * 60_000;
const daily = new Schedule(`${new Date(tickMs).getUTCMinutes()} ${new Date(tickMs).getUTCHours()} * * *`, "UTC");
const done = { result: "done", exitCode: 0, signal: null, why: "" } as const;
const failed = { result: "failed", exitCode: 3, signal: null, why: "exit code 3" } as const;

class TickCrew extends LockCrew {
  options(more: Partial<TickOptions> = {}): TickOptions {
    return {
      ...{
        schedule: daily,
        lateMsMax: hourMs,
        retriesMax: 0,
        skewMs: 30_000,
        waits: false,
        replaces: false,
        root: this.root,
      },
      info: { ...unknownHolder, host: "db1", pid: 812, user: "root" },
      ...{
        acl: [{ perms: 31, id: { scheme: "world", id: "anyone" } }],
        clock: systemClock(),
        wallMs: Date.now,
        random: () => 0.5,
      },
      ...more,
    };
  }

  async tick(zk: ZooKeeper, more: Partial<TickOptions> = {}, name = "backup") {
    return await acquireTick(zk, name, { root: this.root, tick: this.options(more) });
  }

  /** The code of the error of a call that gets no tick. */
  async refusal(zk: ZooKeeper, more: Partial<TickOptions> = {}): Promise<string> {
    try {
      const { run } = await this.tick(zk, more);
      return `got ${new Date(run.tickMs).toISOString()}, attempt ${run.attempt}`;
    } catch (thrown) {
      if (!(thrown instanceof BatonError)) throw thrown;
      return `${thrown.code}: ${thrown.message}`;
    }
  }

  path(schedule: TickSchedule = daily): string {
    return `${tickSchedulesFolder("backup", this.root)}/${schedule.id}`;
  }

  async state(zk: ZooKeeper): Promise<TickState> {
    return parseTickState((await zk.getData(this.path())).data, "");
  }

  async change(zk: ZooKeeper, change: Partial<TickState>): Promise<void> {
    await zk.setData(this.path(), formatTickState({ ...await this.state(zk), ...change }), -1);
  }

  async history(zk: ZooKeeper): Promise<string[]> {
    const records = await readHistoryRecords(zk, historyNodePath("backup", { root: this.root }));
    return records.map(({ result, attempt, count, tickMs: of }) =>
      `${result} ${Math.round(((of ?? 0) - tickMs) / dayMs)} x${count} #${attempt}`
    );
  }
}

for (const kind of tierBackends) {
  describeBackend(kind, () => {
    let backend: RunningBackend;
    beforeAll(async () => void (backend = await kind.start()), 40_000);
    afterAll(() => backend.close());

    test("of ten calls at the same time one runs the tick, and no later one does", async () => {
      await using crew = new TickCrew(backend.servers);
      const clients = await crew.clients(10);
      const results = await Promise.allSettled(clients.map((zk) => crew.tick(zk)));
      const got = results.flatMap((result) => (result.status === "fulfilled" ? [result.value] : []));
      expect(got.map(({ run }) => run)).toEqual([{ tickMs, attempt: 1 }]);
      for (const result of results) {
        if (result.status === "rejected") expect(String(result.reason)).toMatch(/the tick .* (runs on db1|is)/);
      }
      const [zk] = clients;
      if (zk === undefined) throw new Error("no client");
      expect(await crew.refusal(zk)).toMatch(
        /^TICK_DONE_ELSEWHERE: .*the tick .* runs on db1 \(pid 812\); the next tick is /,
      );
      expect(await got[0]?.end(done)).toBeNull();
      expect(await crew.refusal(zk)).toMatch(/^TICK_DONE_ELSEWHERE: .*the tick .* is done on db1; the next tick is /);
      expect(await crew.history(zk)).toEqual(["done 0 x1 #1"]);
      const [record] = await readHistoryRecords(zk, historyNodePath("backup", { root: crew.root }));
      expect(record).toMatchObject({
        host: "db1",
        pid: 812,
        user: "root",
        exitCode: 0,
        token: got[0]?.lease.fencingToken.toString(),
      });
      expect((record?.endedMs ?? 0) - (record?.beganMs ?? 0)).toBeWithin(0, 20_000);
    }, 20_000);

    test(
      "a history whose ACL refuses a client refuses no tick: it is run once, ends, and the lost run before it is settled",
      async () => {
        await using crew = new TickCrew(backend.servers);
        const zk = await crew.client();
        const lost = { tickMs: tickMs - dayMs, attempt: 1, guid: "0".repeat(32), host: "db0", pid: 1, beganMs: tickMs };
        const path = historyNodePath("backup", { root: crew.root });
        const anyone = { scheme: "world", id: "anyone" };
        for (const [node, perms] of [[historyShardOfPath(path), 17], [path, 17], [path, 16]] as const) {
          await (await crew.tick(zk, { random: () => 1 }).catch(() => null))?.end(done); // makes the nodes
          await crew.change(zk, { uptoMs: tickMs - dayMs, open: lost });
          await zk.setAcl(node, [{ perms, id: anyone }], -1);
          const tick = await crew.tick(zk, { retriesMax: 1, lateMsMax: 2 * dayMs });
          expect(tick.run).toEqual({ tickMs, attempt: 1 });
          expect(await tick.end(done)).toBeNull();
          expect(await crew.refusal(zk, { retriesMax: 1, lateMsMax: 2 * dayMs })).toContain("TICK_DONE_ELSEWHERE");
          if (node === path) expect(tick.unrecorded()).toContain("NOAUTH");
          await zk.setAcl(node, [{ perms: 31, id: anyone }], -1).catch(() => {});
        }
      },
      20_000,
    );

    test("a call that is early runs its tick, also when it waits for longer than for a response", async () => {
      await using crew = new TickCrew(backend.servers);
      const zk = await crew.client();
      const schedule = every(3000);
      const first = await crew.tick(zk, { schedule });
      expect(await first.end(done)).toBeNull();
      await eventually(() => Date.now() % 3000 > 1500, { everyMs: 10 });
      // The call began so long ago that the time for a response is over when the tick comes.
      const sinceMs = systemClock().now() - zk.session.timeoutMs + 200;
      const early = await acquireTick(zk, "backup", { root: crew.root, sinceMs, tick: crew.options({ schedule }) });
      expect(early.run.tickMs).toBeGreaterThan(first.run.tickMs);
      expect(await early.end(done)).toBeNull();
    });

    test("a tick that failed is tried again with --retry only, and as often as it says", async () => {
      await using crew = new TickCrew(backend.servers);
      const zk = await crew.client();
      await (await crew.tick(zk)).end(failed);
      expect(await crew.refusal(zk)).toContain("TICK_DONE_ELSEWHERE");
      await crew.change(zk, { uptoMs: tickMs - dayMs });
      await (await crew.tick(zk, { retriesMax: 1 })).end(failed);
      expect(await crew.refusal(zk, { retriesMax: 0 })).toContain("TICK_DONE_ELSEWHERE");
      const second = await crew.tick(zk, { retriesMax: 1 });
      expect(second.run).toEqual({ tickMs, attempt: 2 });
      await second.end(failed);
      expect(await crew.refusal(zk, { retriesMax: 1 })).toContain("TICK_DONE_ELSEWHERE");
      expect(await crew.history(zk)).toEqual(["failed 0 x1 #1", "failed 0 x1 #1", "failed 0 x1 #2"]);
    }, 20_000);

    test("a run whose host died is lost; --retry runs the tick again within the limit", async () => {
      await using crew = new TickCrew(backend.servers);
      const [dying, zk] = await crew.clients(2);
      if (!dying || !zk) throw new Error("no clients");
      await crew.tick(dying);
      await dying.close();
      expect(await crew.refusal(zk)).toContain("TICK_DONE_ELSEWHERE");
      expect(await crew.history(zk)).toEqual(["lost 0 x1 #1"]);
      expect((await crew.state(zk)).open).toBeNull();

      const other = await crew.client();
      await crew.change(zk, { uptoMs: tickMs - dayMs });
      await crew.tick(other, { retriesMax: 1 });
      await other.close();
      expect(await crew.refusal(zk, { retriesMax: 1, lateMsMax: 60_000 })).toContain("TICK_DONE_ELSEWHERE");
      await crew.change(zk, { retry: { tickMs, attempt: 2, fromMs: 0, untilMs: null } });
      expect(await crew.refusal(zk, { retriesMax: 1 })).toContain("attempt 2");
    }, 20_000);

    test("a tick that finds the earlier one running is skipped, and the end keeps the skip", async () => {
      await using crew = new TickCrew(backend.servers);
      const [first, second] = await crew.clients(2);
      if (!first || !second) throw new Error("no clients");
      const running = await crew.tick(first);
      const { open } = await crew.state(first);
      if (open === null) throw new Error("nothing is open");
      await crew.change(first, { uptoMs: tickMs - dayMs, open: { ...open, tickMs: tickMs - dayMs } });
      expect(await crew.refusal(second)).toMatch(/^TICK_SKIPPED: .* is skipped: the tick of .* still ran on db1/);
      expect(await crew.refusal(second)).toContain("TICK_DONE_ELSEWHERE");
      expect(await running.end(done)).toBeNull();
      expect(await crew.state(first)).toMatchObject({ uptoMs: tickMs, open: null });
      expect(await crew.history(first)).toEqual(["skipped 0 x1 #0", "done 0 x1 #1"]);
    }, 20_000);

    test("a lock that is held without a tick is busy: the tick is recorded as skipped, or waits", async () => {
      await using crew = new TickCrew(backend.servers);
      const [holder, zk] = await crew.clients(2);
      if (!holder || !zk) throw new Error("no clients");
      const lease = await crew.acquire(holder, "backup");
      expect(await crew.refusal(zk)).toMatch(
        /^LOCK_BUSY: Lock "backup" is busy, and the tick .* is recorded as skipped: held/,
      );
      expect(await crew.history(zk)).toEqual(["skipped 0 x1 #0"]);
      await crew.change(zk, { uptoMs: tickMs - dayMs });
      const waiting = crew.tick(zk, { waits: true });
      const queue = `${crew.root}/locks/backup/q`;
      await eventually(async () => (await zk.getChildren(queue)).children.length === 1);
      await lease.release();
      const { run, end } = await waiting;
      expect(run).toEqual({ tickMs, attempt: 1 });
      await end(done);
    }, 20_000);

    test("ticks in whose time no host called are recorded as one range", async () => {
      await using crew = new TickCrew(backend.servers);
      const zk = await crew.client();
      await (await crew.tick(zk)).end(done);
      await crew.change(zk, { uptoMs: tickMs - 5 * dayMs });
      await (await crew.tick(zk)).end(done);
      expect(await crew.history(zk)).toEqual(["done 0 x1 #1", "missed -4 x4 #0", "done 0 x1 #1"]);
    }, 20_000);

    test(
      "a tick of each minute whose schedule was used last six years ago is run, and the others are counted",
      async () => {
        await using crew = new TickCrew(backend.servers);
        const zk = await crew.client();
        const schedule = new Schedule("* * * * *", "Europe/Berlin");
        await (await crew.tick(zk, { schedule })).end(done);
        const state = parseTickState((await zk.getData(crew.path(schedule))).data, "");
        const uptoMs = schedule.last(Date.now() - 6 * 365 * dayMs) ?? 0;
        await zk.setData(crew.path(schedule), formatTickState({ ...state, uptoMs }), -1);
        const { run, end } = await crew.tick(zk, { schedule });
        expect(Date.now() - run.tickMs).toBeWithin(0, 2 * 60_000);
        await end(done);
        const records = await readHistoryRecords(zk, historyNodePath("backup", { root: crew.root }));
        const missed = records.find(({ result }) => result === "missed");
        const tickBefore = run.tickMs - 60_000;
        expect(missed).toMatchObject({
          tickMs: uptoMs + 60_000,
          untilMs: tickBefore,
          count: schedule.count(uptoMs, tickBefore),
        });
        expect(missed?.count).toBeWithin(6 * 365 * 1440 - 61, 6 * 365 * 1440 + 61);
      },
      20_000,
    );

    test("what is not due is not run: before the first tick, and after the limit", async () => {
      await using crew = new TickCrew(backend.servers);
      const zk = await crew.client();
      expect(await crew.refusal(zk, { lateMsMax: 60_000 })).toMatch(
        /^TICK_NOT_DUE: .* is not due: the last tick, .*, is over; the next tick is/,
      );
      expect(await zk.exists(crew.path())).toBeNull();
      expect((await zk.getChildren(`${crew.root}/locks/backup/q`)).children).toEqual([]);
    }, 20_000);

    test("a host whose clock is wrong takes no tick", async () => {
      await using crew = new TickCrew(backend.servers);
      const zk = await crew.client();
      for (const [offsetMs, direction] of [[hourMs, "ahead of"], [-hourMs, "behind"]] as const) {
        const refusal = await crew.refusal(zk, { wallMs: () => Date.now() + offsetMs });
        expect(refusal).toStartWith("CLOCK_DISAGREES: ");
        expect(refusal).toContain(`${direction} that of the servers; the limit is 30 s (--skew)`);
      }
      expect(await zk.exists(crew.path())).toBeNull();
      await (await crew.tick(zk, { wallMs: () => Date.now() + 20_000 })).end(done);
    }, 20_000);

    test("another time zone is refused until it is replaced", async () => {
      await using crew = new TickCrew(backend.servers);
      const zk = await crew.client();
      await (await crew.tick(zk)).end(done);
      const elsewhere = new Schedule(daily.text, "Asia/Kolkata");
      expect(await crew.refusal(zk, { schedule: elsewhere })).toMatch(
        /^CONFIG: .* has the time zone UTC, written by host db1, and this call has Asia/,
      );
      expect(await crew.refusal(zk, { schedule: elsewhere, replaces: true })).toMatch(/^(TICK_|got)/);
      expect((await crew.state(zk)).zone).toBe("Asia/Kolkata");
      expect(await crew.refusal(zk)).toContain("has the time zone Asia/Kolkata, written by host db1");
    }, 20_000);

    test("a mark in the future is refused until it is replaced", async () => {
      await using crew = new TickCrew(backend.servers);
      const zk = await crew.client();
      await (await crew.tick(zk)).end(done);
      await crew.change(zk, {
        uptoMs: tickMs + 400 * dayMs,
        open: { ...{ tickMs, attempt: 1, guid: "x" }, host: "", pid: 1, beganMs: 1 },
      });
      expect(await crew.refusal(zk)).toMatch(/^CONFIG: .* is settled up to .*: the clocks were wrong/);
      expect(await crew.refusal(zk, { replaces: true })).toContain("TICK_DONE_ELSEWHERE");
      expect((await crew.state(zk)).uptoMs).toBeWithin(tickMs, Date.now() + 1000);
      expect(await crew.refusal(zk)).toContain("TICK_DONE_ELSEWHERE");
    }, 20_000);

    test("hosts that call for each of many ticks run each at most once, and the history accounts for all", async () => {
      await using crew = new TickCrew(backend.servers);
      const clients = await crew.clients(4);
      const schedule = every(250);
      const started: number[] = [];
      let running = 0;
      const untilMs = Date.now() + 4000;
      await Promise.all(clients.map(async (zk, index) => {
        while (Date.now() < untilMs) {
          try {
            const { run, end } = await crew.tick(zk, { schedule, lateMsMax: 250, skewMs: 5000 });
            expect(++running).toBe(1);
            started.push(run.tickMs);
            await sleep(systemClock(), 20 * index);
            running--;
            expect(await end(done)).toBeNull();
          } catch (thrown) {
            if (!(thrown instanceof BatonError) || !thrown.code.startsWith("TICK_")) throw thrown;
          }
        }
      }));
      expect(new Set(started).size).toBe(started.length);
      expect(started.length).toBeGreaterThan(8);
      const [zk] = clients;
      const records = await readHistoryRecords(zk as ZooKeeper, historyNodePath("backup", { root: crew.root }));
      const all = records.flatMap(({ tickMs: of, count }) =>
        Array.from({ length: count }, (_, index) => (of ?? 0) + index * 250)
      );
      expect(all.sort()).toEqual(ticksBetween(every(250), (all[0] ?? 0) - 1, all.at(-1) ?? 0));
      expect(records.filter(({ result }) => result === "done").map((record) => record.tickMs).sort()).toEqual(
        started.sort(),
      );
    }, 30_000);

    test("the history keeps 16 blocks of 8 records, and clears names that are no longer used", async () => {
      await using crew = new TickCrew(backend.servers);
      const zk = await crew.client();
      for (let count = 0; count < 145; count++) {
        await (await crew.tick(zk)).end(done);
        await crew.change(zk, { uptoMs: tickMs - dayMs });
      }
      const history = historyNodePath("backup", { root: crew.root });
      const { children } = await zk.getChildren(history);
      expect(children.map(Number).sort((a, b) => a - b)).toEqual(Array.from({ length: 15 }, (_, index) => index + 3));
      expect(await readHistoryRecords(zk, historyNodePath("backup", { root: crew.root }))).toHaveLength(121);
      const clear = (days: number) =>
        clearOldHistoriesInShard(zk, historyShardOfPath(history), {
          random: () => 0,
          nowMs: Date.now() + days * dayMs,
          mayClear: createTickSchedulesCleaner(zk, { root: crew.root, nowMs: Date.now() + days * dayMs }),
        });
      await clear(29);
      await clear(85); // the schedule is still in its time
      expect(await zk.exists(history)).not.toBeNull();
      await clear(95);
      expect([await zk.exists(history), await zk.exists(crew.path())]).toEqual([null, null]);
    }, 30_000);
  });
}
