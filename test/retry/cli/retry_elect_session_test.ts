/**
 * `baton retry-processor run --elect` and `serve --elect`: one of several samples, another goes on, and what is said
 * when nobody can tell who.
 */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { verifyRetryStore } from "../../../src/retry/queue/sqlite/verify_retry_store.ts";
import { keeper } from "../../support/backends.ts";
import { BatonSession, type Running } from "../../support/baton_session.ts";
import { eventually } from "../../support/eventually.ts";

setDefaultTimeout(60_000);

let session: BatonSession;
beforeAll(() => session = new BatonSession({ BATON_SESSION_TIMEOUT: "2s" }));
afterAll(() => session[Symbol.asyncDispose]());

const retry = '"$baton" retry-processor';
const run = (store: string, words: string, own: BatonSession = session) =>
  own.start(`exec ${retry} run --elect --create --store ${store} --lease 2s ${words}`);
const says = (running: Running, what: string | RegExp) =>
  eventually(() => running.stderr().search(what) >= 0, { what: `stderr to say ${what}`, withinMs: 30_000 });
const lines = (own: BatonSession, name: string) =>
  own.run(`cat ${name} 2>/dev/null`).then(({ stdout }) => stdout.split("\n").filter((line) => line !== ""));
/** Each try notes whose it was. */
const noting = (name: string) => `--exec 'echo $PPID >>${name}'`;

describe("run --elect", () => {
  test("one of three tries, the others wait and say for whom; kill -9: another goes on, and nothing is tried twice", async () => {
    const all = [1, 2, 3].map(() => run("three", `--metrics-listen :0 ${noting("tried3")}`));
    await eventually(() => all.some(({ stderr }) => stderr().includes("leads")), { withinMs: 20_000 });
    await session.run(`seq 20 | ${retry} submit --lines --store three`);
    await eventually(async () => (await lines(session, "tried3")).length === 20, { withinMs: 20_000 });
    const pids = new Set(await lines(session, "tried3"));
    expect(pids.size).toBe(1);
    const leader = all.find(({ child }) => pids.has(String(child.pid)));
    for (const one of all) if (one !== leader) await says(one, /waiting: .* leads retry-\w{8}/);
    const leading = await Promise.all(all.map(async ({ stderr }) => {
      const page = /\/metrics are at (\S+)/.exec(stderr())?.[1] ?? "";
      return /^baton_retry_leading (\d)/m.exec(await (await fetch(`http://${page}/metrics`)).text())?.[1];
    }));
    expect(leading.sort()).toEqual(["0", "0", "1"]);
    leader?.child.kill("SIGKILL");
    const killedMs = performance.now();
    await session.run(`seq 20 | ${retry} submit --lines --store three`);
    await eventually(async () => (await lines(session, "tried3")).length === 40, { withinMs: 20_000 });
    // The session timeout of 2 s, and what a busy machine takes.
    expect(performance.now() - killedMs).toBeLessThan(6000);
    const after = (await lines(session, "tried3")).slice(20);
    expect([new Set(after).size, after.includes(String(leader?.child.pid))]).toEqual([1, false]);
    for (const one of all) if (one !== leader) one.child.kill("SIGTERM");
    expect((await Promise.all(all.filter((one) => one !== leader).map(({ ended }) => ended))).map(({ code }) => code))
      .toEqual([0, 0]);
    expect(verifyRetryStore(session.path("three")).problems).toEqual([]);
  });

  test("told to end, the leader hands over at once, while what it has begun goes on", async () => {
    const first = run("over", "--drain-timeout 20s --exec 'touch begun; while [ ! -e finish ]; do sleep 0.02; done'");
    await says(first, "leads");
    await session.run(`echo slow | ${retry} submit --store over`);
    await session.made("begun");
    const second = run("over", noting("tried"));
    await says(second, "waiting:");
    await session.run(`echo quick | ${retry} submit --store over`);
    first.child.kill("SIGTERM");
    const toldMs = performance.now();
    await eventually(async () => (await lines(session, "tried")).length === 1, { withinMs: 15_000 });
    expect(performance.now() - toldMs).toBeLessThan(1500);
    expect(await lines(session, "tried")).toEqual([String(second.child.pid)]);
    await session.run("touch finish");
    expect((await first.ended).code).toBe(0);
    second.child.kill("SIGTERM");
    expect((await second.ended).code).toBe(0);
    const { stdout } = await session.run(`${retry} ls --store over --json`);
    expect(JSON.parse(stdout).messages).toMatchObject([{ state: "done", tries: 1, crashes: 0 }, {
      state: "done",
      tries: 1,
    }]);
  });

  test("asked by baton resign, the leader steps down and another goes on", async () => {
    const first = run("resigned", noting("resigned1"));
    await says(first, "leads");
    const name = /leads (retry-\w{8})/.exec(first.stderr())?.[1] ?? "";
    const second = run("resigned", noting("resigned2"));
    await says(second, "waiting:");
    expect((await session.run(`"$baton" leader ${name}`)).stdout.trim()).toMatch(new RegExp(`:${first.child.pid}$`));
    expect((await session.run(`"$baton" resign ${name}`)).code).toBe(0);
    await says(second, "leads");
    await says(first, /no longer leads retry-\w+/);
    await session.run(`echo x | ${retry} submit --store resigned`);
    await eventually(async () => (await lines(session, "resigned2")).length === 1);
    expect(await lines(session, "resigned1")).toEqual([]);
    for (const { child } of [first, second]) child.kill("SIGTERM");
    await Promise.all([first.ended, second.ended]);
  });

  test("whose servers never answer ends with 69, and tries nothing", async () => {
    await session.run(`echo x | ${retry} submit --store away`);
    const ended = await run("away", "--servers 127.0.0.1:1 --connect-timeout 300ms --exec 'touch away.tried'").ended;
    expect(ended).toMatchObject({ code: 69, stderr: expect.stringContaining("127.0.0.1:1") });
    expect((await session.run("ls away.tried")).stdout).toBe("");
    const { stdout } = await session.run(`${retry} ls --store away --json`);
    expect(JSON.parse(stdout).messages).toMatchObject([{ state: "waiting", tries: 0 }]);
  });

  test("whose servers go away begins no more tries, says so, and goes on when they are back", async () => {
    const server = await keeper.start();
    try {
      await using own = new BatonSession({ BATON_SERVERS: server.servers, BATON_SESSION_TIMEOUT: "2s" });
      const running = run("s", noting("tried"), own);
      await says(running, "leads");
      await server.kill();
      await says(running, /no longer leads retry-\w+/);
      await own.run(`echo x | ${retry} submit --store s`);
      await server.restart();
      await eventually(async () => (await lines(own, "tried")).length === 1, { withinMs: 20_000 });
      running.child.kill("SIGTERM");
      expect((await running.ended).code).toBe(0);
    } finally {
      await server.close();
    }
  });

  test("with what ends by itself is no election", async () => {
    for (const words of ["--once", "--until-empty"]) {
      expect(await run("never", words).ended).toMatchObject({ code: 64, stderr: expect.stringContaining("--elect") });
    }
  });
});

test("serve --elect: every one of them answers and stores, and one redelivers", async () => {
  let down = true;
  let got = 0;
  const backend = createServer((request, response) => {
    request.resume();
    got += down ? 0 : 1;
    response.writeHead(down ? 503 : 200).end();
  });
  await new Promise<void>((resolve) => backend.listen(0, "127.0.0.1", () => resolve()));
  const url = `http://127.0.0.1:${(backend.address() as AddressInfo).port}/`;
  try {
    const doors = [1, 2].map(() =>
      session.start(`exec ${retry} serve --elect --store doors --interval 100ms --url ${url}`)
    );
    for (const door of doors) await says(door, "serves http");
    for (const door of doors) {
      const at = /at (127\.0\.0\.1:\d+),/.exec(door.stderr())?.[1];
      const answer = await fetch(`http://${at}/order`, { method: "POST", body: "x" });
      expect([answer.status, answer.headers.has("baton-message-id")]).toEqual([503, true]);
    }
    await eventually(() => doors.some(({ stderr }) => stderr().includes("leads")), { withinMs: 20_000 });
    down = false;
    await eventually(() => got === 2, { withinMs: 20_000 });
    const leading = doors.filter(({ stderr }) => stderr().includes("this process leads"));
    expect(leading.length).toBe(1);
    for (const { child } of doors) child.kill("SIGTERM");
    expect((await Promise.all(doors.map(({ ended }) => ended))).map(({ code }) => code)).toEqual([0, 0]);
  } finally {
    backend.close();
  }
});
