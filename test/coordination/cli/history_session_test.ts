/** Holds that are recorded with --history, and `baton history`, on the keeper and on ZooKeeper. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { historyNodePath, readHistoryNode } from "../../../src/coordination/history/history_log.ts";
import { parseZooKeeperServers } from "../../../src/protocols/zookeeper/hosts.ts";
import { connectToZooKeeper } from "../../../src/protocols/zookeeper/zookeeper_client.ts";
import { BackendSession } from "../../support/backend_session.ts";
import { untilMade } from "../../support/baton_session.ts";
import { describeBackend, zooKeeperEnsemble } from "../../support/backends.ts";
import { tierBackends } from "../../support/tier.ts";
import { BatonSession } from "../../support/baton_session.ts";
import { leaveTick } from "../../support/left_tick.ts";
import { eventually } from "../../support/eventually.ts";

setDefaultTimeout(60_000);

for (const kind of tierBackends) {
  describeBackend(kind, () => {
    let session: BackendSession;
    beforeAll(async () => void (session = await BackendSession.start(kind)), 40_000);
    afterAll(() => session?.[Symbol.asyncDispose]());
    const history = async (name: string, options = "") =>
      JSON.parse((await session.run(`"$baton" history ${name} --json ${options}`)).stdout);
    const hold = (name: string, options = "") =>
      session.start(
        `exec "$baton" lock ${name} --history ${options} -- sh -c 'echo held >>"$dir/${name}"; until [ -e "$dir/go-${name}" ]; do sleep 0.05; done'`,
      );

    test("a hold is recorded with its end, and calls that find the lock busy are counted", async () => {
      expect(await session.run('"$baton" lock plain -- true; "$baton" history plain --json')).toMatchObject({
        code: 1,
      });
      const holder = hold("db");
      await session.said("db");
      await eventually(async () => (await history("db")).running.length || null, { what: "the mark of the hold" });
      expect(await history("db")).toMatchObject({ records: [], running: [{ pid: holder.child.pid }] });
      for (const options of ["-n", "-w 1", "-n -E 9"]) {
        expect((await session.run(`"$baton" lock db --history ${options} -- true`)).code).toBe(
          options.includes("9") ? 9 : 75,
        );
      }
      await session.run("touch go-db");
      await holder.ended;
      expect((await session.run('BATON_HISTORY_ENABLED=on "$baton" lock db -- sh -c "exit 3"')).code).toBe(3);
      const { records, refused, counters, running } = await history("db");
      expect(running).toEqual([]);
      expect(refused).toMatchObject({ count: 3, last: { pid: expect.any(Number) } });
      expect(records).toMatchObject([
        { result: "done", pid: holder.child.pid, exit_code: 0, tick: null, why: null, attempt: 0 },
        { result: "failed", exit_code: 3, why: "exit code 3" },
      ]);
      const [first, second] = records;
      expect(BigInt(second.token)).toBeGreaterThan(BigInt(first.token));
      expect(Date.parse(first.began)).toBeLessThanOrEqual(Date.parse(first.ended));
      expect(Date.parse(first.ended)).toBeLessThanOrEqual(Date.parse(second.began));
      expect(counters).toMatchObject({
        results: { done: 1, failed: 1, lost: 0, stopped: 0, skipped: 0, missed: 0 },
        ...{ waited: { count: 2 }, held: { count: 2 }, late: { count: 0 }, last_done: first.ended },
      });
      const shown = await session.run('"$baton" history db');
      expect(shown.stdout).toMatch(
        /^BEGAN +RESULT +HOST +PID +WAITED +TOOK +WHY\n.* done .*\n.* failed .* exit code 3\n3 calls found it busy, .*\n$/,
      );
    });

    test("a killed holder counts as lost before and after the next record, also if granted in advance", async () => {
      const holder = hold("killed");
      await session.said("killed");
      const next = session.start(`exec "$baton" lock killed --history -- true`);
      await eventually(async () => {
        return (await session.run('"$baton" who killed --json')).stdout.includes(`"pid":${next.child.pid}`) || null;
      }, { what: "the next one to wait", withinMs: 10_000 });
      holder.child.kill("SIGKILL");
      await next.ended;
      const { records, counters } = await history("killed");
      expect(records).toMatchObject([
        { result: "lost", pid: holder.child.pid, ended: null, why: expect.stringContaining("session ended") },
        { result: "done", pid: next.child.pid },
      ]);
      expect(counters.results).toMatchObject({ lost: 1, done: 1 });
      const last = hold("alone");
      await eventually(async () => (await history("alone")).running.length || null, { what: "the mark of the hold" });
      last.child.kill("SIGKILL");
      await session.run('"$baton" lock alone -w 40 -- true');
      expect(await history("alone")).toMatchObject({
        records: [{ result: "lost", pid: last.child.pid }],
        counters: { results: { lost: 1, done: 0 } },
      });
    });

    test("readers, permits and holds of a script are recorded; for a broken lock, by whom and why", async () => {
      const line = '"$baton" lock crowd --history -s -- sh -c "sleep 0.3" & ';
      expect(await session.run(`${line.repeat(2)} wait`)).toMatchObject({ code: 0, stderr: "" });
      expect((await history("crowd")).counters.results).toMatchObject({ done: 2, lost: 0 });
      const script =
        `"$baton" hold script --history --pid $$ >held || exit; . ./held; sleep 0.2; "$baton" release script`;
      expect((await session.run(`sh -c '${script}'`)).code).toBe(0);
      expect((await history("script")).records).toMatchObject([{ result: "done" }]);
      const holder = hold("asked");
      await session.said("asked");
      expect((await session.run('"$baton" break --reason "a deploy" asked')).code).toBe(0);
      await holder.ended;
      expect((await history("asked")).records).toMatchObject([{
        ...{ result: "stopped", pid: holder.child.pid },
        why: expect.stringMatching(/^Lock "asked" was broken by \w+, reason "a deploy"$/),
      }]);
    });

    test("an election has a history of its own: one record for each term", async () => {
      expect((await session.run('"$baton" elect db2 --restart never --history -- sh -c "exit 4"')).code).toBe(4);
      expect((await session.run('"$baton" history db2 --kind lock')).code).toBe(1);
      expect((await history("db2", "--kind election")).records).toMatchObject([{ result: "failed", exit_code: 4 }]);
      expect((await session.run('"$baton" history db2')).stdout).toContain("exit code 4"); // no lock has this name
    });

    test("history and explain of an election without a history say that there is one, and how to show it", async () => {
      const script = `echo >"$dir/leads"; ${untilMade('"$dir/go-led"')}`;
      const leader = session.start(`exec "$baton" elect led --restart never -- sh -c '${script}'`);
      await session.made("leads");
      const other = "; there is an election of this name: baton who --kind election led";
      const shown = await session.run('"$baton" history led');
      expect(shown).toMatchObject({ code: 1, stdout: "" });
      expect(shown.stderr).toBe(
        `baton: "led" has no history: baton lock, elect and pool record it only with --history${other}\n`,
      );
      const explained = await session.run('"$baton" explain led');
      expect(explained.code).toBe(1);
      expect(explained.stdout).toStartWith(
        `No lock with the name "led" is in use, and no hold of it is recorded${other}\n`,
      );
      await session.run("touch go-led");
      await leader.ended;
      expect((await session.run('"$baton" explain led')).stdout).toContain(
        "; an election of this name has no candidates: ",
      );
    });

    test("explain of a pool, or of an election that has ended, says how to show it", async () => {
      await session.run('"$baton" elect --history --value v over --restart never -- true');
      await session.run('"$baton" pool -q shared --items a --done-ttl 1h -- true');
      expect((await session.run('"$baton" explain over')).stdout).toContain(
        "; an election of this name has ended: baton history --kind election over\n",
      );
      expect(await session.run('"$baton" explain shared')).toMatchObject({
        code: 1,
        stdout: expect.stringContaining("; there is a pool of this name: baton pool status shared\n"),
      });
    });

    test("explain prints the time line and why the lock waits; 1 if nothing is known", async () => {
      await session.run('"$baton" lock why --history -- sh -c "exit 3"');
      const holder = hold("why", "--reason deploy");
      await session.said("why");
      const { stdout, code, stderr } = await session.run('"$baton" explain why');
      expect([code, stderr]).toEqual([0, ""]);
      expect(stdout).toMatch(
        new RegExp(
          `^\\S+Z  the hold of .* ended after .*, failed: exit code 3\\n` +
            `\\S+Z  .* \\(pid ${holder.child.pid}\\) began to hold it, ` +
            `reason "deploy"\\n"why" is held by .* \\(pid ${holder.child.pid}\\), since .*; no call waits. The session .*\\n  not known: `,
        ),
      );
      expect(JSON.parse((await session.run('"$baton" explain why --json')).stdout)).toMatchObject({
        ...{ name: "why", state: "held", events: [{ what: "ended" }, { what: "held" }] },
      });
      await session.run("touch go-why");
      await holder.ended;
      expect((await session.run('"$baton" explain why')).stdout).toContain('"why" is free: the hold of ');
      const unknown = await session.run('"$baton" explain unknown');
      expect(unknown.code).toBe(1);
      expect(unknown.stdout).toStartWith(
        'No lock with the name "unknown" is in use, and no hold of it is recorded\n',
      );
    });

    test("--on-busy-for runs its command once for a hold, from a refused or waiting call", async () => {
      const notice = (after: string, line = "echo $BATON_BUSY_NAME $BATON_BUSY_MS >>rang") =>
        `--on-busy-for '${after} ${line}'`;
      const holder = hold("long");
      await session.said("long");
      expect((await session.run(`"$baton" lock long -n ${notice("1h")} -- true; r=$?; ls rang; exit $r`)).code).toBe(
        75,
      );
      const calls = `"$baton" lock -q long -n ${notice("50ms")} -- true & `;
      expect(await session.run(`${calls.repeat(4)} wait`)).toMatchObject({ code: 0, stderr: "" });
      expect(session.read("rang")).toMatch(/^long \d+\n$/);
      await session.run("touch go-long");
      await holder.ended;
      const next = hold("later");
      await session.said("later");
      const waiting = session.start(
        `exec "$baton" lock later ${notice("300ms", "echo waited >>waited; exit 3")} -- sh -c "exit 4"`,
      );
      await session.said("waited");
      await session.run("touch go-later");
      await next.ended;
      await waiting.ended;
      expect(await waiting.ended).toMatchObject({
        code: 4,
        stderr: expect.stringContaining('--on-busy-for of "later" exited with 3'),
      });
      expect((await session.run('"$baton" lock long --on-busy-for 1h -- true')).code).toBe(64);
    });

    test("history survives the lock's nodes; forget deletes it with the counters", async () => {
      await session.run('"$baton" lock gone --history -- true; "$baton" lock gone -n --history -- true');
      expect((await history("gone")).records).toHaveLength(2);
      expect(await session.run('"$baton" history forget gone')).toMatchObject({ code: 0, stdout: "", stderr: "" });
      expect(await session.run('"$baton" history forget gone')).toMatchObject({
        code: 1,
        stderr: 'baton: lock "gone" has no history\n',
      });
      expect((await session.run('"$baton" lock gone --history -- true')).code).toBe(0);
      expect((await history("gone")).counters.results).toMatchObject({ done: 1 });
      expect((await session.run('"$baton" lock forget --history -- true; "$baton" history forget')).stdout).toContain(
        " done ",
      );
    });

    test("the records are limited, and the counters are not", async () => {
      const runs =
        'for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18; do "$baton" lock many --history -- true || exit; done';
      expect(await session.run(`BATON_HISTORY_KEEP=8 sh -c '${runs}'`)).toMatchObject({ code: 0 });
      const { records, counters } = await history("many");
      expect(counters.results.done).toBe(18);
      expect(records.length).toBeLessThanOrEqual(10);
    });

    test("a call of a pool that ran items has one record with its numbers; one without items has none", async () => {
      const run = (items: string) =>
        session.run(`printf '${items}' | "$baton" pool batch --history -j 2 --items - -- sh -c 'test "$0" != bad' {}`);
      expect((await run("a\\nbad\\n")).code).not.toBe(0);
      expect((await run("")).code).toBe(0);
      expect((await run("c\\n")).code).toBe(0);
      const { records, counters, kind } = await history("batch", "--kind pool");
      expect(kind).toBe("pool");
      expect(records).toMatchObject([
        { result: "failed", why: "1 done, 1 failed", token: null },
        { result: "done", why: "1 done, 0 failed" },
      ]);
      expect(Date.parse(records[0].began)).toBeLessThanOrEqual(Date.parse(records[0].ended));
      expect(counters).toMatchObject({ results: { done: 1, failed: 1 }, held: { count: 2 }, waited: { count: 0 } });
      expect((await session.run('"$baton" history batch')).code).toBe(0);
      expect((await session.run('"$baton" history --kind lock batch')).code).toBe(1);
      expect((await session.run('"$baton" metrics')).stdout).toContain(
        'baton_pool_ends_total{name="batch",result="failed"} 1',
      );
      expect((await session.run('"$baton" history --kind pool forget batch')).code).toBe(0);
    });

    test("calls of a pool that end at the same time are all recorded", async () => {
      const call = `printf "x$i\\n" | "$baton" pool same --history --items - -- true {}`;
      const { stdout } = await session.run(`for i in 1 2 3 4 5 6; do (${call}; echo "exit $?") & done; wait`);
      const ran = stdout.match(/exit 0/g)?.length ?? 0;
      expect(ran).toBeGreaterThan(1);
      expect((await history("same", "--kind pool")).counters.results.done).toBe(ran);
    });

    test("a job of baton cron has its own limits of the history", async () => {
      writeFileSync(
        session.path("limits.cron"),
        "CRON_TZ=UTC\n#baton name=limited catch-up=1h retry=1 retry-delay=0 history-max-age=90d\n* * * * * true\n",
      );
      await leaveTick(session, "limited");
      const service = session.start('exec "$baton" cron "$dir/limits.cron" --splay 0');
      await eventually(async () => (await history("limited")).counters.results.done === 1 || null, {
        withinMs: 20_000,
      });
      service.child.kill("SIGTERM");
      expect((await service.ended).code).toBe(0);
      await using zk = await connectToZooKeeper({ servers: parseZooKeeperServers(session.backend.servers) });
      expect((await readHistoryNode(zk, historyNodePath("limited"))).maxAgeMs).toBe(90 * 86_400_000);
    });
  });
}

describeBackend(zooKeeperEnsemble, () => {
  test("explain and history answer on an ensemble while one of its servers is down", async () => {
    const ensemble = await zooKeeperEnsemble.start();
    await using session = new BatonSession({ BATON_SERVERS: ensemble.servers });
    await session.run('"$baton" lock why --history -- sh -c "exit 3"');
    const holder = session.start(`exec "$baton" lock why --history -- sh -c 'touch "$dir/held"; exec sleep 60'`);
    await session.made("held");
    const waiter = session.start('exec "$baton" lock why --history -- true');
    await eventually(async () => (await session.run('"$baton" explain why')).stdout.includes("1 call waits"));
    await ensemble.nodes[0]?.pause();
    const { stdout, code } = await session.run('"$baton" explain why', { BATON_CONNECT_TIMEOUT: "30s" });
    expect(code).toBe(0);
    expect(stdout).toMatch(
      new RegExp(
        `failed: exit code 3\n.*\\(pid ${holder.child.pid}\\) began to hold it[^]*\\(pid ${waiter.child.pid}\\) began to wait`,
      ),
    );
    await ensemble.nodes[0]?.resume();
    await ensemble.close();
  }, 120_000);
});
