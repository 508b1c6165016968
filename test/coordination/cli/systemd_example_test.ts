/** docs/examples/baton-*.service: systemd takes them, and what they run does what they say. */
import { afterEach, beforeEach, expect, setDefaultTimeout, test } from "bun:test";
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { BatonSession } from "../../support/baton_session.ts";
import { eventually } from "../../support/eventually.ts";
import { batonCommand } from "../../support/keeper_server.ts";
import { describeWithPeer } from "../../support/peers.ts";
import { ServerProcess } from "../../support/server_process.ts";

setDefaultTimeout(60_000);

const examples = join(import.meta.dir, "../../../docs/examples");
const units = readdirSync(examples).filter((name) => name.endsWith(".service")).sort();
const unit = (name: string) => readFileSync(join(examples, name), "utf8");
const commandOf = (name: string) => /^ExecStart=(.*)$/m.exec(unit(name))?.[1] ?? "";

let root = "";
let keeper: ServerProcess | null = null;
beforeEach(() => root = mkdtempSync(join(tmpdir(), "baton-units-")));
afterEach(async () => {
  await keeper?.kill();
  keeper = null;
  rmSync(root, { recursive: true, force: true });
});

describeWithPeer("systemd", "the units of the examples", () => {
  test.each(units)("%s is one for systemd, which has nothing to say about it", (name) => {
    for (const each of units) {
      writeFileSync(join(root, each), unit(each).replaceAll(/\/usr\/local\/bin\/\S+/g, "/bin/true"));
    }
    const { status, stdout, stderr } = spawnSync("systemd-analyze", ["verify", join(root, name)], { encoding: "utf8" });
    expect([stdout, stderr, status]).toEqual(["", "", 0]);
  });

  test.each(units.filter((name) => name.endsWith(".service")))(
    "%s is confined: what it runs can do little harm",
    (name) => {
      const { stdout } = spawnSync("systemd-analyze", ["security", "--offline=true", join(examples, name)], {
        encoding: "utf8",
      });
      expect(Number(/exposure level for \S+: ([\d.]+)/.exec(stdout)?.[1])).toBeLessThan(2.5);
    },
  );
});

test("the keeper's unit runs a keeper that serves locks and numbers, without a capability", async () => {
  mkdirSync(join(root, "data"), { mode: 0o700 });
  const words = commandOf("baton-keeper.service")
    .replace("/var/lib/baton", join(root, "data"))
    .replace("/run/baton", root)
    .replace("127.0.0.1:9182", "127.0.0.1:0")
    .split(" ").slice(1);
  const powerless = process.getuid?.() === 0 ? ["setpriv", "--bounding-set=-all", "--no-new-privs"] : [];
  keeper = new ServerProcess([...powerless, ...batonCommand(), ...words], { folder: root });
  const page = await eventually(() => /"metrics":"([^"]+)"/.exec(keeper?.output ?? "")?.[1], { withinMs: 15_000 });
  await using session = new BatonSession({ BATON_SERVERS: `unix:${join(root, "keeper.sock")}` });
  expect(await session.run('"$baton" lock nightly -- echo done')).toMatchObject({ code: 0, stdout: "done\n" });
  expect(await (await fetch(`http://${page}/metrics`)).text()).toContain("baton_keeper_disk_full 0");
});

test("the units of publish/subscribe run a server and a proxy that serve, without a capability", async () => {
  const powerless = process.getuid?.() === 0 ? "setpriv --bounding-set=-all --no-new-privs" : "";
  await using session = new BatonSession({ BATON_SERVERS: "embedded", BATON_PUBSUB_SERVER_ID: "s1" });
  expect((await session.run('"$baton" pubsub keygen service.key && "$baton" pubsub keygen own.key')).code).toBe(0);
  for (const role of ["server", "proxy"]) {
    const words = commandOf(`baton-pubsub-${role}.service`)
      .replace(/^\S+/, `exec ${powerless} "$baton"`)
      .replace("/var/lib/baton-pubsub", join(root, "data"))
      .replace("/etc/baton/service.key", session.path("service.key"))
      .replace(/tcp:\/\/0\.0\.0\.0:\d+ --advertise \S+/, "tcp://127.0.0.1:0")
      .replace(/127\.0\.0\.1:9\d+/, "127.0.0.1:0");
    const running = session.start(words);
    await eventually(() => running.stderr().includes('"event":"serving"'), { what: role, withinMs: 30_000 });
    expect(running.stderr()).toContain('"event":"metrics"');
  }
  const client = '"$baton" pubsub client --state-dir state --key own.key --service-key service.key.pub';
  const script = `${client} alice subscribe news && echo hello | ${client} bob put news - && ${client} alice get news`;
  expect(await session.run(script)).toMatchObject({ code: 0, stdout: "hello\n" });
  for (const role of ["server", "proxy"]) {
    expect(unit(`baton-pubsub-${role}.service`)).toContain("RestartPreventExitStatus=64 78\n");
  }
});

test("the unit of an election runs its program as the leader", async () => {
  await using session = new BatonSession({ BATON_SERVERS: "embedded" });
  writeFileSync(session.path("scheduler"), "#!/bin/sh\necho leads; exec sleep 60\n", { mode: 0o755 });
  const words = commandOf("baton-elect@.service").replaceAll("%i", "scheduler")
    .replace(/^\S+/, 'exec "$baton"')
    .replace("/etc/baton/elect/", "$dir/");
  const running = session.start(words);
  await eventually(() => running.stdout().includes("leads"), { what: "the leader's program", withinMs: 15_000 });
  running.child.kill("SIGTERM");
  await running.ended;
});

test("the unit of a retry processor redelivers what calls have stored", async () => {
  await using session = new BatonSession({ BATON_RETRY_INTERVAL: "200ms" });
  const words = commandOf("baton-retry-processor@.service").replaceAll("%i", "orders")
    .replace(/^\S+/, 'exec "$baton"')
    .replace("/var/lib/baton-retry/", "$dir/");
  const call = await session.run('"$baton" retry-processor call --store orders -- test -e there');
  expect(call.code).not.toBe(0);
  await session.run("touch there");
  const running = session.start(words);
  await eventually(async () => {
    const { stdout } = await session.run('"$baton" retry-processor stats --store orders --json');
    return stdout.includes('"done":{"count":1,');
  }, { what: "the message to be done", withinMs: 20_000 });
  running.child.kill("SIGTERM");
  expect((await running.ended).code).toBe(0);
});

test("the units of the page and of the metrics serve them on this machine only", async () => {
  await using session = new BatonSession({ BATON_SERVERS: "embedded" });
  writeFileSync(session.path("ui.token"), `${"0123456789abcdef".repeat(4)}\n`, { mode: 0o600 });
  for (const [name, said] of [["ui", "serves the page"], ["metrics", "/metrics"]] as const) {
    const words = commandOf(`baton-${name}.service`)
      .replace(/^\S+/, 'exec "$baton"')
      .replace("/etc/baton/", "$dir/")
      .replace(/127\.0\.0\.1:\d+/, "127.0.0.1:0");
    const running = session.start(words);
    await eventually(() => running.stderr().includes(said), { what: name, withinMs: 15_000 });
    expect(running.stderr()).toContain("for all users of this machine");
    running.child.kill("SIGTERM");
    await running.ended;
  }
});
