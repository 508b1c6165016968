/** `baton lock --tick` as the crontabs of several hosts call it, on the keeper and on ZooKeeper. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { parseZooKeeperServers } from "../../../src/protocols/zookeeper/hosts.ts";
import { connectToZooKeeper } from "../../../src/protocols/zookeeper/zookeeper_client.ts";
import type { NextTickAttempt } from "../../../src/coordination/tick/tick_decision.ts";
import { formatTickState, parseTickState } from "../../../src/coordination/tick/tick_state.ts";
import { BackendSession } from "../../support/backend_session.ts";
import { backends, describeBackend } from "../../support/backends.ts";
import { BatonSession } from "../../support/baton_session.ts";
import { eventually } from "../../support/eventually.ts";

setDefaultTimeout(60_000);

/** A schedule with one tick a day, the last one `minutes` ago. */
function tickAgo(minutes: number): { readonly schedule: string; readonly tick: string } {
  const time = new Date(Math.floor(Date.now() / 60_000 - minutes) * 60_000);
  return {
    schedule: `${time.getUTCMinutes()} ${time.getUTCHours()} * * *`,
    tick: time.toISOString().replace(".000Z", "Z"),
  };
}

for (const kind of backends) {
  describeBackend(kind, () => {
    let session: BackendSession;
    beforeAll(async () => void (session = await BackendSession.start(kind, { CRON_TZ: "UTC" })), 40_000);
    afterAll(() => session?.[Symbol.asyncDispose]());
    const { schedule, tick } = tickAgo(10);
    /** Lets the pause before the next try of a tick be over, or changes the stored try in another way. */
    const endPause = async (name: string, change: Partial<NextTickAttempt> = { fromMs: 0 }) => {
      await using zk = await connectToZooKeeper({ servers: parseZooKeeperServers(session.backend.servers) });
      const folder = `/baton/ticks/${name}`;
      const [id = ""] = (await zk.getChildren(folder)).children;
      const path = `${folder}/${id}`;
      const { retry, ...state } = parseTickState((await zk.getData(path)).data, path);
      if (retry === null) throw new Error(`no try of "${name}" is left`);
      await zk.setData(path, formatTickState({ ...state, retry: { ...retry, ...change } }), -1);
    };
    const call = (name: string, options: string, command: string, given = schedule) =>
      session.run(`"$baton" lock ${name} --tick '${given}' --catch-up 1h ${options} -- ${command}`);

    test("the first call runs the tick and learns which one; the next exits with 81 and says who ran it", async () => {
      const first = await call(
        "report",
        "",
        "sh -c 'echo $BATON_TICK $BATON_TICK_UNIX $BATON_TICK_ATTEMPT $BATON_FENCING_TOKEN'",
      );
      expect(first).toMatchObject({ code: 0, stderr: "" });
      const [of, unix, attempt, token] = first.stdout.trim().split(" ");
      expect([of, unix, attempt]).toEqual([tick, String(Date.parse(tick) / 1000), "1"]);
      expect(token).toMatch(/^\d+$/);
      const second = await call("report", "--status-file status", "true");
      expect(second).toMatchObject({ code: 81, stdout: "" });
      expect(second.stderr).toMatch(
        /^baton: Schedule ".*" of lock "report": the tick .*Z is done on .*; the next tick is .*Z\n$/,
      );
      expect(JSON.parse(session.read("status"))).toMatchObject({
        reason: "tick_done_elsewhere",
        exit_code: 81,
        command_status: null,
      });
      expect(await call("report", "--skip", "true")).toMatchObject({ code: 0, stdout: "", stderr: "" });
      expect(await call("report", "-E 5", "true")).toMatchObject({ code: 5 });
    });

    test("of calls at the same time one runs the command", async () => {
      const line =
        `"$baton" lock crowd --skip --tick '${schedule}' --catch-up 1h -- sh -c 'echo runs >>"$dir/crowd"' & `;
      expect(await session.run(`${line.repeat(6)} wait`)).toMatchObject({ code: 0, stderr: "" });
      expect(session.read("crowd")).toBe("runs\n");
    });

    test("--on-failure runs once when no further try is left; the exit code is the command's", async () => {
      const options = `--retry 1 --on-failure 'cat >>"$dir/told"'`;
      const failing = () => call("told", options, "sh -c 'exit 4'");
      expect(await failing()).toMatchObject({ code: 4, stdout: "", stderr: "" });
      await endPause("told");
      expect(await failing()).toMatchObject({ code: 4 });
      expect(await failing()).toMatchObject({ code: 81 });
      const lines = session.read("told").split("\n");
      expect(lines.slice(0, 3)).toEqual(["name: told", "result: failed", "exit code: 4"]);
      expect(lines.slice(5)).toEqual([`tick: ${tick}`, "reason: exit code 4", ""]);
    });

    test("--on-failure of the next call tells of a tick whose baton was killed, once", async () => {
      const options = `--on-failure 'echo "$BATON_FAILURE_RESULT $BATON_FAILURE_TICK" >>"$dir/told-lost"'`;
      const running = session.start(
        `exec "$baton" lock dead --tick '${schedule}' --catch-up 1h ${options} -- sh -c 'echo >"$dir/dead"; sleep 60'`,
      );
      await session.made("dead");
      running.child.kill("SIGKILL");
      await running.ended;
      expect(await session.run('"$baton" lock -w 40 dead -- true')).toMatchObject({ code: 0 });
      const calls = await Promise.all([1, 2, 3].map(() => call("dead", options, "true")));
      expect(calls.map(({ code }) => code)).toEqual([81, 81, 81]);
      expect(session.read("told-lost")).toBe(`lost ${tick}\n`);
    });

    test("the exit code is the command's; --retry tries a tick again a minute after it failed", async () => {
      expect(await call("flaky", "--retry 1", "sh -c 'exit 7'")).toMatchObject({ code: 7 });
      // The crontabs of several hosts call in the same second.
      const early = await call("flaky", "--retry 1", "true");
      expect(early.code).toBe(81);
      expect(early.stderr).toMatch(/ is failed on \S+; it is tried again from \S+Z on; the next tick is \S+Z\n$/);
      const waits = new RegExp(`try 2 of the tick ${tick.replace(":00Z", "Z")} waits for the first call from \\S+Z on`);
      for (const shown of ["history flaky", "explain flaky", "doctor"]) {
        expect((await session.run(`"$baton" ${shown}`)).stdout).toMatch(waits);
      }
      expect((await session.run('"$baton" ls')).stdout).toMatch(/^flaky .* try 2 from \S+Z on$/m);
      await endPause("flaky", { untilMs: Date.now() - 1 });
      for (const shown of ["history flaky", "explain flaky", "doctor", "ls"]) {
        expect((await session.run(`"$baton" ${shown}`)).stdout).not.toContain("try 2");
      }
      expect((await session.run('"$baton" doctor')).stdout).toContain("then baton history forget flaky");
      await endPause("flaky");
      expect(await call("flaky", "--retry 1", "sh -c 'echo $BATON_TICK_ATTEMPT; exit 8'")).toMatchObject({
        code: 8,
        stdout: "2\n",
      });
      const third = await call("flaky", "--retry 1", "true");
      expect(third.code).toBe(81);
      expect(third.stderr).toContain("is failed on ");
    });

    test("a tick whose baton was killed is lost, and is run again with --retry", async () => {
      const running = session.start(
        `exec "$baton" lock killed --tick '${schedule}' --catch-up 1h -- sh -c 'echo ready >>"$dir/ready"; sleep 60'`,
      );
      await session.said("ready");
      running.child.kill("SIGKILL");
      await running.ended;
      // The lock is free when the guard, or the end of the session, has removed the killed holder.
      expect(await session.run('"$baton" lock -w 40 killed -- true')).toMatchObject({ code: 0 });
      const again = await call("killed", "--retry 1", "sh -c 'echo $BATON_TICK_ATTEMPT'");
      expect(again).toMatchObject({ code: 0, stdout: "2\n" });
    });

    test("a lock that is held without a tick is busy: 75, and the tick is left out; -w waits", async () => {
      const script = (options: string) =>
        `"$baton" lock held -- sh -c '"$baton" lock held ${options} --tick "${schedule}" --catch-up 1h -- true; echo $?' `;
      // A nested call would wait for itself.
      expect((await session.run(script("-w 1"))).stdout).toBe("64\n");
      const holder = session.start(
        `"$baton" lock held2 -- sh -c 'echo held >>"$dir/held"; until [ -e "$dir/go" ]; do sleep 0.05; done'`,
      );
      await session.said("held");
      const refused = await call("held2", "", "true");
      expect(refused.code).toBe(75);
      expect(refused.stderr).toMatch(/is busy, and the tick .*Z is recorded as skipped: held for .* by /);
      const other = tickAgo(9);
      const waiting = call("held2", "--overlap wait", "echo waited", other.schedule);
      await session.run("touch go");
      expect(await waiting).toMatchObject({ code: 0, stdout: "waited\n" });
      await holder.ended;
    });

    test("history shows what was run, skipped and missed, and what is next; 1 without ticks", async () => {
      const shown = await session.run('"$baton" history flaky');
      expect(shown).toMatchObject({ code: 0, stderr: "" });
      const [head, first, second, last] = shown.stdout.split("\n");
      expect(head).toMatch(/^TICK +RESULT +TRY +HOST +BEGAN +TOOK +LATE +WHY$/);
      const minute = tick.replace(":00Z", "Z");
      expect(first).toMatch(
        new RegExp(`^${minute} +failed +1 +\\S+ +\\d\\d:\\d\\d:\\d\\d +\\d+ ms +1\\d m +exit code 7$`),
      );
      expect(second).toMatch(/ failed +2 .*exit code 8$/);
      expect(last).toMatch(new RegExp(`^${schedule.replaceAll("*", "\\*")} \\(UTC\\): next .*Z \\(in 23 h \\d+ m\\)$`));
      expect((await session.run('"$baton" history held2')).stdout).toMatch(
        / skipped +- +- +- +- +- +the lock was busy\n/,
      );
      const recent = JSON.parse((await session.run('"$baton" history flaky --since 1m --json')).stdout);
      expect(recent).toMatchObject({
        name: "flaky",
        records: [],
        schedules: [{ schedule, time_zone: "UTC", overdue: false, running: null }],
      });
      expect(await session.run('"$baton" history nothing')).toMatchObject({
        code: 1,
        stdout: "",
        stderr: 'baton: "nothing" has no history: baton lock, elect and pool record it only with --history\n',
      });
    });

    test("what is not due exits with 81, and so does an early call without a tick near", async () => {
      const { schedule: old } = tickAgo(30);
      const ended = await session.run(`"$baton" lock undue --tick '${old}' -- true`);
      expect(ended.code).toBe(81);
      expect(ended.stderr).toMatch(/is not due: the last tick, .*Z, is over; the next tick is .*Z\n$/);
    });

    test("a call that is a little early says with -v that it waits, and until when", async () => {
      const { schedule: soon, tick: due } = tickAgo(-2);
      const waiting = session.start(`exec "$baton" lock early -v --tick '${soon}' --skew 10m -- true`);
      await eventually(() => waiting.stderr().includes(" tick "), { what: "the reason of the wait" });
      waiting.child.kill("SIGTERM");
      expect((await waiting.ended).stderr).toContain(
        `baton: waiting until ${due} for the next tick of "early"\n`,
      );
    });

    test("another time zone is refused, with the host that wrote the first", async () => {
      expect(await call("zoned", "", "true")).toMatchObject({ code: 0 });
      const ended = await call("zoned", "--timezone Asia/Kolkata", "true");
      expect(ended.code).toBe(78);
      expect(ended.stderr).toMatch(
        /has the time zone UTC, written by host .*, and this call has Asia\/Kolkata: use --timezone UTC/,
      );
    });

    test("a zone in other letters is the same zone, and is shown as the tz database writes it", async () => {
      expect(await call("letters", "--timezone africa/abidjan", "true")).toMatchObject({ code: 0 });
      expect(await call("letters", "--timezone AFRICA/Abidjan", "true")).toMatchObject({ code: 81 });
      expect((await session.run('"$baton" history letters')).stdout).toContain("(Africa/Abidjan): next ");
    });

    test("history and explain show a schedule whose time zone this machine does not know, and say so", async () => {
      expect(await call("mars", "", "true")).toMatchObject({ code: 0 });
      await using zk = await connectToZooKeeper({ servers: parseZooKeeperServers(session.backend.servers) });
      const folder = "/baton/ticks/mars";
      const [id = ""] = (await zk.getChildren(folder)).children;
      const { data } = await zk.getData(`${folder}/${id}`);
      const state = JSON.parse(new TextDecoder().decode(data)) as object;
      await zk.setData(
        `${folder}/${id}`,
        new TextEncoder().encode(JSON.stringify({ ...state, zone: "Mars/Base" })),
        -1,
      );
      const shown = await session.run('"$baton" history mars');
      expect(shown).toMatchObject({ code: 0, stderr: "" });
      expect(shown.stdout).toContain("(Mars/Base): next tick not known: this machine does not know the time zone");
      const json = await session.run('"$baton" history mars --json');
      expect(JSON.parse(json.stdout)).toMatchObject({
        schedules: [{ time_zone: "Mars/Base", next: null, overdue: false }],
      });
      expect(json.stderr).toContain('warning: this machine does not know the time zone "Mars/Base"');
      const explained = await session.run('"$baton" explain mars');
      expect(explained.code).toBe(0);
      expect(explained.stdout).toContain('is not known: this machine does not know the time zone "Mars/Base"');
      const refused = await call("mars", "", "true");
      expect(refused.code).toBe(78);
      expect(refused.stderr).toContain("has the time zone Mars/Base");
      await zk.delete(`${folder}/${id}`, -1);
    });

    test("who, ls and doctor are not confused by the nodes of ticks", async () => {
      expect(await session.run('"$baton" doctor --ignore schedule-failing')).toMatchObject({ code: 0 });
      expect((await session.run('"$baton" ls')).stdout).not.toMatch(/ticks|history/);
      expect(await session.run('"$baton" who -q report')).toMatchObject({ code: 1 });
    });
  });
}

describe("64: the options contradict each other, and nothing was taken", () => {
  const mistakes: [line: string, stderr: string][] = [
    [
      "a --tick '61 * * * *'",
      '"61 * * * *" is not a schedule: the minute "61" contains "61", expected a number from 0 to 59',
    ],
    ["a --tick @reboot", '"@reboot" is not a schedule: @reboot is about one host'],
    ["a --tick @daily --timezone Europe/Belrin", '"Europe/Belrin" is not a time zone of this machine'],
    ["a --tick @daily -s", "--tick and -s cannot be used together"],
    ["a --tick @daily -N 3", "--tick and -N cannot be used together"],
    ["a --tick @daily --retry 1", "--retry needs --catch-up"],
    ["a --tick @daily --catch-up 31d", "a duration of at most 720h"],
    ["a --catch-up 1h", "--catch-up needs --tick"],
    ["a --tick @daily --overlap skip -w 1", "--overlap skip and -w exclude each other"],
    ["a b --tick @daily", "--tick takes one lock"],
  ];
  let session: BatonSession;
  beforeAll(() => session = new BatonSession());
  afterAll(() => session[Symbol.asyncDispose]());
  for (const [line, stderr] of mistakes) {
    test(`baton lock ${line}`, async () => {
      const ended = await session.run(`"$baton" lock ${line} -- true`);
      expect(ended.code).toBe(64);
      expect(ended.stderr).toContain(stderr);
    });
  }
});
