/**
 * The end of a command by a signal, as the parent of baton sees it: as if the command had been started without baton.
 */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { readdirSync } from "node:fs";
import { constants } from "node:os";
import { BatonSession } from "../../support/baton_session.ts";
import { eventually } from "../../support/eventually.ts";
import { PtySession } from "../../support/pty_session.ts";

setDefaultTimeout(60_000);

let session: BatonSession;
beforeAll(() => session = new BatonSession({ BATON_SERVERS: "embedded" }));
afterAll(() => session[Symbol.asyncDispose]());

/** Calls that run one command and pass on its end. The command follows. */
const calls = {
  "lock": '"$baton" lock -q l --',
  "elect": '"$baton" elect -q e --',
  "barrier": '"$baton" barrier -q b -N 1 --',
  "fence run": '"$baton" fence run --store tokens --token 1 --',
} as const;
const names = Object.keys(calls) as (keyof typeof calls)[];
const call = '"$baton" retry-processor call -q --store requests --no-stdin';

describe.each(names)("baton %s", (name) => {
  test.each(["HUP", "INT", "QUIT", "PIPE", "TERM"])("ends by the SIG%s that has ended its command", async (signal) => {
    const ended = await session.run(`ulimit -c 0; exec ${calls[name]} sh -c 'kill -${signal} $$'`);
    expect(ended).toMatchObject({ code: null, signal: `SIG${signal}`, stdout: "", stderr: "" });
  });

  test.each([["KILL", 137], ["SEGV", 139], ["USR1", 138]])("exits with 128 + n after SIG%s", async (signal, code) => {
    const ended = await session.run(`ulimit -c 0; exec ${calls[name]} sh -c 'kill -${signal} $$'`);
    expect(ended).toMatchObject({ code, signal: null, stdout: "", stderr: "" });
  });

  test.each(["SIGINT", "SIGQUIT", "SIGTERM"] as const)(
    "without a terminal, %s to baton alone ends both",
    async (signal) => {
      const up = `${name.replace(" ", "-")}-${signal}`;
      const running = session.start(`ulimit -c 0; exec ${calls[name]} sh -c 'touch ${up}; exec sleep 60'`);
      await session.made(up);
      running.child.kill(signal);
      expect(await running.ended).toMatchObject({ code: null, signal });
    },
  );

  test("passes on the exit code of a command that has caught the signal", async () => {
    const ended = await session.run(`exec ${calls[name]} sh -c 'trap "exit 130" INT; kill -INT $$'`);
    expect(ended).toMatchObject({ code: 130, signal: null });
  });
});

describe("Ctrl-C", () => {
  const loops = {
    ...Object.fromEntries(names.map((name) => [name, `${calls[name]} sh -c "echo runs; exec sleep 60"`])),
    "lock with another stdin": `${calls.lock} sh -c "echo runs; exec sleep 60" </dev/null`,
    "pool": '"$baton" pool -q p --items a -- sh -c "echo runs; exec sleep 60"',
    "retry-processor call": `${call} -- sh -c "echo runs; exec sleep 60"`,
    "ls --watch": '"$baton" ls --watch',
  };
  test.each(Object.keys(loops))("ends a shell's loop around baton %s", async (name) => {
    await using terminal = new PtySession(
      ["bash", "-c", `for turn in 1 2; do echo turn $turn; ${loops[name as keyof typeof loops]}; done; echo AFTER`],
      { env: session.env, cwd: session.folder },
    );
    await terminal.shows(name === "ls --watch" ? "in use below" : "runs");
    terminal.press("\x03");
    expect((await terminal.ended()).ended).toEqual({ signal: constants.signals.SIGINT });
    expect(terminal.output).not.toMatch(/turn 2|AFTER/);
  });
});

test("the session is closed before baton ends by the signal", async () => {
  const running = session.start(`exec ${calls.lock} sh -c 'touch closed; exec sleep 60'`);
  await session.made("closed");
  running.child.kill("SIGTERM");
  expect((await running.ended).signal).toBe("SIGTERM");
  expect((await session.run('"$baton" lock -q -n l -- true')).code).toBe(0);
});

test("the status report says by which signal", async () => {
  await session.run(`exec ${calls.lock.replace("-q", "-q --status-file status")} sh -c 'kill -INT $$'`);
  expect(JSON.parse(session.read("status"))).toMatchObject({
    reason: "command_signaled",
    exit_code: null,
    signal: "SIGINT",
    command_status: { code: null, signal: "SIGINT" },
  });
});

test("baton leaves no core dump of its own", async () => {
  const ended = await session.run(
    `mkdir cores; cd cores; exec bash -c 'ulimit -c unlimited; ${calls.lock} sh -c "ulimit -c 0; kill -QUIT \\$\\$"; echo $?'`,
  );
  expect(ended.stdout).toBe("131\n");
  expect(ended.stderr).toContain("Quit");
  expect(ended.stderr).not.toContain("core dumped");
  expect(readdirSync(session.path("cores"))).toEqual([]);
});

test("process 1 of a container, which no signal of its own ends, exits with 128 + n", async () => {
  const unshared = await session.run("unshare --pid --fork --mount-proc true");
  if (unshared.code !== 0) return console.log(`not tested: ${unshared.stderr}`);
  const ended = await session.run(
    `exec unshare --pid --fork --mount-proc sh -c "exec ${calls["fence run"]} sh -c 'kill -TERM \\$\\$'"`,
  );
  expect(ended).toMatchObject({ code: 143, signal: null });
});

test("retry-processor call: an interruption is not stored; a final failure passes the signal on", async () => {
  const interrupted = await session.run(`exec ${call} -- sh -c 'kill -INT $$'`);
  expect(interrupted).toMatchObject({ signal: "SIGINT", stderr: "baton: sh was interrupted; NOT STORED\n" });
  const final = await session.run(`exec ${call} --no-retry-on 143 -- sh -c 'kill -TERM $$'`);
  expect(final).toMatchObject({ code: null, signal: "SIGTERM" });
  const stored = await session.run(`exec ${call} -- sh -c 'kill -TERM $$'`);
  expect(stored).toMatchObject({ code: 75, signal: null });
});

test("pool --drain: the second signal ends the jobs, and baton by the first", async () => {
  const running = session.start(
    `exec "$baton" pool drained --items a --drain -- sh -c 'touch drains; exec sleep 60'`,
  );
  await session.made("drains");
  running.child.kill("SIGINT");
  await eventually(() => running.stderr().includes("no new items are started"));
  running.child.kill("SIGTERM");
  expect(await running.ended).toMatchObject({ code: null, signal: "SIGINT" });
});
