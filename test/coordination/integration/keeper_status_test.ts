/** What those who watch a keeper see: its health, its numbers, its log. */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { acquireLock } from "../../../src/coordination/lock/acquire_lock.ts";
import { parseZooKeeperServers } from "../../../src/protocols/zookeeper/hosts.ts";
import { connectToZooKeeper } from "../../../src/protocols/zookeeper/zookeeper_client.ts";
import { createFlag } from "../../../src/protocols/zookeeper/jute/zookeeper_operations.ts";
import { node } from "../conformance/zookeeper_fixture.ts";
import { eventually } from "../../support/eventually.ts";
import { batonCommand } from "../../support/keeper_server.ts";
import { RawClient } from "../../support/raw_client.ts";
import { ServerProcess } from "../../support/server_process.ts";

let root = "";
let keeper: ServerProcess | null = null;
beforeEach(() => root = mkdtempSync(join(tmpdir(), "baton-status-")));
afterEach(async () => {
  await keeper?.kill();
  rmSync(root, { recursive: true, force: true });
});

/** A line of the text format 0.0.4, comments included. */
const line = /^(# (HELP|TYPE) [a-z_]+ .+|[a-z_]+(\{[a-z_]+="[^"\n]*"(,[a-z_]+="[^"\n]*")*\})? (\+Inf|[-+0-9.e]+))$/;

test("/healthz, /metrics and a log for programs", async () => {
  const words = [
    "keeper",
    "--data-dir",
    join(root, "data"),
    "--metrics-listen",
    ":0",
    "--log",
    "json",
    "--limit",
    "nodesMax=1234",
  ];
  keeper = new ServerProcess([...batonCommand(), ...words], { folder: root });
  const events = await eventually(() => {
    const entries = keeper?.output.trim().split("\n").map((text) => JSON.parse(text)) ?? [];
    return entries.length >= 2 && entries;
  }, { withinMs: 15_000 });
  expect(events[0]).toMatchObject({ level: "info", event: "serving", pid: keeper.pid });
  expect(events[1]).toMatchObject({ level: "info", event: "metrics" });
  const page = String(events[1].metrics);
  expect(page).toMatch(/^127\.0\.0\.1:\d+$/);
  const ask = async (path: string) => {
    const response = await fetch(`http://${page}${path}`);
    return [response.status, await response.text()] as const;
  };
  expect(await ask("/healthz")).toEqual([200, "ok\n"]);

  const client = await RawClient.connect({ kind: "unix", path: join(root, "data/keeper.sock") });
  await client.call("create", node("/e", { flags: createFlag.ephemeral, data: new Uint8Array(1000) }));
  await client.call("exists", { path: "/e", watch: true });
  const [, text] = await ask("/metrics");
  expect(text).toContain('baton_keeper_limit{resource="nodes"} 1234\n');
  for (const one of text.trimEnd().split("\n")) expect(one).toMatch(line);
  const value = (name: string) => Number(new RegExp(`^${name} (.*)$`, "m").exec(text)?.[1]);
  const numbers = ["disk_full", "connections", "sessions", "nodes", "ephemerals", "watches", "requests_total"];
  expect(numbers.map((name) => value(`baton_keeper_${name}`))).toEqual([0, 1, 1, 5, 1, 1, 3]);
  expect(value("baton_keeper_data_bytes")).toBeGreaterThan(1000);
  expect(value('baton_keeper_commit_seconds_count{to="disk"}')).toBeGreaterThan(0);
  expect(value("baton_keeper_last_zxid")).toBeGreaterThan(2 ** 50);
});

test("/metrics has the use of locks, without a session, and only what any client can read", async () => {
  const socket = join(root, "data/keeper.sock");
  const page = join(root, "page");
  const words = ["keeper", "--data-dir", join(root, "data"), "--metrics-listen", `unix:${page}`];
  keeper = new ServerProcess([...batonCommand(), ...words], { folder: root });
  await eventually(() => keeper?.output.includes("/metrics are at"), { withinMs: 15_000 });
  const ask = async () => await (await fetch("http://keeper/metrics", { unix: page })).text();
  await using zk = await connectToZooKeeper({ servers: parseZooKeeperServers(`unix:${socket}`) });
  await using _held = await acquireLock(zk, "db");
  const credentials = { scheme: "digest", credentials: "user:secret" };
  await using other = await connectToZooKeeper({
    servers: parseZooKeeperServers(`unix:${socket}`),
    auth: [credentials],
  });
  await using _hidden = await acquireLock(other, "mine", { acl: [{ perms: 31, id: { scheme: "auth", id: "" } }] });
  const text = await eventually(async () => {
    const now = await ask();
    return now.includes('baton_lock_holders{name="db"} 1\n') && now;
  }, { withinMs: 15_000 });
  for (const one of text.trimEnd().split("\n")) expect(one).toMatch(line);
  expect(text).not.toContain("baton_up");
  expect(text).not.toContain('{name="mine"}');
});

test("nothing is served to those who watch unless it was asked for", async () => {
  keeper = new ServerProcess([...batonCommand(), "keeper", "--data-dir", join(root, "data")], { folder: root });
  await eventually(() => keeper?.output.includes("serves unix:"), { withinMs: 15_000 });
  expect(keeper.output).not.toContain("metrics");
});
