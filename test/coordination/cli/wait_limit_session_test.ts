/**
 * How long commands that wait take where servers are not there, take every connection and say nothing, fall silent
 * while they wait, are killed, or are something else; and what they exit with: 75 when a server has said that it is
 * busy, 69 when none has answered, 77 when it is refused.
 */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { createServer as createHttpServer } from "node:http";
import { type AddressInfo, createServer, type Server } from "node:net";
import { type Backend, describeBackend, type RunningBackend } from "../../support/backends.ts";
import { BatonSession, type Ended, type Running } from "../../support/baton_session.ts";
import { ChaosProxy, type Direction } from "../../support/chaos_proxy.ts";
import { eventually } from "../../support/eventually.ts";
import { freePorts } from "../../support/free_ports.ts";
import { QuietTime } from "../../support/quiet_time.ts";
import { tierBackends } from "../../support/tier.ts";

setDefaultTimeout(120_000);

/** What starting and ending a process, and leaving, may take on top of a limit on a busy machine. Milliseconds. */
const slackMs = 2500;

/** A command that waits, or does not, by its limit; each for a name that another one has. */
interface Waiting {
  readonly name: string;
  /** `limit`: the wait, or null for a try. */
  line(limit: string | null): string;
  readonly busyCode: number;
}

const hold = (words: string) => `held=$("$baton" hold --pid $$ ${words}) || exit; eval "$held"; >ran`;

const commands: readonly Waiting[] = [
  { name: "lock", line: (limit) => `"$baton" lock ${limit ?? "-n"} x -- touch ran`, busyCode: 75 },
  { name: "lock -N", line: (limit) => `"$baton" lock -N 1 ${limit ?? "-n"} n -- touch ran`, busyCode: 75 },
  { name: "hold", line: (limit) => hold(`${limit ?? "-n"} x`), busyCode: 75 },
  { name: "pool", line: (limit) => `"$baton" pool p ${limit ?? "-w 0s"} --items a -- touch ran`, busyCode: 81 },
  { name: "barrier", line: (limit) => `"$baton" barrier b -N 2 ${limit ?? "-w 0s"} -- touch ran`, busyCode: 75 },
  { name: "gate", line: (limit) => `"$baton" barrier g --wait ${limit ?? "-w 0s"} && >ran`, busyCode: 75 },
  { name: "leader", line: (limit) => `"$baton" leader nobody ${limit ?? "-w 0s"} && >ran`, busyCode: 75 },
];

/** All of them at once: their limits run beside each other. */
async function all(
  session: BatonSession,
  limit: string | null,
  env: Readonly<Record<string, string>>,
): Promise<readonly (Ended & { readonly command: Waiting })[]> {
  const running = commands.map((command) => session.run(command.line(limit), env));
  return (await Promise.all(running)).map((ended, index) => ({ ...ended, command: commands[index] as Waiting }));
}

function expectWithin(ended: Ended & { readonly command: Waiting }, limitMs: number): void {
  expect([ended.command.name, ended.quietMs < limitMs + slackMs]).toEqual([ended.command.name, true]);
  expect(ended.stdout).toBe("");
  expect(ended.stderr).not.toContain("internal error");
}

async function expectNothingRan(session: BatonSession): Promise<void> {
  expect((await session.run("ls")).stdout).not.toContain("ran");
}

describe("no server", () => {
  let session: BatonSession;
  beforeAll(async () => {
    const [port] = await freePorts(1);
    session = new BatonSession({ BATON_SERVERS: `127.0.0.1:${port}` });
  });
  afterAll(() => session[Symbol.asyncDispose]());

  test("is looked for as long as the wait, a try as long as --connect-timeout; then 69", async () => {
    for (const ended of await all(session, "-w 1500ms", {})) {
      expect([ended.command.name, ended.code]).toEqual([ended.command.name, 69]);
      expect(ended.stderr).toMatch(/^baton: Cannot open a ZooKeeper session within .*: connection refused/m);
      expect(ended.tookMs).toBeGreaterThan(1400);
      expectWithin(ended, 1500);
    }
    for (const ended of await all(session, null, { BATON_CONNECT_TIMEOUT: "1s" })) {
      expect([ended.command.name, ended.code]).toEqual([ended.command.name, 69]);
      expectWithin(ended, 1000);
    }
    await expectNothingRan(session);
  });

  test("a wait that is shorter than --connect-timeout is what counts, and the other way round", async () => {
    for (const [wait, timeout, limitMs] of [["-w 1s", "60s", 1000], ["-w 1m", "1s", 1000]] as const) {
      for (const ended of await all(session, wait, { BATON_CONNECT_TIMEOUT: timeout })) {
        expect([ended.command.name, ended.code]).toEqual([ended.command.name, 69]);
        expectWithin(ended, limitMs);
      }
    }
  });
});

describe("what is not a ZooKeeper server", () => {
  const servers: Server[] = [];
  let session: BatonSession;
  beforeAll(() => session = new BatonSession());
  afterAll(async () => {
    for (const server of servers) server.close();
    await session[Symbol.asyncDispose]();
  });

  const strangers: [name: string, start: () => Server][] = [
    ["a web server", () => createHttpServer((_request, response) => response.end())],
    ["an sshd", () =>
      createServer((socket) => {
        socket.on("error", () => {});
        socket.write("SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n");
      })],
  ];
  for (const [name, start] of strangers) {
    test(`${name} is told at once, whatever the limit: 69`, async () => {
      const server = start();
      servers.push(server);
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", () => resolve()));
      const { port } = server.address() as AddressInfo;
      const env = { BATON_SERVERS: `127.0.0.1:${port}` };
      const elect = await session.run('"$baton" elect e --value v -- touch ran', env);
      const lines = [...await all(session, null, env), ...await all(session, "-w 5m", env)];
      for (const ended of [...lines, { ...elect, command: commands[0] as Waiting }]) {
        expect([ended.command.name, ended.code]).toEqual([ended.command.name, 69]);
        expect(ended.stderr).toContain("the port does not use ZooKeeper's protocol");
        expectWithin(ended, 0);
      }
      const tls = await session.run('"$baton" lock --tls -w 5m x -- touch ran', env);
      expect([tls.code, tls.stderr]).toEqual([69, expect.stringContaining("this port does not use TLS")]);
      expect(tls.quietMs).toBeLessThan(slackMs);
      await expectNothingRan(session);
    });
  }
});

for (const backend of tierBackends) {
  describeBackend(backend, () => silence(backend));
}

function silence(backend: Backend): void {
  let servers: RunningBackend;
  let session: BatonSession;
  let holding: Running[] = [];
  beforeAll(async () => {
    servers = await backend.start();
    session = new BatonSession({ BATON_SERVERS: servers.servers });
    holding = [
      session.start(`exec "$baton" lock --session-timeout 30s x -- sh -c '>has-x; exec sleep 600'`),
      session.start(`exec "$baton" lock --session-timeout 30s -N 1 n -- sh -c '>has-n; exec sleep 600'`),
      session.start(`exec "$baton" pool --session-timeout 30s p --query '>has-p; exec sleep 600' -- true {item}`),
    ];
    for (const name of ["x", "n", "p"]) await session.made(`has-${name}`);
    expect((await session.run('"$baton" barrier g --set')).code).toBe(0);
  });
  afterAll(async () => {
    servers.resume();
    await session[Symbol.asyncDispose]();
    await servers.close();
  });

  test("busy: a try is told at once, a wait when it is over", async () => {
    for (const ended of await all(session, null, {})) {
      if (ended.command.name === "barrier") continue; // no time at all: which of the two is said depends on the moment
      expect([ended.command.name, ended.code]).toEqual([ended.command.name, ended.command.busyCode]);
      expectWithin(ended, 0);
    }
    for (const ended of await all(session, "-w 3s", {})) {
      expect([ended.command.name, ended.code, ended.stderr]).toEqual([
        ended.command.name,
        ended.command.busyCode,
        expect.any(String),
      ]);
      expect(ended.tookMs).toBeGreaterThan(2900);
      expectWithin(ended, 3000);
    }
  });

  test("stopped before the call: 69 when the limit is over", async () => {
    servers.pause();
    try {
      const waits = all(session, "-w 2s", {});
      const tries = all(session, null, { BATON_CONNECT_TIMEOUT: "1s" });
      for (const [ends, limitMs] of [[await waits, 2000], [await tries, 1000]] as const) {
        for (const ended of ends) {
          expect([ended.command.name, ended.code]).toEqual([ended.command.name, 69]);
          expect(ended.stderr).toContain("no response to the handshake");
          expectWithin(ended, limitMs);
        }
      }
    } finally {
      servers.resume();
    }
  });

  test("stopped while they wait: 75 when the limit is over, and nothing is waited for behind it", async () => {
    const waiting = all(session, "-w 4s --session-timeout 6s", {});
    await session.becomesTrue(`${waitersOf("x", 2)} && ${waitersOf("n", 1)} && ${waitersOf("p", 1)}`);
    servers.pause();
    try {
      for (const ended of await waiting) {
        expect([ended.command.name, ended.code, ended.stderr]).toEqual([
          ended.command.name,
          ended.command.busyCode,
          expect.any(String),
        ]);
        expectWithin(ended, 4000);
      }
    } finally {
      servers.resume();
    }
    await expectNothingRan(session);
    // What they had asked for is given back, or goes with their sessions.
    await session.becomesTrue(`${waitersOf("x", 0)} && ${waitersOf("n", 0)}`);
  });

  test("silence from any frame on: a try ends in time, never busy on a free lock, and keeps nothing", async () => {
    const [node] = servers.nodes;
    if (node === undefined) throw new Error("no server");
    const env = { BATON_CONNECT_TIMEOUT: "1500ms", BATON_SESSION_TIMEOUT: "4s" };
    const tries = ["requests", "replies"].flatMap((direction) =>
      [0, 1, 2, 3, 4, 5, 6].flatMap((nth) =>
        ["lock", "hold"].map((verb) => ({
          direction: direction as Direction,
          nth,
          verb,
          name: `${verb}-${direction}-${nth}`,
        }))
      )
    );
    const ends = await Promise.all(tries.map(async (one) => {
      const proxy = await ChaosProxy.start(node.address);
      try {
        void proxy.onFrame({ direction: one.direction, nth: one.nth, action: "hold" });
        const line = one.verb === "lock"
          ? `"$baton" lock -n ${one.name} -- true`
          : `held=$("$baton" hold --pid $$ -n ${one.name}) || exit; "$baton" -V >/dev/null`;
        return { ...one, ...await session.run(line, { ...env, BATON_SERVERS: proxy.servers }) };
      } finally {
        await proxy.close();
      }
    }));
    for (const { name, code, stderr, quietMs } of ends) {
      // 0: all that it takes had been said by then.
      expect([name, code === 0 || code === 69, stderr]).toEqual([name, true, expect.any(String)]);
      if (code === 69) {
        expect(stderr).toMatch(/^baton: Cannot (open a ZooKeeper session within|acquire lock .*: no server)/m);
      }
      expect([name, quietMs < 1500 + 4 * slackMs]).toEqual([name, true]); // many at once
    }
    expect(ends.filter(({ code }) => code === 69).length).toBeGreaterThan(12);
    for (const { name } of tries) {
      await session.becomesTrue(`! "$baton" who ${name} >/dev/null 2>&1`);
    }
  });

  test("stopped while they wait without a limit: a signal ends them within a second", async () => {
    const options = "--session-timeout 20s";
    const lines = [
      `lock x ${options} -- touch ran`,
      `elect e --value v ${options} -- touch ran`,
      `barrier b2 -N 2 ${options} -- touch ran`,
      `barrier g --wait ${options}`,
    ];
    const first = session.start(`exec "$baton" elect e --value v -- sh -c '>has-e; exec sleep 600'`);
    await session.made("has-e");
    const waiting = lines.map((line) => session.start(`exec "$baton" ${line}`));
    await session.becomesTrue(waitersOf("x", 1));
    servers.pause();
    try {
      const quiet = new QuietTime();
      for (const { child } of waiting) child.kill("SIGTERM");
      for (const { ended } of waiting) expect(await ended).toMatchObject({ code: null, signal: "SIGTERM" });
      expect(quiet.ms).toBeLessThan(1000 + slackMs);
    } finally {
      servers.resume();
      first.child.kill("SIGTERM");
      await first.ended;
    }
  });

  test("stopped while one waits without a limit: stderr says that no server answers, and it waits on", async () => {
    const waiting = session.start('exec "$baton" lock --session-timeout 2s x -- touch ran');
    await session.becomesTrue(waitersOf("x", 1));
    servers.pause();
    try {
      await eventually(
        () => /no server has responded for 2 s \(.+: no .+ within .+\); still waiting for "x"/.test(waiting.stderr()),
        {
          withinMs: 15_000,
        },
      );
      expect(waiting.child.exitCode).toBeNull();
    } finally {
      servers.resume();
    }
    await session.becomesTrue(waitersOf("x", 1));
    waiting.child.kill("SIGTERM");
    expect(await waiting.ended).toMatchObject({ code: null, signal: "SIGTERM" });
  });

  test("stopped before one connects: stderr says so after 2 s, and nothing with -q", async () => {
    servers.pause();
    try {
      const [loud, silent] = ["", "-q"].map((word) => session.start(`exec "$baton" lock ${word} -w 30s x -- true`));
      await eventually(() => loud?.stderr().startsWith("baton: no server has responded for 2 s ("), {
        withinMs: 15_000,
      });
      for (const running of [loud, silent]) running?.child.kill("SIGTERM");
      for (const running of [loud, silent]) expect((await running?.ended)?.signal).toBe("SIGTERM");
      expect(silent?.stderr()).toBe("");
    } finally {
      servers.resume();
    }
  });

  test("an ACL that denies it: 77 at once", async () => {
    const env = { BATON_ACL: "creator", BATON_AUTH_CREDENTIALS: "digest:ann:secret", BATON_ROOT: "/hers" };
    expect((await session.run('"$baton" lock -q x -- true', env)).code).toBe(0);
    for (
      const line of [
        "lock -w 5m x -- touch ran",
        "lock -n x -- touch ran",
        "elect e --value v -- touch ran",
        "pool -w 5m p --items a -- touch ran",
        "barrier b -N 2 -w 5m -- touch ran",
      ]
    ) {
      const ended = await session.run(`"$baton" ${line}`, { BATON_ROOT: "/hers" });
      expect([line, ended.code, ended.stderr]).toEqual([line, 77, expect.stringContaining("NOAUTH")]);
      expect(ended.quietMs).toBeLessThan(slackMs);
    }
  });

  test("killed and started again within the wait: the lock is had; not started again: the wait ends", async () => {
    const waiting = session.start('exec "$baton" lock -w 2m --session-timeout 20s free -- touch had');
    const blocker = session.start(`exec "$baton" lock free -- sh -c '>has-free; exec sleep 600'`);
    await Promise.race([session.made("has-free"), session.made("had")]);
    await waitOrDone(session, waiting);
    await servers.kill();
    const late = all(session, "-w 2s", {});
    const patient = session.start('exec "$baton" lock -w 2m other -- touch had-other');
    for (const ended of await late) {
      expect([ended.command.name, ended.code]).toEqual([ended.command.name, 69]);
      expectWithin(ended, 2000);
    }
    await servers.restart();
    blocker.child.kill("SIGTERM");
    await blocker.ended;
    expect(await patient.ended).toMatchObject({ code: 0 });
    expect(await waiting.ended).toMatchObject({ code: 0 });
    for (const { child } of holding) expect(child.exitCode).toBeNull();
  });
}

/** Shell: whether so many wait for the lock. */
function waitersOf(name: string, count: number): string {
  const which = name === "n" ? "who n" : `who ${name}`;
  return `[ "$("$baton" ${which} --json | grep -o '"place":' | wc -l)" -eq ${count} ]`;
}

async function waitOrDone(session: BatonSession, waiting: Running): Promise<void> {
  let hasEnded = false;
  void waiting.ended.then(() => hasEnded = true);
  const isWaiting = async () => (await session.run(waitersOf("free", 1))).code === 0;
  await eventually(async () => hasEnded || await isWaiting(), { what: "a waiter or an end", withinMs: 60_000 });
}
