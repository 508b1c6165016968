/** docs/examples/pool, as its comments say. */
import { expect, setDefaultTimeout, test } from "bun:test";
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { BatonSession } from "../../support/baton_session.ts";
import { eventually } from "../../support/eventually.ts";

setDefaultTimeout(60_000);

const folder = join(import.meta.dir, "../../../docs/examples/pool");

function example(): { session: BatonSession; env: Record<string, string> } {
  const session = new BatonSession({ BATON_SERVERS: "embedded", BATON_SESSION_TIMEOUT: "2s" });
  return { session, env: { example: folder, BATON: session.env["baton"] ?? "" } };
}

const processed = (text: string) =>
  [...text.matchAll(/^(\S+) is processed under token \d+$/gm)].map(([, item]) => item);

test("calls of cron that overlap process every batch, each once, and none complains", async () => {
  const { session, env } = example();
  await using _session = session;
  mkdirSync(session.path("inbox"));
  const batches = Array.from({ length: 12 }, (_, index) => `B4000220282${index + 10}-RT1`);
  for (const batch of batches) writeFileSync(session.path(`inbox/${batch}`), "");
  const call = () => session.run('sh "$example/component.sh" SampleComponent inbox 4', env);
  const ended = [];
  while (readdirSync(session.path("inbox")).length > 0) ended.push(...await Promise.all([call(), call()]));
  expect(ended.map(({ code, stderr }) => [code, stderr])).toEqual(ended.map(() => [0, ""]));
  expect(ended.flatMap(({ stdout }) => processed(stdout)).sort()).toEqual(batches);
});

test("what the leader hands out is done by whoever has room, though leader and worker die", async () => {
  const { session, env } = example();
  await using _session = session;
  const lead = () => session.start('exec sh "$example/leader.sh" plan orders work', env);
  const work = () => session.start('exec sh "$example/worker.sh" plan work', env);
  const order = (name: string, items: readonly string[]) => {
    writeFileSync(session.path(`${name}.new`), items.map((item) => `${item}\n`).join(""));
    return session.run(`mkdir -p orders && mv ${name}.new orders/${name}`);
  };
  const done = () => readdirSync(session.path("work.done"));
  const [first, second] = [lead(), lead()];
  const [one, other] = [work(), work()];
  await order("a", ["a1", "a2", "a3"]);
  await eventually(() => done().length === 3, { withinMs: 20_000 });
  const leader = await eventually(async () => Number((await session.run('"$baton" leader plan')).stdout.split(":")[1]));
  for (const dying of [first, second]) if (dying.child.pid === leader) process.kill(leader, "SIGKILL");
  process.kill(one.child.pid ?? 0, "SIGKILL");
  await order("b", ["b1", "b2", "b3"]);
  await eventually(() => done().length === 6, { withinMs: 30_000 });
  expect(done().sort()).toEqual(["a1", "a2", "a3", "b1", "b2", "b3"]);
  await eventually(() => processed(one.stdout() + other.stdout()).length === 6, { what: "the output of each item" });
  expect(processed(one.stdout() + other.stdout()).sort()).toEqual(["a1", "a2", "a3", "b1", "b2", "b3"]);
});

test("workers that share a list whose query takes its time process each item once", async () => {
  const { session, env } = example();
  await using _session = session;
  mkdirSync(session.path("work"));
  const items = Array.from({ length: 20 }, (_, index) => `i${index + 10}`);
  for (const item of items) writeFileSync(session.path(`work/${item}`), "");
  // As worker.sh calls it, but that the list is some milliseconds old when it is read.
  const call =
    `exec "$BATON" pool -q shared --query 'ls work; sleep 0.05' -j 2 --loop -- sh "$example/process.sh" work {item}`;
  const ended = await Promise.all(Array.from({ length: 3 }, () => session.run(call, env)));
  expect(ended.map(({ stderr }) => stderr)).toEqual(["", "", ""]);
  expect(ended.flatMap(({ stdout }) => processed(stdout)).sort()).toEqual(items);
});

test("newspaper.toml: a component's line for cron is its name, and what it says is done", async () => {
  const { session } = example();
  await using _session = session;
  const source = readFileSync(join(folder, "newspaper.toml"), "utf8").replaceAll("/srv/newspaper", session.folder);
  writeFileSync(session.path("newspaper.toml"), source);
  expect((await session.run('"$baton" config check --config newspaper.toml')).code).toBe(0);
  const script = '#!/bin/sh\n[ -e "$1" ] && echo "$1" >>"$(dirname "$0")/processed"\n';
  for (const name of ["process.sh", "propagate.sh"]) writeFileSync(session.path(name), script, { mode: 0o755 });
  const inbox = ["B1", "B 2", "B3", "B4", "B5", "B6"];
  const out = ["a", "b; touch hacked", "c'd", '$(touch hacked) "e"'];
  for (const [name, items] of [["inbox", inbox], ["out", out]] as const) {
    mkdirSync(session.path(name));
    for (const item of items) writeFileSync(session.path(`${name}/${item}`), "");
  }
  const cron = (component: string) =>
    session.run(`"$baton" pool ${component}`, { BATON_SERVERS: "embedded", XDG_CONFIG_HOME: session.path("etc") });
  mkdirSync(session.path("etc/baton"), { recursive: true });
  writeFileSync(session.path("etc/baton/config.toml"), source);
  const lines = () => readFileSync(session.path("processed"), "utf8").trim().split("\n");
  expect(await cron("SampleComponent")).toMatchObject({ code: 0, stderr: "" });
  expect(lines().length).toBe(4);
  expect((await cron("SampleComponent")).code).toBe(0);
  expect(lines().sort()).toEqual(inbox.map((item) => session.path(`inbox/${item}`)).sort());
  for (const code of [0, 0]) expect((await cron("Propagator --done-ttl 1d")).code).toBe(code);
  expect(lines().slice(6).sort()).toEqual(out.map((item) => `out/${item}`).sort());
  expect(existsSync(session.path("hacked"))).toBe(false);
});
