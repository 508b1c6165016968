/**
 * A keeper on demand: one wins, it stands on its own, it leaves when nobody needs it and comes back when somebody does.
 */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { spawn } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  utimesSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { BatonError } from "../../../src/base/errors.ts";
import { verifyKeeperData } from "../../../src/coordination/keeper/storage/data_check_and_backup.ts";
import { isKeeperProcess } from "../../support/keeper_process.ts";
import { ensureKeeper } from "../../../src/coordination/keeper/lifecycle/ensure_keeper.ts";
import { findKeeperLocation } from "../../../src/coordination/keeper/lifecycle/keeper_location.ts";
import { node } from "../conformance/zookeeper_fixture.ts";
import { eventually } from "../../support/eventually.ts";
import { batonCommand } from "../../support/keeper_server.ts";
import { QuietTime } from "../../support/quiet_time.ts";
import { RawClient } from "../../support/raw_client.ts";

let root = "";
beforeEach(() => root = mkdtempSync(join(tmpdir(), "baton-life-")));
afterEach(async () => {
  for (const pid of keepers()) process.kill(pid, "SIGKILL");
  await eventually(() => keepers().length === 0);
  rmSync(root, { recursive: true, force: true });
});

const place = () => findKeeperLocation({ BATON_KEEPER_DIR: join(root, "k") });
const ensure = (idleExit = "1m") => ensureKeeper(place(), { command: batonCommand(), idleExit });
const address = () => ({ kind: "unix" as const, path: place().socketPath });

/** The processes that serve this test's place, or try to. */
function keepers(): number[] {
  return readdirSync("/proc").filter((name) => /^\d+$/.test(name)).map(Number).filter((pid) => {
    try {
      return readFileSync(`/proc/${pid}/cmdline`, "utf8").includes(`\0keeper\0--data-dir\0${join(root, "k")}\0`);
    } catch {
      return false;
    }
  });
}

/** Runs code in a process of its own, with this environment and nothing else. */
function run(code: string, env: Record<string, string> = {}, more: { shell?: string } = {}): Promise<string> {
  const words = [process.execPath, "-e", code];
  const [program = "", ...args] = more.shell === undefined ? words : ["/bin/sh", "-c", more.shell, "sh", ...words];
  const child = spawn(program, args, { env, stdio: ["ignore", "pipe", "pipe"], detached: true });
  let said = "";
  for (const stream of [child.stdout, child.stderr]) stream?.on("data", (chunk) => said += chunk);
  return new Promise((resolve, reject) => {
    child.on("close", (exit) => exit === 0 ? resolve(said.trim()) : reject(new Error(`exit ${exit}: ${said}`)));
  });
}

const source = (name: string) =>
  JSON.stringify(join(import.meta.dir, "../../../src/coordination/keeper/lifecycle", name));
const ensureCode = () => `
  const { ensureKeeper } = await import(${source("ensure_keeper.ts")});
  const { findKeeperLocation } = await import(${source("keeper_location.ts")});
  await ensureKeeper(findKeeperLocation({ BATON_KEEPER_DIR: ${JSON.stringify(join(root, "k"))} }), {
    command: ${JSON.stringify(batonCommand())},
  });
  process.exit(0);`;

test("of twenty processes that start one at once, one keeper serves all", async () => {
  await Promise.all(Array.from({ length: 20 }, () => run(ensureCode())));
  await eventually(() => keepers().length === 1, { what: "the losers to leave" });
  const client = await RawClient.connect(address());
  expect((await client.call("create", node("/a"))).err).toBe(0);
  await client.close();
}, 60_000);

test("it has nothing of the job that started it: session, group, folder, environment, descriptors", async () => {
  const env = { PATH: process.env["PATH"] ?? "", BATON_LOCK_COOKIE: "secret", BATON_AUTH_CREDENTIALS: "digest:u:p" };
  await run(ensureCode(), env, { shell: `exec 9>${join(root, "ninth")} 8<&9; "$@"` });
  const [pid = -1] = keepers();
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ") ?? [];
  expect([stat[2], stat[3]]).toEqual([String(pid), String(pid)]);
  expect(readlinkSync(`/proc/${pid}/cwd`)).toBe("/");
  const environment = readFileSync(`/proc/${pid}/environ`, "utf8");
  for (const secret of ["BATON_LOCK_COOKIE", "BATON_AUTH", "secret"]) expect(environment).not.toContain(secret);
  expect(isKeeperProcess(pid)).toBe(true);
  expect(isKeeperProcess(process.pid)).toBe(false);
  const open = readdirSync(`/proc/${pid}/fd`).map((fd) => readlinkSync(`/proc/${pid}/fd/${fd}`));
  const files = open.filter((path) => path.startsWith("/") && !path.startsWith(join(root, "k")));
  expect(files.filter((path) => !path.startsWith("/dev/") && !path.startsWith("/proc/"))).toEqual([]);
  expect(open.filter((path) => path.startsWith("pipe:"))).toEqual([]);
}, 30_000);

test("an empty environment, as cron gives, and a login shell's find the same place", async () => {
  const code = `
    const { findKeeperLocation } = await import(${source("keeper_location.ts")});
    console.log(JSON.stringify(findKeeperLocation(process.env)));`;
  const login = {
    HOME: root,
    XDG_STATE_HOME: root,
    XDG_RUNTIME_DIR: root,
    USER: "somebody",
    PATH: process.env["PATH"] ?? "",
  };
  const [fromCron, fromLogin] = await Promise.all([run(code), run(code, login)]);
  expect(fromCron).toBe(fromLogin);
  expect(fromCron).not.toContain(root);
});

test("it ends when nobody has used it for a while, with nothing left in the way, and the data stays", async () => {
  await ensure("200ms");
  const client = await RawClient.connect(address());
  await client.call("create", node("/a"));
  await client.close();
  await eventually(() => keepers().length === 0, { what: "the idle keeper to end" });
  expect(existsSync(place().socketPath)).toBe(false);
  await ensure();
  const again = await RawClient.connect(address());
  expect((await again.call("exists", { path: "/a", watch: false })).err).toBe(0);
  await again.close();
}, 30_000);

test("whoever comes at the moment it ends gets another one", async () => {
  for (let round = 0; round < 10; round++) {
    const client = await eventually(async () => {
      await ensure("1ms");
      return await RawClient.connect(address());
    }, { withinMs: 10_000 });
    await client.close();
  }
}, 60_000);

test("after a kill -9 it is back at once, and the session goes on", async () => {
  await ensure();
  const client = await RawClient.connect(address());
  const { sessionId, passwd } = client.hello;
  await client.call("create", node("/held"));
  const [pid = -1] = keepers();
  process.kill(pid, "SIGKILL");
  await client.closed;
  const quiet = new QuietTime();
  await ensure();
  const resumed = await RawClient.connect(address(), { sessionId, passwd: passwd ?? new Uint8Array() });
  expect(resumed.sessionId).toBe(sessionId);
  // T/6 of the default timeout of 10 s, by far
  expect(quiet.ms).toBeLessThan(1600);
  await resumed.close();
}, 30_000);

test("a session that does nothing is stored soon, and then survives a kill -9 too", async () => {
  await ensure();
  const client = await RawClient.connect(address());
  const { sessionId, passwd } = client.hello;
  await eventually(() => verifyKeeperData(join(root, "k")).sessions === 1);
  for (const pid of keepers()) process.kill(pid, "SIGKILL");
  await client.closed;
  await ensure();
  const resumed = await RawClient.connect(address(), { sessionId, passwd: passwd ?? new Uint8Array() });
  expect(resumed.sessionId).toBe(sessionId);
  await resumed.close();
}, 30_000);

test("a socket that somebody removed is there again, and the sessions are not disturbed", async () => {
  await ensure();
  const client = await RawClient.connect(address());
  rmSync(place().socketPath);
  const other = await eventually(() => RawClient.connect(address()));
  expect((await client.ping()).err).toBe(0);
  await Promise.all([client.close(), other.close()]);
  expect(keepers().length).toBe(1);
}, 30_000);

test("when its data is removed it ends, because another one can start and know nothing of its locks", async () => {
  await ensure();
  const client = await RawClient.connect(address());
  const [before] = keepers();
  rmSync(join(root, "k"), { recursive: true });
  await client.closed;
  await ensure();
  await eventually(() => keepers().length === 1 && keepers()[0] !== before);
}, 30_000);

test("a keeper that cannot start says why", async () => {
  const failing = ensureKeeper(place(), { command: ["/bin/sh", "-c", "echo the reason >&2; exit 78", "sh"] });
  const error = await failing.then(() => null, (thrown) => thrown);
  expect(error).toBeInstanceOf(BatonError);
  expect(error).toMatchObject({ code: "CONFIG", message: expect.stringContaining("the reason") });
});

test("a folder that cannot be written is reported at once, with the path and the reason", async () => {
  const { dir } = place();
  mkdirSync(join(root, "k", "starting"), { recursive: true, mode: 0o700 }); // in the way of the file, for root too
  utimesSync(join(root, "k", "starting"), 0, 0);
  const error = await ensure().then(() => null, (thrown) => thrown);
  expect(error).toMatchObject({ code: "CANNOT_CREATE" });
  expect(error.message).toStartWith(`Cannot start the keeper: cannot write ${dir}/starting: `);
  expect(error.message).toMatch(/it is a folder|directory not empty|not a directory/);
});

test("a second keeper on the same data is refused", async () => {
  await ensure();
  const [command = "", ...args] = [
    ...batonCommand(),
    "keeper",
    "--data-dir",
    join(root, "k"),
    "--listen",
    "127.0.0.1:0",
  ];
  const child = spawn(command, args, { stdio: "ignore" });
  expect(await new Promise((resolve) => child.on("exit", resolve))).toBe(75);
  expect(keepers().length).toBe(1);
}, 30_000);
