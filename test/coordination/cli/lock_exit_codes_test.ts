/** Every exit code of `baton lock` that can be reached from outside, each by a session with the binary. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { chmodSync, copyFileSync, writeFileSync } from "node:fs";
import process from "node:process";
import { eventually } from "../../support/eventually.ts";
import { keeper } from "../../support/backends.ts";
import { BatonSession } from "../../support/baton_session.ts";
import { freePorts } from "../../support/free_ports.ts";

setDefaultTimeout(60_000);

let session: BatonSession;
beforeAll(() => session = new BatonSession());
afterAll(() => session[Symbol.asyncDispose]());

describe("the command's own ending passes through", () => {
  const endings: [command: string, code: number][] = [
    ["true", 0],
    ["sh -c 'exit 7'", 7],
    ["sh -c 'exit 75'", 75],
    ["sh -c 'kill -9 $$'", 137],
  ];
  for (const [command, code] of endings) {
    test(`${command} gives ${code}, and baton says nothing`, async () => {
      const ended = await session.run(`"$baton" lock -q own -- ${command}`);
      expect(ended).toMatchObject({ code, signal: null, stdout: "", stderr: "" });
    });
  }
});

describe("what cannot be started", () => {
  test("127 and 126 are those of env", async () => {
    writeFileSync(session.path("data"), "not a program");
    expect(await session.run('"$baton" lock -q s -- ./no-such-command')).toMatchObject({
      code: 127,
      stderr: 'baton: Cannot run "./no-such-command": no such file\n',
    });
    expect(await session.run('"$baton" lock -q s -- no-such-command')).toMatchObject({ code: 127 });
    chmodSync(session.path("data"), 0o644);
    expect(await session.run('"$baton" lock -q s -- ./data')).toMatchObject({ code: 126 });
    expect(await session.run('"$baton" lock -q s -- "$dir"')).toMatchObject({ code: 126 });
  });

  test("125 is for a command that is in order and cannot be started all the same", async () => {
    // Linux takes no variable of more than 128 KiB; to the outer call's cookie the own one is appended.
    const env = { BATON_LOCK_COOKIE: "0".repeat(131_040) };
    const ended = await session.run('"$baton" lock -q --status-file status-125 s -- true', env);
    expect(ended).toMatchObject({
      code: 125,
      stderr:
        `baton: Cannot start "${Bun.which("true")}": arguments and environment are longer than the kernel accepts ` +
        "(E2BIG); use fewer, or pass them in a file\n",
    });
    expect(JSON.parse(session.read("status-125"))).toMatchObject({
      reason: "start_failed",
      exit_code: 125,
      command_status: null,
    });
    // A descriptor to pass on, from before the limit.
    const few = await session.run(`bash -c 'exec 150</dev/null; ulimit -n 100; "$baton" lock -q few -- true'`);
    expect(few.code).toBe(125);
    expect(few.stderr).toMatch(/: the limit of open files is reached \(100, E\w+\); raise it with ulimit -n\n$/);
  });
});

describe("64: the command line is wrong, and nothing was taken", () => {
  const mistakes: [line: string, stderr: RegExp][] = [
    [
      "lock a",
      /^baton: baton lock needs a command, as in: baton lock NAME COMMAND; baton hold holds a lock over several steps of a script\nbaton: see: baton lock --help\n$/,
    ],
    ["lock --wiat 1s a -- true", /^baton: There is no option --wiat, did you mean "--wait"\?\n/],
    ["lock -w 10min a -- true", /^baton: --wait: "10min" is not a duration/],
    ["lock --status-fd 8 a -- true", /^baton: --status-fd 8: descriptor 8 is not open/],
    ["lock '' -- true", /^baton: "" cannot be the name of a lock: it is empty/],
    ["lock -z 'a:b' a -- true", /^baton: --servers: Cannot use "a:b" as the list of servers/],
    ["lokc a -- true", /^baton: There is no command "lokc", did you mean "lock"\?\nbaton: see: baton --help\n$/],
  ];
  for (const [line, stderr] of mistakes) {
    test(`baton ${line}`, async () => {
      const ended = await session.run(`"$baton" ${line}`);
      expect(ended).toMatchObject({ code: 64, stdout: "" });
      expect(ended.stderr).toMatch(stderr);
    });
  }

  test("a job that asks for a lock it holds already is told so, through any number of calls", async () => {
    const ended = await session.run('"$baton" lock -q n -- "$baton" lock -q m -- "$baton" lock -q n -- true');
    expect(ended).toMatchObject({ code: 64 });
    expect(ended.stderr).toStartWith('baton: "n" is already held by this command');
    expect(await session.run('"$baton" lock -q m n -- "$baton" lock -q n -- true')).toMatchObject({ code: 64 });
  });
});

test("69: no server answers, within --connect-timeout", async () => {
  const [port] = await freePorts(1);
  const ended = await session.run(
    `"$baton" lock -z 127.0.0.1:${port} --connect-timeout 300ms a -- touch ran; echo $?; ls`,
  );
  expect(ended.stdout).toStartWith("69\n");
  expect(ended.stdout).not.toContain("ran");
  expect(ended.stderr).toMatch(
    new RegExp(`^baton: Cannot open a ZooKeeper session within \\d+ ms: 127.0.0.1:${port}: connection refused\n$`),
  );
  expect(ended.quietMs).toBeLessThan(3000);
});

test("73: a status file that cannot be made, before anything is taken", async () => {
  const ended = await session.run('"$baton" lock -q --status-file "$dir/none/status" a -- touch ran-73; ls');
  expect(ended.stderr).toContain("cannot create the file");
  expect(ended.stdout).not.toContain("ran-73");
  expect((await session.run('"$baton" lock -q --status-file "$dir/none/status" a -- true')).code).toBe(73);
});

describe("75: busy", () => {
  test("-n at once, -w after its time; stderr says who holds it, since when and why; -E is another code", async () => {
    await using own = new BatonSession();
    const holder = own.start('exec "$baton" lock -q --reason "bulk load" busy -- sh -c "touch held; exec sleep 60"');
    await own.made("held");
    const tried = await own.run('"$baton" lock --servers embedded -n busy -- touch never');
    expect(tried.code).toBe(75);
    expect(tried.stderr).toMatch(
      /^baton: Lock "busy" is busy: held for .* by \S+@\S+ \(pid \d+, sh\), reason "bulk load"\n$/,
    );
    const waited = await own.run('"$baton" lock -q -w 1s -E 9 busy -- touch never');
    expect(waited).toMatchObject({ code: 9, stdout: "", stderr: "" });
    expect(waited.tookMs).toBeGreaterThan(1000);
    expect((await own.run("ls")).stdout).not.toContain("never");
    holder.child.kill("SIGTERM");
    expect((await holder.ended).signal).toBe("SIGTERM");
  });
});

describe("77: refused", () => {
  test("by the ACL of whoever made the nodes", async () => {
    await using own = new BatonSession();
    const env = { BATON_ACL: "creator", BATON_AUTH_CREDENTIALS: "digest:ann:secret" };
    expect(await own.run('"$baton" lock -q acl -- true', env)).toMatchObject({ code: 0 });
    const stranger = await own.run('"$baton" lock -q acl -- touch never; echo $?; ls');
    expect(stranger.stdout).toStartWith("77\n");
    expect(stranger.stderr).toContain("NOAUTH");
    expect(stranger.stdout).not.toContain("never");
  });
});

describe("78: the configuration does not fit", () => {
  test("a bad file is named with line, key, value and what was wanted", async () => {
    writeFileSync(session.path("bad.toml"), '[lock]\n\nkill_after = "10min"\n');
    const ended = await session.run('"$baton" lock --config bad.toml a -- true');
    expect(ended).toMatchObject({ code: 78, stdout: "" });
    expect(ended.stderr).toStartWith('baton: bad.toml, line 3: lock.kill_after: "10min" is not a duration');
  });

  test("so is a bad variable, and a value that another part cannot use", async () => {
    const variable = await session.run('"$baton" lock a -- true', { BATON_SESSION_TIMEOUT: "10 s" });
    expect(variable.code).toBe(78);
    expect(variable.stderr).toStartWith('baton: BATON_SESSION_TIMEOUT: "10 s" is not a duration');
    const servers = await session.run('"$baton" lock a -- true', { BATON_SERVERS: "a:b" });
    expect(servers.code).toBe(78);
    expect(servers.stderr).toStartWith('baton: BATON_SERVERS: Cannot use "a:b" as the list of servers');
  });

  test("an ACL for the creator, who says no name", async () => {
    const ended = await session.run('"$baton" lock -q a -- true', { BATON_ACL: "creator" });
    expect(ended.code).toBe(78);
    expect(ended.stderr).toStartWith("baton: BATON_ACL: creator needs");
  });

  test("a scope that is demanded and not reached", async () => {
    const ended = await session.run('"$baton" lock --scope cluster a -- true');
    expect(ended.code).toBe(78);
    expect(ended.stderr).toStartWith("baton: --scope cluster is required, but");
    expect(await session.run('"$baton" lock -q --scope user a -- true')).toMatchObject({ code: 0 });
  });

  test("a session that is too short to stop a job in", async () => {
    await using own = new BatonSession();
    const server = await keeper.start({ sessionTimeoutMaxMs: 1500 });
    try {
      const ended = await own.run(`"$baton" lock -z ${server.servers} short -- touch never; echo $?; ls`);
      expect(ended.stdout).toStartWith("78\n");
      expect(ended.stdout).not.toContain("never");
      expect(ended.stderr).toStartWith(
        "baton: Session timeout 1500 ms is too short: a lock needs at least 2000 ms.",
      );
    } finally {
      await server.close();
    }
  });

  test("another limit than that of the holders", async () => {
    const inside = `"$baton" lock -q -N 3 limit -- env -u BATON_LOCK_COOKIE "$baton" lock -q -N 2 limit -- true`;
    expect(await session.run(inside)).toMatchObject({
      code: 78,
      stderr: expect.stringContaining("is held with limit 3, not 2. Ask for 3, or for 2 when no process holds it"),
    });
    expect(await session.run('"$baton" lock -q -N 2 limit -- true')).toMatchObject({ code: 0 });
  });
});

test("79: the lock is lost while the command runs, which is dead before another call can have it", async () => {
  await using own = new BatonSession();
  const server = await keeper.start();
  try {
    const running = own.start(
      `"$baton" lock -z ${server.servers} --session-timeout 2s --kill-after 200ms --status-file status lost -- ` +
        'sh -c "touch held; exec sleep 60"',
    );
    await own.made("held");
    server.pause();
    const ended = await running.ended;
    server.resume();
    expect(ended.code).toBe(79);
    expect(ended.stderr).toStartWith('baton: Lock "lost" is lost: ');
    expect(JSON.parse(own.read("status"))).toMatchObject({
      reason: "lock_lost",
      exit_code: 79,
      command_status: { code: null, signal: "SIGTERM" },
    });
  } finally {
    await server.close();
  }
});

test("80: an operator takes it back, and the command has time to stop", async () => {
  await using own = new BatonSession({ BATON_SERVERS: "embedded" });
  const running = own.start(
    `"$baton" lock taken -- sh -c 'trap "echo tidied; exit 3" TERM; touch held; while :; do sleep 0.05; done'`,
  );
  await own.made("held");
  const id = /"id":"([0-9a-f]+)"/.exec((await own.run('"$baton" who taken --json')).stdout)?.[1] ?? "";
  const broken = await own.run(`"$baton" break taken --holder ${id.slice(0, 8)} --reason maintenance`);
  expect(broken.code).toBe(0);
  expect(broken.stderr).toEndWith('has released "taken"\n');
  const ended = await running.ended;
  expect(ended).toMatchObject({ code: 80, stdout: "tidied\n" });
  expect(ended.stderr).toMatch(
    /baton: Lock "taken" was broken by .*, reason "maintenance"; the command was stopped and exited with 3\n$/,
  );
});

// A program that is somebody else's once it runs: the lock's user is not allowed to kill it.
const whyNoBreach = process.geteuid?.() !== 0
  ? "only root can make a command that another user cannot kill"
  : Bun.which("setpriv") === null
  ? "setpriv is not installed"
  : null;
if (whyNoBreach !== null) console.log(`83 is not tested: ${whyNoBreach}`);

test.skipIf(whyNoBreach !== null)(
  `83: the command cannot be killed, and no server responds${whyNoBreach === null ? "" : ` [skipped, ${whyNoBreach}]`}`,
  async () => {
    await using own = new BatonSession();
    const server = await keeper.start();
    const survivors = () => [...own.read("err").matchAll(/\(pids (\d+)\)/g)].map(([, pid]) => Number(pid));
    try {
      chmodSync(own.folder, 0o777);
      // In a folder that another user may enter, which the repository need not be.
      copyFileSync(own.env["baton"] ?? "", own.path("baton"));
      copyFileSync(Bun.which("setpriv") ?? "", own.path("become-root"));
      chmodSync(own.path("become-root"), 0o4755);
      const running = own.start(
        "setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all ./baton lock " +
          `-z ${server.servers} --session-timeout 2s --max-hold 100ms --kill-after 100ms ` +
          "--status-file status breach -- " +
          "./become-root --reuid=0 sleep 60 >out 2>err; echo $?",
      );
      await eventually(() => own.read("err").includes("cannot be stopped"), { withinMs: 15_000 });
      await server.close();
      expect((await running.ended).stdout).toBe("83\n");
      expect(own.read("err")).toMatch(
        /^baton: The command under "breach" may still be running \(pids \d+\): baton could not stop it in time; another process may get the/m,
      );
      expect(JSON.parse(own.read("status"))).toMatchObject({ reason: "fence_breach", exit_code: 83 });
      expect(survivors()).toHaveLength(1);
    } finally {
      for (const pid of survivors()) process.kill(pid, "SIGKILL");
      await server.close();
    }
  },
);

test("124: --max-hold is over", async () => {
  const ended = await session.run('"$baton" lock -q --max-hold 200ms long -- sleep 60');
  expect(ended.code).toBe(124);
  expect(ended.stderr).toStartWith('baton: The command under "long" ran longer than 200 ms (--max-hold)');
});
