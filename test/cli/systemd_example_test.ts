/** docs/examples/baton-*.service and .timer: systemd takes them, and what they run does what they say. */
import { afterEach, beforeEach, expect, setDefaultTimeout, test } from "bun:test";
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { BatonSession } from "../support/baton_session.ts";
import { eventually } from "../support/eventually.ts";
import { batonCommand } from "../support/keeper_server.ts";
import { describeWithPeer } from "../support/peers.ts";
import { ServerProcess } from "../support/server_process.ts";

setDefaultTimeout(60_000);

const examples = join(import.meta.dir, "../../docs/examples");
const units = readdirSync(examples).filter((name) => /\.(service|timer)$/.test(name)).sort();
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
  expect(await (await fetch(`http://${page}/metrics`)).text()).toContain("baton_keeper_writable 1");
});

test("the nightly unit's machines: one runs the job, the other leaves with what systemd takes for success", async () => {
  await using session = new BatonSession({ BATON_SERVERS: "embedded" });
  const words = commandOf("baton-nightly.service")
    .replace(/^\S+/, '"$baton"')
    .replace("/usr/local/bin/nightly.sh", "sh -c 'echo runs; read -r _ < gate'");
  await session.run("mkfifo gate");
  const first = session.start(words);
  await eventually(() => first.stdout().includes("runs"));
  const second = await session.run(words);
  expect(unit("baton-nightly.service")).toContain(`SuccessExitStatus=${second.code}\n`);
  await session.run("echo > gate");
  expect(await first.ended).toMatchObject({ code: 0 });
});

test("the units of publish/subscribe run a server and a proxy that serve messages and numbers, without a capability", async () => {
  const powerless = process.getuid?.() === 0 ? "setpriv --bounding-set=-all --no-new-privs" : "";
  await using session = new BatonSession({ BATON_SERVERS: "embedded", BATON_PUBSUB_SERVER_ID: "s1" });
  for (const role of ["server", "proxy"]) {
    const words = commandOf(`baton-pubsub-${role}.service`)
      .replace(/^\S+/, `exec ${powerless} "$baton"`)
      .replace("/var/lib/baton-pubsub", join(root, "data"))
      .replace(/tcp:\/\/0\.0\.0\.0:\d+ --advertise \S+/, "tcp://127.0.0.1:0")
      .replace(/127\.0\.0\.1:9\d+/, "127.0.0.1:0");
    const running = session.start(words);
    await eventually(() => running.stderr().includes('"event":"serving"'), { what: role, withinMs: 30_000 });
    expect(running.stderr()).toContain('"event":"metrics"');
  }
  const client = '"$baton" pubsub client --state-dir state';
  const script = `${client} alice subscribe news && echo hello | ${client} bob put news - && ${client} alice get news`;
  expect(await session.run(script)).toMatchObject({ code: 0, stdout: "hello\n" });
  for (const role of ["server", "proxy"]) {
    expect(unit(`baton-pubsub-${role}.service`)).toContain("RestartPreventExitStatus=64 78\n");
  }
});
