/** How a command starts, or does not, and how it gets the terminal. */
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { eventually } from "../../support/eventually.ts";
import { runtimes, SuperviseRun } from "../../support/supervise_run.ts";

setDefaultTimeout(20_000);

const lateStop = join(import.meta.dir, "../../fixtures/late_stop.ts");

for (const runtime of runtimes) {
  describe(runtime.name, () => {
    const outcomeOf = async (command: string, text = "", mode = 0o755) => {
      await using run = new SuperviseRun(runtime, [command, "x", "y"], { files: { file: { text, mode } } });
      return (await run.report()).outcome;
    };

    test("what is not there is not found", async () => {
      expect(await outcomeOf("/no/such/command")).toMatchObject({ kind: "not_found", pid: null });
      expect(await outcomeOf("no-such-command")).toMatchObject({ kind: "not_found" });
      expect(await outcomeOf("{}/file", "#!/no/such/interpreter\n")).toMatchObject({ kind: "not_found" });
    });

    test("what is there and cannot be run is not executable", async () => {
      expect(await outcomeOf("{}/file", "#!/bin/sh\n", 0o644)).toMatchObject({ kind: "not_executable", pid: null });
      expect(await outcomeOf("{}")).toMatchObject({ kind: "not_executable" });
      expect(await outcomeOf("{}/file/below")).toMatchObject({ kind: "not_executable" });
    });

    test("a script without a first line is given to the shell, as env does", async () => {
      const outcome = await outcomeOf("{}/file", '[ "$1 $2" = "x y" ] && exit 6');
      expect(outcome).toMatchObject({ kind: "exited", code: 6 });
    });

    test("a signal is heard at every moment of the start: no command is started, or it gets the signal", () => {
      const { stdout } = Bun.spawnSync([...runtime.command.slice(0, -1), lateStop]);
      expect(Object.keys(JSON.parse(stdout.toString()) as object).sort()).toEqual(["SIGUSR1", "cancelled"]);
    });

    test("under nohup the command ignores the hang-up, and gets its words as they are", async () => {
      expect(await underNohup(runtime, "SIGTERM")).toEqual({ ignored: "1", words: "a  b,$HOME" });
    });

    test("on a terminal the command keeps it, and Ctrl-C reaches it once", async () => {
      const program = "trap 'echo int >> {}/log; exit 3' INT; tty > /dev/tty; : < /dev/tty && echo ok > {}/tty; " +
        "ps -o stat= -p $$ > {}/stat; touch {}/ready; while :; do sleep 0.02; done";
      await using run = new SuperviseRun(runtime, program, {
        foreground: "auto",
        wrap: 'for a; do printf "\'%s\' " "$(printf %s "$a" | sed "s/\'/\'\\\\\\\\\'\'/g")"; done > {}/command; ' +
          'mkfifo {}/keys; exec 8<>{}/keys; exec script -qec "$(cat {}/command)" /dev/null < {}/keys',
      });
      await run.ready();
      expect(run.text("tty")).toBe("ok\n");
      expect(run.text("stat")).toContain("+"); // in the terminal's foreground group
      writeFileSync(run.path("keys"), "\x03");
      expect((await run.report()).outcome).toMatchObject({ kind: "exited", code: 3 });
      expect(run.text("log")).toBe("int\n");
    });
  });
}

const [bun = { command: [] }, deno = { command: [] }] = runtimes;

async function underNohup(runtime: { readonly command: readonly string[] }, stopSignal: NodeJS.Signals) {
  const command = ["sh", "-c", 'grep SigIgn: /proc/self/status; echo "$0,$1"', "a  b", "$HOME"];
  await using run = new SuperviseRun(runtime, command, { stopSignal, wrap: 'exec nohup "$@"' });
  const [ignored, words] = (await run.output()).split("\n");
  return { ignored: ignored?.at(-1), words };
}

test("under nohup the hang-up is not ignored by a command that is to be stopped by it", async () => {
  expect(await underNohup(bun, "SIGHUP")).toMatchObject({ ignored: "0" });
});

test("without a terminal the command leads a session of its own", async () => {
  await using run = new SuperviseRun(bun, 'read -r line < /proc/$$/stat; echo "$$ $line"', { foreground: "auto" });
  const [pid, ...stat] = (await run.output()).trim().split(" ");
  expect([stat[4], stat[5]]).toEqual([pid, pid]);
});

test("in the foreground, too, everything the command started dies with baton", async () => {
  const program = "trap '' TERM HUP INT; sleep 1000 & setsid sleep 1000 & touch {}/ready; wait";
  await using run = new SuperviseRun(bun, program, { foreground: true });
  await run.ready();
  await eventually(() => run.processes((line) => line === "sleep 1000").length === 2);
  run.process.kill("SIGKILL");
  await eventually(() => run.processes().length === 0, { withinMs: 1000 });
});

test("in the foreground a command that ignores the stop signal is dead at the lease end, with children", async () => {
  const program = "trap '' TERM; sleep 1000 & setsid sleep 1000 & while :; do sleep 1000; done";
  await using run = new SuperviseRun(bun, program, { foreground: true, sessionTimeoutMs: 2000, leaseMs: 800 });
  const { outcome, quietMs } = await run.report();
  expect(outcome).toMatchObject({ kind: "lost", child: { signal: "SIGKILL" } });
  expect(quietMs).toBeLessThan(1300);
  expect(run.processes()).toEqual([]);
});

test.each([{ runtime: bun, signal: 9 }, { runtime: deno, signal: 40 }])(
  "a guard that is killed is replaced, and the new one guards: $runtime.name, signal $signal",
  async ({ runtime, signal }) => {
    await using run = new SuperviseRun(runtime, "trap '' TERM; touch {}/ready; while :; do sleep 0.1; done");
    await run.ready();
    const guards = () => run.processes((line) => line.includes("__guard"));
    const [first = 0] = await eventually(() => guards().length === 1 && guards());
    process.kill(first, signal);
    await eventually(() => guards().length === 1 && guards()[0] !== first);
    // The command line appears before the guard has been told: what it then does says that it has been.
    await eventually(() => existsSync(`/proc/${guards()[0]}/comm`) && comm(guards()[0] ?? 0) === "lock-guard");
    run.process.kill("SIGKILL");
    await eventually(() => run.processes().length === 0, { withinMs: 1500 });
  },
);

test("neither name nor command line of the guard says baton, and the stop signals do not end it", async () => {
  await using run = new SuperviseRun(bun, "touch {}/ready; until [ -e {}/go ]; do sleep 0.02; done");
  await run.ready();
  const [guard = 0] = run.processes((line) => line.includes("__guard"));
  expect(comm(guard)).toBe("lock-guard");
  expect(run.processes((line) => line.startsWith("lock-guard "))).toEqual([guard]);
  for (const signal of ["SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT"] as const) process.kill(guard, signal);
  await Bun.write(run.path("go"), "");
  expect((await run.report()).events).toEqual([]);
});

test("a supervision inside a supervision dies with the outer one, and carries both cookies", async () => {
  const inner =
    `${
      bun.command.map((word) => `'${word}'`).join(" ")
    } '{"report":"{}/inner"}' sh -c 'echo $BATON_LOCK_COOKIE > {}/cookie; ` +
    'touch {}/ready; trap "" TERM; while :; do sleep 0.05; done\'';
  await using run = new SuperviseRun(bun, inner);
  await run.ready();
  expect(run.text("cookie")).toMatch(/^[0-9a-f]{32}:[0-9a-f]{32}\n$/);
  run.process.kill("SIGKILL");
  await eventually(() => run.processes().length === 0, { withinMs: 1500 });
});

function comm(pid: number): string {
  return new TextDecoder().decode(Bun.spawnSync(["cat", `/proc/${pid}/comm`]).stdout).trim();
}
