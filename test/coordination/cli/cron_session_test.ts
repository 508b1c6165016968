/** `baton cron`: what it says about crontab files, and what it runs. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { execFileSync } from "node:child_process";
import { existsSync, rmSync, writeFileSync } from "node:fs";
import process from "node:process";
import { BackendSession } from "../../support/backend_session.ts";
import { describeBackend } from "../../support/backends.ts";
import { tierBackends } from "../../support/tier.ts";
import { BatonSession, killKeeper } from "../../support/baton_session.ts";
import { leaveTick } from "../../support/left_tick.ts";
import { eventually } from "../../support/eventually.ts";
import { canMountDisk, SmallDisk } from "../../support/small_disk.ts";
import { createParentNodes } from "../../../src/coordination/nodes/create_nodes.ts";
import type { OpenTickAttempt } from "../../../src/coordination/tick/tick_decision.ts";
import { formatTickState, tickSchedulesFolder } from "../../../src/coordination/tick/tick_state.ts";
import { Schedule } from "../../../src/base/schedule/schedule.ts";
import { findHomeFolder } from "../../../src/base/support/home_folder.ts";
import { openAcl } from "../../../src/protocols/zookeeper/jute/zookeeper_operations.ts";
import { connectToZooKeeper } from "../../../src/protocols/zookeeper/zookeeper_client.ts";
import { parseZooKeeperServers } from "../../../src/protocols/zookeeper/hosts.ts";

setDefaultTimeout(60_000);

const hasDisks = canMountDisk("a full disk of --output-dir is not tried");

test("a job runs to its end once, and its result is recorded, although the keeper is killed meanwhile", async () => {
  await using session = new BatonSession({ TZ: "UTC", BATON_SESSION_TIMEOUT: "10s" });
  const job = `echo began >>${session.path("runs")}; until test -e ${session.path("go")}; do sleep 0.05; done`;
  await leaveTick(session, "kept");
  writeFileSync(session.path("kept.cron"), `#baton name=kept catch-up=1h retry=1 retry-delay=0\n* * * * * ${job}\n`);
  const service = session.start('exec "$baton" cron "$dir/kept.cron" --splay 0');
  await session.made("runs");
  await killKeeper(session.keeperFolder);
  writeFileSync(session.path("go"), "");
  const records = async () => {
    const { stdout } = await session.run('"$baton" history kept --json');
    return (JSON.parse(stdout) as { readonly records: readonly { readonly result: string }[] }).records;
  };
  await eventually(async () => (await records()).some(({ result }) => result === "done"), {
    ...{ what: "the record of the end", withinMs: 20_000 },
  });
  service.child.kill("SIGTERM");
  expect((await service.ended).code).toBe(0);
  expect((await records()).slice(1).map(({ result }) => result)).not.toContain("lost");
  const runs = session.read("runs").trim().split("\n").length;
  expect(runs).toBe((await records()).filter(({ result }) => result === "done").length);
});

describe("without a server", () => {
  let session: BatonSession;
  beforeAll(() => session = new BatonSession({ BATON_SERVERS: "127.0.0.1:1", TZ: "UTC" }));
  afterAll(() => session[Symbol.asyncDispose]());

  test("check counts the jobs of a valid file, and names each mistake with its line", async () => {
    writeFileSync(session.path("good.cron"), "#baton name=nightly\n0 3 * * * true\n@hourly true\n");
    expect(await session.run('"$baton" cron check good.cron')).toMatchObject({
      code: 0,
      stdout: "",
      stderr: "baton: good.cron: 2 jobs, no mistakes\n",
    });
    writeFileSync(session.path("bad.cron"), "MAILTO=x\n0 25 * * * true\n0 3 * * * root true\n");
    const bad = await session.run('"$baton" cron check bad.cron');
    expect(bad).toMatchObject({ code: 78, stdout: "" });
    expect(bad.stderr.split("\n").map((line) => line.slice(0, 40))).toEqual([
      'baton: bad.cron:2: "0 25 * * *" is not a',
      'baton: bad.cron:3: "root" is a user of t',
      "baton: bad.cron:1: warning: baton sends ",
      "baton: bad.cron: 0 jobs, 2 mistakes",
      "",
    ]);
    expect((await session.run('"$baton" cron next bad.cron')).code).toBe(78);
    expect(await session.run('"$baton" cron check missing.cron')).toMatchObject({ code: 74, stdout: "" });
  });

  test("next prints the ticks of all jobs in order, with local times around the end of daylight saving", async () => {
    writeFileSync(
      session.path("fleet.cron"),
      "CRON_TZ=Europe/Berlin\n#baton name=fixed\n30 2 * * * true\n#baton name=follows\n*/30 2 * * * date +\\%F\n",
    );
    const shown = await session.run('"$baton" cron next fleet.cron -n 3 --from 2026-10-24T22:00Z');
    expect(shown).toMatchObject({ code: 0, stderr: "" });
    expect(shown.stdout.split("\n").map((line) => line.trimEnd().replaceAll(/ {2,}/g, " | "))).toEqual([
      "TICK | LOCAL TIME | NAME | COMMAND",
      "2026-10-25T00:00Z | Sun 2026-10-25 02:00 CEST | follows | date +%F",
      "2026-10-25T00:30Z | Sun 2026-10-25 02:30 CEST | fixed | true",
      "2026-10-25T00:30Z | Sun 2026-10-25 02:30 CEST | follows | date +%F",
      "2026-10-25T01:00Z | Sun 2026-10-25 02:00 CET | follows | date +%F",
      "2026-10-26T01:30Z | Mon 2026-10-26 02:30 CET | fixed | true",
      "2026-10-27T01:30Z | Tue 2026-10-27 02:30 CET | fixed | true",
      "",
    ]);
  });
});

for (const kind of tierBackends) {
  describeBackend(kind, () => {
    let session: BackendSession;
    beforeAll(async () => void (session = await BackendSession.start(kind, { TZ: "UTC" })), 40_000);
    afterAll(() => session?.[Symbol.asyncDispose]());

    test("reset sets back a schedule that is settled up to a time in the future, and nothing else", async () => {
      // Half an hour ago, and once a day: a call that is early waits for its tick.
      const at = new Date(Date.now() - 1_800_000);
      const schedule = `${at.getUTCMinutes()} ${at.getUTCHours()} * * *`;
      const call = `"$baton" lock wound --tick "${schedule}" --catch-up 1h -- true`;
      expect((await session.run('"$baton" cron reset wound')).code).toBe(1);
      expect((await session.run(call)).code).toBe(0);
      const unchanged = await session.run('"$baton" cron reset wound');
      expect(unchanged).toMatchObject({ code: 1, stdout: "" });
      expect(unchanged.stderr).toContain("which is not in the future: nothing was changed");
      await using zk = await connectToZooKeeper({
        servers: parseZooKeeperServers(session.backend.servers),
        connectTimeoutMs: 10_000,
      });
      const [id] = (await zk.getChildren("/baton/ticks/wound")).children;
      const path = `/baton/ticks/wound/${id}`;
      const { data, stat } = await zk.getData(path);
      const uptoMs = Date.now() + 3_600_000;
      const wound = { ...JSON.parse(new TextDecoder().decode(data)), uptoMs };
      await zk.setData(path, new TextEncoder().encode(JSON.stringify(wound)), stat.version);
      expect(await session.run(call)).toMatchObject({ code: 78 });
      const doctor = await session.run('"$baton" doctor -q');
      expect(doctor.code).toBe(1);
      expect(doctor.stdout).toContain(`schedule "${schedule}" of lock "wound"`);
      expect(doctor.stdout).toMatch(/problem .* no tick runs until \S+Z, because a clock was ahead/);
      const reset = await session.run('"$baton" cron reset wound --json');
      expect(reset.code).toBe(0);
      expect(JSON.parse(reset.stdout).schedules[0].settled_until).toBe(new Date(uptoMs).toISOString());
      const after = await session.run('"$baton" history wound --json');
      expect(Date.parse(JSON.parse(after.stdout).schedules[0].settled_until)).toBeLessThanOrEqual(Date.now() + 1000);
      expect((await session.run(call)).code).toBe(81);
    });

    test("forget deletes a schedule that no host has, records its lost run, and keeps those in use", async () => {
      expect((await session.run('"$baton" cron forget job')).code).toBe(1);
      const open = {
        tickMs: Date.now() - 3_600_000,
        attempt: 1,
        guid: "0".repeat(32),
        host: "db9",
        pid: 7,
        beganMs: Date.now(),
      };
      const old = await due("job", open);
      expect((await session.run(`"$baton" lock job --tick "*/5 * * * *" --catch-up 1h -- true`)).code).toBe(0);
      const forgotten = await session.run('"$baton" cron forget job');
      expect(forgotten).toMatchObject({ code: 0, stdout: "" });
      expect(forgotten.stderr).toContain(
        `schedule "${old}" (UTC) of lock "job" is forgotten: no host has run its tick `,
      );
      expect(forgotten.stderr).toContain('schedule "*/5 * * * *" (UTC) of lock "job" stays: no tick of it is overdue');
      const { schedules, records } = JSON.parse((await session.run('"$baton" history job --json')).stdout);
      expect(schedules.map(({ schedule }: { schedule: string }) => schedule)).toEqual(["*/5 * * * *"]);
      const results = records.map(({ result, host }: { result: string; host: string }) => `${result} ${host}`);
      expect(results).toContain("lost db9");
      expect(await session.run('"$baton" cron forget job -q')).toMatchObject({ code: 1, stdout: "", stderr: "" });
    });

    /** A schedule whose last tick was ten minutes ago, and which is settled up to an hour ago: its tick is due. */
    async function due(name: string, open: OpenTickAttempt | null = null): Promise<string> {
      const tickMs = Math.floor(Date.now() / 60_000 - 10) * 60_000;
      const time = new Date(tickMs);
      const schedule = new Schedule(`${time.getUTCMinutes()} ${time.getUTCHours()} * * *`, "UTC");
      const path = `${tickSchedulesFolder(name)}/${schedule.id}`;
      await using zk = await connectToZooKeeper({
        servers: parseZooKeeperServers(session.backend.servers),
        connectTimeoutMs: 10_000,
      });
      await createParentNodes(zk, path, openAcl);
      const progress = { uptoMs: tickMs - 3_000_000, open, retry: null };
      const data = formatTickState({
        ...progress,
        schedule: schedule.text,
        zone: "UTC",
        zoneHost: "db1",
        zonePrint: "",
      });
      await zk.create(path, data);
      return schedule.text;
    }

    const results = async (name: string): Promise<string[]> => {
      const { records } = JSON.parse((await session.run(`"$baton" history ${name} --json`)).stdout);
      return records.map((record: { result: string; why: string | null }) => `${record.result} ${record.why ?? ""}`);
    };

    /** Starts a service for a file, in this order of its lines. */
    function serve(file: string, lines: readonly string[], options = "", env: Readonly<Record<string, string>> = {}) {
      writeFileSync(session.path(file), `${lines.join("\n")}\n`);
      return session.start(`exec "$baton" cron ${file} ${options}`, env);
    }

    test("one of two services runs a due tick in cron's environment, and prints its output with a name", async () => {
      const lines = [
        "ODD = ' two words '",
        "#baton name=shared catch-up=1h",
        `${await due("shared")} env >&2; pwd; cat; echo "$BATON_TICK_ATTEMPT$ODD"; exit 3%a\\%b%c`,
      ];
      const services = [serve("one.cron", lines, "", { LEAKED: "x" }), serve("two.cron", lines)];
      await eventually(async () => (await results("shared")).length > 0, { withinMs: 20_000 });
      for (const { child } of services) child.kill("SIGTERM");
      const ended = await Promise.all(services.map((service) => service.ended));
      expect(ended.map(({ code, stdout }) => [code, stdout])).toEqual([[0, ""], [0, ""]]);
      expect(await results("shared")).toEqual(["failed exit code 3"]);
      const log = ended.map(({ stderr }) => stderr).join("");
      const output = log.split("\n").filter((line) => /^shared\[\d+\]: /.test(line)).map((line) =>
        line.replace(/^.*?: /, "")
      );
      expect(output.slice(-4)).toEqual([
        findHomeFolder(process.geteuid?.() ?? 0, "/etc/passwd") ?? "",
        "a%b",
        "c",
        "1 two words ",
      ]);
      const names = output.map((line) => line.split("=", 1)[0] ?? "");
      expect(names).not.toContain("LEAKED");
      expect(names).toEqual(expect.arrayContaining(["SHELL", "HOME", "PATH", "LOGNAME", "ODD", "BATON_TICK"]));
      expect(log).toMatch(/baton cron: \S+ warning: shared: tick \S+Z exited with 3 after \d+ m?s\n/);
    });

    test("on-failure gets the end of the output, and runs in the job's folder beside the schedule", async () => {
      const home = session.path("home");
      await session.run("mkdir home");
      const tell = `cat >told; env | grep FAILURE >variables; until [ -e go ]; do sleep 0.01; done; exit 6`;
      const service = serve("loud.cron", [
        `HOME=${home}`,
        `#baton name=loud catch-up=1h on-failure='${tell}'`,
        `${await due("loud")} head -c 3000000 /dev/zero; echo; printf 'b\\303\\n'; echo last; exit 3`,
        "#baton name=quiet catch-up=1h on-failure='touch never'",
        `${await due("quiet")} true`,
      ]);
      await session.said("home/variables");
      expect(session.read("home/told")).toMatch(/^name: loud\n[^]*\nreason: exit code 3\n\n.*b\ufffd\nlast\n$/);
      expect(session.read("home/variables")).toContain("BATON_FAILURE_OUTPUT=");
      service.child.kill("SIGTERM");
      await session.run("touch home/go");
      const { code, stderr } = await service.ended;
      expect(code).toBe(0);
      expect(stderr).toMatch(/error: loud: on-failure of tick \S+Z exited with 6/);
      expect(existsSync(`${home}/never`)).toBe(false);
    });

    test("-j limits the jobs that run at the same time; --output-dir has a file for each run", async () => {
      const job = `echo begin >>$dir/limited; sleep 0.1; echo end >>$dir/limited; echo said`;
      const lines = [`dir=${session.folder}`];
      for (const name of ["first", "second", "third"]) {
        lines.push(`#baton name=l/${name} catch-up=1h`, `${await due(`l/${name}`)} ${job}`);
      }
      const service = serve("limited.cron", lines, "-j 1 --output-dir out");
      await eventually(() => session.run("[ $(grep -c end limited) = 3 ]").then(({ code }) => code === 0));
      await eventually(async () => (await results("l/third")).length > 0);
      service.child.kill("SIGTERM");
      const { code, stderr } = await service.ended;
      expect([code, stderr.includes("said")]).toEqual([0, false]);
      expect(session.read("limited")).toBe("begin\nend\n".repeat(3));
      expect((await session.run("cat out/*/*Z-1.log")).stdout).toBe("said\n".repeat(3));
    });

    test.skipIf(!hasDisks)(
      "a full disk of --output-dir: the job ends, its result is recorded, and the log says what is lost",
      async () => {
        using _disk = new SmallDisk(session.path("small"), 1);
        const lines = [
          "#baton name=full catch-up=1h",
          `${await due("full")} head -c 3000000 /dev/zero; touch ${session.path("wrote")}`,
        ];
        const service = serve("full.cron", lines, `--output-dir ${session.path("small")}`);
        await session.made("wrote");
        await eventually(async () => (await results("full")).length > 0);
        expect(await results("full")).toEqual(["done "]);
        service.child.kill("SIGTERM");
        const { code, stderr } = await service.ended;
        expect(code).toBe(0);
        expect(stderr).toMatch(/error: full: the output of tick \S+Z is incomplete: .*(ENOSPC|no space)/i);
      },
    );

    test("a job that waits for its lock has no place of -j: other jobs run meanwhile", async () => {
      const lines = [`dir=${session.folder}`];
      for (const name of ["waits", "others"]) {
        lines.push(`#baton name=j/${name} catch-up=1h overlap=wait`, `${await due(`j/${name}`)} true`);
      }
      const holder = session.start(
        `exec "$baton" lock j/waits -- sh -c 'echo >has; while [ ! -e let ]; do sleep 0.05; done'`,
      );
      await session.made("has");
      const service = serve("waits.cron", lines, "-j 1");
      await eventually(async () => (await results("j/others")).length > 0);
      expect([await results("j/waits"), await results("j/others")]).toEqual([[], ["done "]]);
      await session.run("touch let");
      expect((await holder.ended).code).toBe(0);
      await eventually(async () => (await results("j/waits")).length > 0);
      service.child.kill("SIGTERM");
      expect((await service.ended).code).toBe(0);
      expect(await results("j/waits")).toEqual(["done "]);
    });

    test("a job that has its lock but waits for -j goes to another service when its own stops", async () => {
      const lines = [
        `dir=${session.folder}`,
        "#baton name=s/waits catch-up=1h overlap=wait",
        `${await due("s/waits")} echo >$dir/s-waits`,
        "#baton name=s/runs catch-up=1h",
        `${await due("s/runs")} echo >$dir/s-runs; sleep 60`,
      ];
      const holder = session.start('exec "$baton" lock s/waits -- sh -c "while [ ! -e s-let ]; do sleep 0.05; done"');
      await eventually(async () => (await session.run('"$baton" who s/waits')).code === 0);
      const service = serve("slots.cron", lines, "-j 1 --drain 100ms");
      await session.made("s-runs");
      await session.run("touch s-let");
      await holder.ended;
      await eventually(async () => (await session.run('"$baton" who s/waits')).code === 0);
      service.child.kill("SIGTERM");
      expect((await service.ended).code).toBe(0);
      expect(await results("s/waits")).toEqual([]);
      expect((await session.run("ls s-waits")).code).not.toBe(0);
      const next = serve("slots.cron", lines.slice(0, 3));
      await session.made("s-waits");
      await eventually(async () => (await results("s/waits")).length > 0);
      expect(await results("s/waits")).toEqual(["done "]);
      next.child.kill("SIGTERM");
      await next.ended;
    });

    test("with --log json each line is an object, also for leftovers of a job and mistakes in a file", async () => {
      const lines = [
        `dir=${session.folder}`,
        "#baton name=log/left catch-up=1h",
        `${await due("log/left")} sleep 60 & echo >$dir/log-left`,
      ];
      const service = serve("log.cron", lines, "--log json");
      await session.made("log-left");
      await eventually(async () => (await results("log/left")).length > 0);
      writeFileSync(session.path("log.cron"), "0 25 * * * true\n");
      service.child.kill("SIGHUP");
      await eventually(() => service.stderr().includes("reload_failed"));
      service.child.kill("SIGTERM");
      expect((await service.ended).code).toBe(0);
      const logged = service.stderr().trim().split("\n").map((line) =>
        JSON.parse(line) as { event: string; message: string; name?: string }
      );
      expect(logged.find(({ message }) => message.includes("left running"))?.name).toBe("log/left");
      expect(logged.find(({ message }) => message.includes('"0 25 * * *" is not a schedule'))?.event).toBe("message");
    });

    test("a tick that is too late is a warning, because it will be missing", async () => {
      const service = serve("tardy.cron", ["#baton name=tardy", `${await due("tardy")} true`]);
      await eventually(() =>
        /warning: Schedule .* of lock "tardy" is not due: the last tick, .* is over/.test(service.stderr())
      );
      service.child.kill("SIGTERM");
      expect((await service.ended).code).toBe(0);
      expect(await results("tardy")).toEqual([]);
    });

    test("HUP reads the file again; with mistakes the jobs stay as they are", async () => {
      const service = serve("again.cron", ["#baton name=before", "0 0 1 1 * true"]);
      await eventually(() => service.stderr().includes("again.cron: 1 job, on "));
      writeFileSync(session.path("again.cron"), "0 25 * * * true\n");
      service.child.kill("SIGHUP");
      await eventually(() => service.stderr().includes("again.cron has 1 mistake; the jobs stay as they are"));
      expect(service.stderr()).toContain('again.cron:1: "0 25 * * *" is not a schedule');
      rmSync(session.path("again.cron"));
      execFileSync("mkfifo", [session.path("again.cron")]);
      service.child.kill("SIGHUP");
      await eventually(() =>
        /again\.cron: it is not a regular file, .*; the jobs stay as they are/.test(service.stderr())
      );
      rmSync(session.path("again.cron"));
      writeFileSync(session.path("again.cron"), `#baton name=after catch-up=1h\n${await due("after")} echo new\n`);
      service.child.kill("SIGHUP");
      await eventually(() => /^after\[\d+\]: new$/m.test(service.stderr()), { withinMs: 15_000 });
      service.child.kill("SIGTERM");
      expect((await service.ended).code).toBe(0);
    });

    test("a command can open /dev/stdout and /dev/stderr, as under cron, and both are printed", async () => {
      const command = "echo one >/dev/stderr; echo two >/dev/stdout; echo three | tee /dev/stderr >/dev/null";
      const service = serve("devices.cron", ["#baton name=devices catch-up=1h", `${await due("devices")} ${command}`]);
      await eventually(async () => (await results("devices")).length > 0, { withinMs: 20_000 });
      service.child.kill("SIGTERM");
      const { stderr } = await service.ended;
      const output = stderr.split("\n").flatMap((line) => /^devices\[\d+\]: (.*)/.exec(line)?.[1] ?? []);
      expect(output).toEqual(["one", "two", "three"]);
    });

    test("HUP reads the file again also in a service that nohup started", async () => {
      writeFileSync(session.path("nohup.cron"), "#baton name=nohup\n0 0 1 1 * true\n");
      const service = session.start(`trap "" HUP; exec "$baton" cron nohup.cron`);
      await eventually(() => service.stderr().includes("nohup.cron: 1 job, on "));
      service.child.kill("SIGHUP");
      await eventually(() => service.stderr().includes(" nohup.cron: 1 job\n"));
      service.child.kill("SIGTERM");
      expect((await service.ended).code).toBe(0);
    });

    test("TERM waits for a running job, and stops it after --drain; a second one stops it immediately", async () => {
      const start = async (name: string, options: string, rest: string) => {
        const service = serve(`${name}.cron`, [
          `dir=${session.folder}`,
          `#baton name=${name} catch-up=1h`,
          `${await due(name)} echo >$dir/${name}.runs; ${rest}`,
        ], options);
        await session.made(`${name}.runs`);
        service.child.kill("SIGTERM");
        await eventually(() => service.stderr().includes("SIGTERM: no further ticks"));
        return service;
      };
      const finished = await start("finished", "", `while [ ! -e $dir/go ]; do sleep 0.05; done`);
      await session.run("touch go");
      expect((await finished.ended).code).toBe(0);
      expect(await results("finished")).toEqual(["done "]);
      const late = await start("late", "--drain 100ms", "sleep 60");
      expect((await late.ended).code).toBe(0);
      expect(await results("late")).toEqual(["stopped the service stops, and --drain 100 ms is over"]);
      const twice = await start("twice", "", "sleep 60");
      twice.child.kill("SIGINT");
      expect((await twice.ended).code).toBe(0);
      expect(await results("twice")).toEqual(["stopped SIGINT came a second time"]);
    });

    test("a host that stands still longer than its session stops its job, and its service goes on", async () => {
      const lines = ["#baton name=still catch-up=1h", `${await due("still")} echo >${session.path("began")}; sleep 60`];
      const service = serve("still.cron", lines, "--session-timeout 2s");
      await session.made("began");
      const tree = `tree() { echo $1; for child in $(pgrep -P $1); do tree $child; done; }; tree ${service.child.pid}`;
      const pids = (await session.run(tree)).stdout.trim().split("\n").map(Number);
      expect(pids.length).toBeGreaterThan(2); // the service, its guard, the job
      for (const pid of pids) process.kill(pid, "SIGSTOP");
      await eventually(async () => (await session.run('"$baton" who still')).code === 1, { withinMs: 20_000 });
      writeFileSync(session.path("still.cron"), `#baton name=later catch-up=1h\n${await due("later")} true\n`);
      // The service goes on first, and may have stopped its job before the job is to go on.
      await session.run(`kill -CONT ${pids.join(" ")} 2>/dev/null`);
      await eventually(() => service.stderr().includes("connecting again"), { withinMs: 20_000 });
      service.child.kill("SIGHUP");
      await eventually(async () => (await results("later")).length > 0, { withinMs: 20_000 });
      expect(await results("later")).toEqual(["done "]);
      for (const pid of pids.slice(1)) await eventually(() => !existsSync(`/proc/${pid}`));
      service.child.kill("SIGTERM");
      expect((await service.ended).code).toBe(0);
      expect(service.stderr()).toMatch(/warning: still: tick \S+Z: The command under "still" was stopped (after|by)/);
    });

    test("a new job begins with its next tick, and misses nothing", async () => {
      const service = serve("fresh.cron", ["#baton name=fresh catch-up=1d", "0 0 * * * echo never"]);
      await eventually(async () => (await session.run('"$baton" history fresh')).code === 0);
      service.child.kill("SIGTERM");
      expect((await service.ended).code).toBe(0);
      expect(await results("fresh")).toEqual([]);
    });
  });
}
