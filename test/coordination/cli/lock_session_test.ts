/** `baton lock` as scripts use it: what goes to stdout and stderr, what the command learns, signals, reports. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync, rmSync, writeFileSync } from "node:fs";
import { lockCommandVariables } from "../../../src/base/config/child_variables.ts";
import { findKeeperLocation } from "../../../src/coordination/keeper/lifecycle/keeper_location.ts";
import { keeper } from "../../support/backends.ts";
import type { RunningBackend } from "../../support/backends.ts";
import { BatonSession, killKeeper } from "../../support/baton_session.ts";
import { eventually } from "../../support/eventually.ts";
import { QuietTime } from "../../support/quiet_time.ts";

setDefaultTimeout(60_000);

let session: BatonSession;
beforeAll(() => session = new BatonSession());
afterAll(() => session[Symbol.asyncDispose]());

describe("the scope of a lock is printed once", () => {
  const line = /baton: scope of lock "reach": this user's processes on this machine only; use --servers .*\n/;
  /** Runs it with a terminal as stdin, stdout and stderr. */
  const onTerminal = async (command: string) =>
    (await session.run(`script -qec '${command}' /dev/null </dev/null`)).stdout.replaceAll("\r", "");

  test("on a terminal, and with -v, if no server was named", async () => {
    const shown = await onTerminal('"$baton" lock reach echo hello');
    expect(shown).toMatch(line);
    expect(shown).toContain("hello\n");
    const verbose = await session.run('"$baton" lock -v reach echo hello');
    expect(verbose).toMatchObject({ code: 0, stdout: "hello\n" });
    expect(verbose.stderr).toMatch(line);
  });

  test("not where cron would mail it", async () => {
    const cron = `env -i HOME="$HOME" SHELL=/bin/sh PATH=/usr/bin:/bin BATON_KEEPER_DIR="$BATON_KEEPER_DIR"`;
    for (
      const line of ["lock reach true", "elect reach --value v true", "barrier reach -N 1 true", "lock -n reach true"]
    ) {
      expect([line, await session.run(`${cron} "$baton" ${line}`)]).toEqual([
        line,
        expect.objectContaining({ code: 0, stderr: "" }),
      ]);
    }
  });

  test("not with -q, not when it is said on purpose, not by a call inside a job", async () => {
    for (const flags of ["-q", "--servers embedded", "-z embedded"]) {
      expect(await onTerminal(`"$baton" lock ${flags} reach echo hello`)).toBe("hello\n");
    }
    const nested = await onTerminal('"$baton" lock reach "$baton" lock inner echo hello');
    expect(nested.match(/scope of lock/g)).toHaveLength(1);
  });

  test("not with servers, which are never replaced by the keeper", async () => {
    const server = await keeper.start();
    try {
      await using own = new BatonSession({ BATON_SERVERS: server.servers });
      expect(await own.run('"$baton" lock a -- sh -c "echo $BATON_LOCK_SCOPE"', { BATON_LOCK_SCOPE: "" }))
        .toMatchObject({
          code: 0,
          stderr: "",
        });
      expect((await own.run(`"$baton" lock a -- sh -c 'echo $BATON_LOCK_SCOPE $BATON_SERVERS'`)).stdout).toBe(
        `cluster ${server.servers}\n`,
      );
      expect(existsSync(own.keeperFolder)).toBe(false);
    } finally {
      await server.close();
    }
  });
});

describe("streams", () => {
  test("stdin, stdout, stderr and other descriptors are the command's own", async () => {
    const ended = await session.run(
      `echo in | "$baton" lock -q s -- sh -c 'cat; echo err >&2; echo nine >&9' 9>"$dir/nine"; cat nine`,
    );
    expect(ended).toMatchObject({ code: 0, stdout: "in\nnine\n", stderr: "err\n" });
  });

  test("arguments and variables that are not UTF-8 are the command's as they are", async () => {
    const ended = await session.run(
      `v=$(printf 'caf\\351') "$baton" lock -q s -- sh -c 'printf "%s|" "$v" "$@" | od -An -c' sh "$(printf '\\374 x')" plain`,
    );
    expect(ended).toMatchObject({ code: 0, stderr: "" });
    expect(ended.stdout.replaceAll(/\s+/g, " ").trim()).toBe("c a f 351 | 374 x | p l a i n |");
  });

  test("-v says what happens, on stderr", async () => {
    const ended = await session.run('"$baton" lock -v -z embedded s -- echo out');
    expect(ended.stdout).toBe("out\n");
    expect(ended.stderr).toMatch(
      /^baton: "s" is locked after \d+ ms as [0-9a-f]{32}, token \d+, session timeout 10000 ms\n$/,
    );
  });

  test("a reader that goes away ends a list as it ends others: by SIGPIPE", async () => {
    const ended = await session.run(
      'mkfifo pipe; { : <pipe & } ; exec 5>pipe; wait; "$baton" help environment >&5; echo $?',
    );
    expect(ended).toMatchObject({ stdout: "141\n", stderr: "" });
  });
});

test("servers whose shortest session is longer than the one asked for are told of once, and not with -q", async () => {
  const server = await keeper.start({ sessionTimeoutMinMs: 4000 });
  try {
    const asking = `lock -z ${server.servers} --session-timeout 3s t -- sh -c 'echo $BATON_SESSION_TIMEOUT_MS'`;
    const ended = await session.run(`"$baton" ${asking}`);
    expect(ended.stdout).toBe("4000\n");
    expect(ended.stderr).toMatch(
      /^baton: requested a session timeout of 3 s, but the minimum of the servers is 4 s; .*\n$/,
    );
    expect((await session.run(`"$baton" ${asking}`.replace("lock", "lock -q"))).stderr).toBe("");
  } finally {
    await server.close();
  }
});

describe("what the command learns", () => {
  test("every variable of the table is set, and the token grows from grant to grant", async () => {
    const names = Object.entries(lockCommandVariables).flatMap(([name, is]) => /^(under|only) /.test(is) ? [] : [name]);
    const ended = await session.run('"$baton" lock -q learns -- env');
    const lines = ended.stdout.trim().split("\n").map((line) => line.split("=") as [string, string]);
    const values = new Map(lines.filter(([name]) => names.includes(name)));
    expect([...values.keys()].sort()).toEqual(names.sort());
    for (const [name, value] of values) expect([name, value]).not.toEqual([name, ""]);
    expect(Object.fromEntries(values)).toMatchObject({
      BATON_LOCK_NAME: "learns",
      BATON_LOCK_PATH: "/baton/locks/learns",
      BATON_LOCK_MODE: "exclusive",
      BATON_LOCK_LIMIT: "1",
      BATON_ROOT: "/baton",
      BATON_LEASE: expect.stringMatching(/^\/proc\/\d+\/fd\/\d+$/),
      BATON_LOCK_SCOPE: "user",
      BATON_SESSION_TIMEOUT_MS: "10000",
      BATON_SERVERS: `unix:${session.keeperFolder}/keeper.sock`,
    });
    const token = `"$baton" lock -q learns -- sh -c 'echo $BATON_FENCING_TOKEN'`;
    const [first = "", second = ""] = (await session.run(`${token}; ${token}`)).stdout.split("\n");
    expect(BigInt(second)).toBeGreaterThan(BigInt(first));
    expect(BigInt(first)).toBeGreaterThan(BigInt(values.get("BATON_FENCING_TOKEN") ?? "0"));
  });

  test("holders of a permit have a slot each, which baton who shows; a lock inside it has none", async () => {
    const script = "echo $BATON_LOCK_SLOT; touch slot$BATON_LOCK_SLOT; while [ ! -e go ]; do sleep 0.05; done";
    const holders = session.start(`for n in 1 2 3; do "$baton" lock -q -N 3 gpu -- sh -c '${script}' & done; wait`);
    for (const slot of [0, 1, 2]) await session.made(`slot${slot}`);
    const who = await session.run('"$baton" who -q gpu');
    expect([...who.stdout.matchAll(/permit, slot \d/g)].map(String)).toEqual([0, 1, 2].map((n) => `permit, slot ${n}`));
    const json = JSON.parse((await session.run('"$baton" who -q --json gpu')).stdout);
    expect(json.holders.map(({ slot }: { slot: number }) => slot)).toEqual([0, 1, 2]);
    await session.run("touch go");
    expect((await holders.ended).stdout.split("\n").sort()).toEqual(["", "0", "1", "2"]);
    const nested = `"$baton" lock -q -N 3 gpu -- "$baton" lock -q in -- sh -c 'echo "\${BATON_LOCK_SLOT-none}"'`;
    expect((await session.run(nested)).stdout).toBe("none\n");
  });

  test("several names: taken in sorted order, told in that order", async () => {
    const ended = await session.run(
      `"$baton" lock -q b a b -- sh -c 'echo "$BATON_LOCK_NAME"; "$baton" ls -q --kind lock'`,
    );
    expect(ended.stdout).toMatch(/^a\nb\nKIND +NAME +HOLD +WAIT\nlock +a +1 +0\nlock +b +1 +0\n$/);
  });

  test("credentials are not among it, unless --pass-auth is given", async () => {
    const env = { BATON_AUTH_CREDENTIALS: "digest:ann:secret", BATON_TLS_PASSPHRASE: "" };
    const print = `sh -c 'echo "[$BATON_AUTH_CREDENTIALS]"'`;
    expect((await session.run(`"$baton" lock -q c -- ${print}`, env)).stdout).toBe("[]\n");
    expect((await session.run(`"$baton" lock -q --pass-auth c -- ${print}`, env)).stdout).toBe("[digest:ann:secret]\n");
  });
});

describe("the status report", () => {
  test("says what an exit code can only hint at", async () => {
    const ended = await session.run(
      `"$baton" lock -q --status-fd 9 --status-file "$dir/status" r -- sh -c 'exit 75' 9>"$dir/fd"; echo $?`,
    );
    expect(ended.stdout).toBe("75\n");
    expect(session.read("fd")).toBe(session.read("status"));
    const report = JSON.parse(session.read("status"));
    expect(report).toMatchObject({
      version: 1,
      command: "lock",
      names: ["r"],
      reason: "command_exited",
      exit_code: 75,
      signal: null,
      command_status: { code: 75, signal: null },
      message: null,
    });
    expect(report.fencing_tokens).toEqual([expect.stringMatching(/^\d+$/)]);
    expect(report.waited_ms).toBeGreaterThanOrEqual(0);
    expect(report.held_ms).toBeGreaterThanOrEqual(0);
  });

  test("a busy lock and a missing command are told apart from a command's own ending", async () => {
    await session.run('"$baton" lock -q --status-file "$dir/missing" r -- ./nothing');
    expect(JSON.parse(session.read("missing"))).toMatchObject({
      reason: "command_not_found",
      exit_code: 127,
      command_status: null,
    });
    await session.run(`"$baton" lock -q r -- "$baton" lock -q -n --status-file "$dir/nested" r -- true`);
    expect(JSON.parse(session.read("nested"))).toMatchObject({ reason: "usage", exit_code: 64, fencing_tokens: null });
  });
});

describe("signals", () => {
  let server: RunningBackend;
  beforeAll(async () => void (server = await keeper.start()));
  afterAll(() => server.close());

  for (const signal of ["SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT"] as const) {
    test(`${signal} while waiting: out of the queue within a second, no command, ended by that signal`, async () => {
      await using own = new BatonSession({ BATON_SERVERS: server.servers, name: `wait-${signal}` });
      const holder = own.start('exec "$baton" lock "$name" -- sh -c "touch held; exec sleep 60"');
      await own.made("held");
      const waiter = own.start('exec "$baton" lock --status-file status "$name" -- touch never');
      const waiting = async () => JSON.parse((await own.run('"$baton" who "$name" --json')).stdout).waiters.length;
      await eventually(async () => await waiting() === 1, { what: "the waiter in the queue" });
      const quiet = new QuietTime();
      waiter.child.kill(signal);
      const ended = await waiter.ended;
      expect(quiet.ms).toBeLessThan(3000);
      expect(ended).toMatchObject({ code: null, signal });
      expect(await waiting()).toBe(0);
      expect(JSON.parse(own.read("status"))).toMatchObject({ reason: "stopped_by_signal", signal, exit_code: null });
      holder.child.kill("SIGTERM");
      expect((await holder.ended).signal).toBe("SIGTERM");
      expect((await own.run("ls")).stdout).not.toContain("never");
    });
  }

  test("while the servers are silent, too, a waiting call obeys at once", async () => {
    await using own = new BatonSession({ BATON_SERVERS: server.servers });
    const holder = own.start('exec "$baton" lock silent -- sh -c "touch held; exec sleep 60"');
    await own.made("held");
    const waiter = own.start('exec "$baton" lock silent -- touch never');
    const waiting = async () => JSON.parse((await own.run('"$baton" who silent --json')).stdout).waiters.length;
    await eventually(async () => await waiting() === 1, { what: "the waiter in the queue" });
    server.pause();
    const quiet = new QuietTime();
    waiter.child.kill("SIGTERM");
    const ended = await waiter.ended;
    const quietMs = quiet.ms;
    server.resume();
    expect(ended.signal).toBe("SIGTERM");
    expect(quietMs).toBeLessThan(4000);
    holder.child.kill("SIGTERM");
    await holder.ended;
  });

  test("while the command runs, they are the command's", async () => {
    await using own = new BatonSession({ BATON_SERVERS: server.servers });
    const running = own.start(
      `exec "$baton" lock passed -- sh -c 'trap "echo usr1" USR1; trap "echo bye; exit 5" TERM; touch held; while :; do sleep 0.05; done'`,
    );
    await own.made("held");
    running.child.kill("SIGUSR1");
    await eventually(() => running.stdout().includes("usr1"));
    running.child.kill("SIGTERM");
    expect(await running.ended).toMatchObject({ code: 5, stdout: "usr1\nbye\n" });
  });
});

test("on a terminal a wait shows place, holder and how long, and wipes it away", async () => {
  if (process.platform !== "linux") return; // script(1) takes other words elsewhere
  await using own = new BatonSession({ BATON_SERVERS: "embedded", TERM: "xterm" });
  const holder = own.start('exec "$baton" lock tty -- sh -c "touch held; while [ ! -e go ]; do sleep 0.05; done"');
  await own.made("held");
  const waiter = own.start(`script -qec '"$baton" lock tty -- echo mine' /dev/null`);
  await eventually(() => waiter.stdout().includes("waiting for"), { what: "the line" });
  expect(waiter.stdout()).toStartWith("\r\x1b[K");
  expect(waiter.stdout()).toMatch(/baton: waiting for "tty" for .*, place 1 of 1: held for .* by \S+@/);
  await own.run("touch go");
  const ended = await waiter.ended;
  expect(ended.stdout).toEndWith("\r\x1b[Kmine\r\n");
  expect((await holder.ended).stderr).toBe("");
});

describe("--on-failure", () => {
  const failing = (line: string, command: string) => `"$baton" lock -q job --on-failure '${line}' -- ${command}`;

  test("says what failed when the lock is free again; exit codes and signals stay the command's", async () => {
    const told = await session.run(failing(`"$baton" lock -q -n job -- cat >told`, "sh -c 'echo out; exit 4'"));
    expect(told).toMatchObject({ code: 4, stdout: "out\n", stderr: "" });
    const text = `${session.read("told")}-`.replace(/(?<=^(host|took ms): ).*/gm, "…");
    expect(text).toBe("name: job\nresult: failed\nexit code: 4\nhost: …\ntook ms: …\nreason: exit code 4\n-");
    const why = `echo "$BATON_FAILURE_EXIT_CODE $BATON_FAILURE_WHY"`;
    expect(await session.run(`exec ${failing(why, "sh -c 'kill -TERM $$'")}`)).toMatchObject({
      signal: "SIGTERM",
      stderr: "143 ended by SIGTERM\n",
    });
    expect(await session.run(failing(why, "nosuchcommand"))).toMatchObject({
      code: 127,
      stderr: expect.stringMatching(/^127 Cannot find the command "nosuchcommand"/),
    });
  });

  test("is silent after a success; its own failure is reported", async () => {
    expect(await session.run(failing("echo told", "true"))).toMatchObject({ code: 0, stderr: "" });
    expect(await session.run(failing("exit 9", "false"))).toMatchObject({
      code: 1,
      stderr: 'baton: --on-failure of "job" exited with 9\n',
    });
    expect((await session.run(failing("", "false"))).code).toBe(64);
  });

  test.skipIf(process.platform !== "linux")("leaves the command its terminal", async () => {
    writeFileSync(session.path("terminal.sh"), failing("echo told", "sh -c 'test -t 0 && test -t 1 && exit 5'"));
    const ended = await session.run("script -qec 'sh terminal.sh' /dev/null");
    expect(ended).toMatchObject({ code: 5, stdout: "told\r\n" });
  });
});

test("a binary that an update replaces while it starts goes on with itself", async () => {
  await using fresh = new BatonSession({ BATON_SERVERS: "embedded" });
  // What it then is: a process whose file has no name any more, and that starts a guard and a keeper.
  const script = 'cp "$baton" old; exec 3<old; rm old; /proc/self/fd/3 lock updated -- echo runs';
  expect(await fresh.run(script)).toMatchObject({ code: 0, stdout: "runs\n", stderr: "" });
});

test("an empty environment, as cron's, and a login shell exclude each other", async () => {
  const place = findKeeperLocation({});
  const wasThere = place.dir === null || existsSync(place.dir);
  await using own = new BatonSession();
  const name = `cron-${own.folder.split("/").at(-1)}`;
  try {
    const holder = own.start(
      `exec env -i "$baton" lock -q ${name} -- /bin/sh -c 'touch "$0/held"; exec sleep 60' "$dir"`,
    );
    await own.made("held");
    const login = "-u BATON_KEEPER_DIR -u BATON_STATE_DIR " +
      'HOME="$dir" XDG_RUNTIME_DIR="$dir/run" XDG_STATE_HOME="$dir/state" XDG_CONFIG_HOME="$dir/config" SHELL=/bin/sh';
    const tried = await own.run(`env ${login} sh -lc '"$baton" lock -n -q ${name} -- true'`);
    expect(tried.code).toBe(75);
    holder.child.kill("SIGTERM");
    await holder.ended;
    expect((await own.run(`env ${login} "$baton" lock -n -q ${name} -- true`)).code).toBe(0);
  } finally {
    if (place.dir !== null && !wasThere) {
      await killKeeper(place.dir);
      rmSync(place.dir, { recursive: true, force: true });
    }
  }
});

test("a waiter that was stopped for longer than its session waits again, and gets the lock", async () => {
  await session.run("mkfifo fifo");
  const holder = session.start('"$baton" lock -q slept -- sh -c "touch held; cat fifo"');
  await session.made("held");
  const waiter = session.start('exec "$baton" lock --session-timeout 2s -z embedded slept -- echo mine');
  const waiting = async () => (await session.run('"$baton" ls -q')).stdout.match(/^lock +slept +1 +(\d+)$/m)?.[1];
  await eventually(async () => await waiting() === "1", { what: "the waiter to queue" });
  waiter.child.kill("SIGSTOP");
  await eventually(async () => await waiting() === "0", { withinMs: 20_000, what: "its session to expire" });
  waiter.child.kill("SIGCONT");
  await eventually(async () => await waiting() === "1", { withinMs: 10_000, what: "the waiter to queue again" });
  await session.run("echo >fifo");
  expect(await waiter.ended).toMatchObject({ code: 0, stdout: "mine\n" });
  expect((await waiter.ended).stderr).toContain('the session that waited for "slept" has expired; waiting again');
  await holder.ended;
});

test("a lock that is asked back while its taker waits for the next name ends the call before the command", async () => {
  await session.run("mkfifo gate");
  const other = session.start('"$baton" lock -q second -- sh -c "touch taken; cat gate"');
  await session.made("taken");
  const taker = session.start('exec "$baton" lock -q first second -- echo never');
  const holder = async () => (await session.run('"$baton" who -q first')).stdout.match(/exclusive +([0-9a-f]+)/)?.[1];
  const id = await eventually(holder, { what: "the first lock to be taken" });
  await session.run(`"$baton" break -q first --holder ${id}`);
  expect(await taker.ended).toMatchObject({ code: 80, stdout: "" });
  await session.run("echo >gate");
  await other.ended;
});
