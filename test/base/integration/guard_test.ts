/** The guard as a process, told by hand what baton tells it. */
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { guardAliveQuestionLine, guardChildLine, guardWatchLine } from "../../../src/base/process/guard/guard_state.ts";
import { loadLibc } from "../../../src/base/process/libc.ts";
import {
  isProcessGroupAlive,
  jobCookieEnvironment,
  listDescendantProcesses,
  readProcess,
} from "../../../src/base/process/proc/process_table.ts";
import { isKeeperProcess } from "../../support/keeper_process.ts";
import { keeperProcessVariable } from "../../../src/base/support/own_process.ts";
import { newGuid } from "../../../src/base/support/guid.ts";
import { eventually } from "../../support/eventually.ts";
import { QuietTime } from "../../support/quiet_time.ts";
import { runtimes } from "../../support/supervise_run.ts";

setDefaultTimeout(20_000);

/** A command with its cookie, and a guard that is at its post. `tell` tells the guard of it. */
async function guarded({ command, deadlineMs, script }: {
  readonly command: readonly string[];
  readonly deadlineMs: number;
  readonly script: string;
}) {
  const cookie = newGuid();
  const env = { ...process.env, ...jobCookieEnvironment(cookie, undefined) };
  const job = Bun.spawn(["sh", "-c", script], { detached: true, env });
  const guard = Bun.spawn([...command, "__guard"], { stdio: ["pipe", "pipe", "inherit"] });
  const reader = guard.stdout.getReader();
  const said = async () => new TextDecoder().decode((await reader.read()).value);
  expect(await said()).toBe("ready\n");
  return {
    job,
    guard,
    async tell() {
      const startTicks = readProcess(job.pid)?.startTicks ?? 0;
      const child = { pid: job.pid, ownGroup: true, startTicks };
      guard.stdin.write(guardWatchLine(cookie, deadlineMs) + guardChildLine(cookie, child));
      await guard.stdin.flush();
    },
    /** Resolves when the guard has read all that it was told. */
    async ask() {
      guard.stdin.write(guardAliveQuestionLine);
      await guard.stdin.flush();
      expect(await said()).toBe("runs\n");
    },
    async [Symbol.asyncDispose]() {
      job.kill("SIGKILL");
      guard.kill("SIGKILL");
      await Promise.all([job.exited, guard.exited]);
    },
  };
}

const lastNumber = "/proc/sys/kernel/ns_last_pid";
const canChooseNumbers = process.getuid?.() === 0 && existsSync(lastNumber);
if (!canChooseNumbers) {
  console.error(`MISSING: ${lastNumber} cannot be written to (root can); no stranger is given the number of a group`);
}

/** A group with this number, which is free. If `isLed` is false, its leader has ended, and another process is left. */
async function startGroup(wanted: number, { isLed }: { readonly isLed: boolean }) {
  // Job control gives it a group. Whoever starts something at the same time is given the number: then again.
  const led = "sleep 1000 >/dev/null & echo $!";
  const left = "(sleep 1000 >/dev/null &) & echo $!; wait";
  const program = `set -m; echo ${wanted - 1} >${lastNumber}; ${isLed ? led : left}`;
  const group = await eventually(async () => {
    const made = Number(await new Response(Bun.spawn(["bash", "-c", program]).stdout).text());
    if (made === wanted) return made;
    process.kill(-made, "SIGKILL");
    return null;
  });
  const isAlive = () => isProcessGroupAlive(group);
  return { isAlive, [Symbol.dispose]: () => void (isAlive() && process.kill(-group, "SIGKILL")) };
}

function kill(pid: number): void {
  if (readProcess(pid) !== null) process.kill(pid, "SIGKILL");
}

for (const { name, command } of runtimes) {
  describe(name, () => {
    test("the guard takes the highest priority the kernel permits, to kill in time on a busy machine", async () => {
      const permitted = Number(
        await new Response(Bun.spawn(["nice", "-n", "-20", "nice"], { stderr: "ignore" }).stdout).text(),
      );
      await using kept = await guarded({ command, deadlineMs: Infinity, script: "exec sleep 1000 >/dev/null" });
      const [, fields = ""] = readFileSync(`/proc/${kept.guard.pid}/stat`, "latin1").split(") ");
      expect(Number(fields.split(" ")[16])).toBe(permitted);
    });

    test.skipIf(!canChooseNumbers).each([{ isLed: true }, { isLed: false }])(
      "a group that was given the number of the command's is not struck, whether it is led ($isLed); the rest of the job is",
      async ({ isLed }) => {
        // Its leader ends, and what it has started is in a session of its own. Others have used many numbers.
        const usesNumbers = `echo $((($$ + 5000) % $(cat /proc/sys/kernel/pid_max))) >${lastNumber}`;
        const script = `setsid sleep 1000 >/dev/null & ${usesNumbers}; echo $!; kill -STOP $$`;
        await using run = await guarded({ command, deadlineMs: Number.MAX_SAFE_INTEGER, script });
        const { job, guard } = run;
        const daemon = Number(new TextDecoder().decode((await job.stdout.getReader().read()).value));
        using _daemon = { [Symbol.dispose]: () => kill(daemon) };
        expect(readProcess(daemon)?.dead).toBe(false);
        await run.tell();
        await eventually(() => readProcess(job.pid)?.isStopped, { what: "the script to stop" });
        // It looks at the group once a second.
        const toldMs = performance.now();
        await eventually(() => performance.now() > toldMs + 1000);
        for (const _ of [1, 2]) await run.ask();
        job.kill("SIGCONT");
        expect(await job.exited).toBe(0);
        using strangers = await startGroup(job.pid, { isLed });
        expect([strangers.isAlive(), readProcess(job.pid) !== null]).toEqual([true, isLed]);
        await guard.stdin.end(); // as when baton is killed
        await guard.exited;
        expect(readProcess(daemon)?.dead ?? true).toBe(true);
        expect(strangers.isAlive()).toBe(true);
      },
    );

    test("a guard that reads the deadline after it has passed strikes immediately, not that much later", async () => {
      const libc = await loadLibc();
      if (libc === null) throw new Error("libc cannot be called here");
      const deadlineMs = libc.bootTimeMs() + 2000;
      await using run = await guarded({ command, deadlineMs, script: "exec sleep 1000" });
      const { job, guard } = run;
      guard.kill("SIGSTOP");
      await eventually(() => / T /.test(readFileSync(`/proc/${guard.pid}/stat`, "latin1")));
      await run.tell();
      await eventually(() => libc.bootTimeMs() > deadlineMs);
      expect(job.exitCode).toBeNull();
      const quiet = new QuietTime();
      guard.kill("SIGCONT");
      await job.exited;
      expect(quiet.ms).toBeLessThan(1000);
      expect(job.signalCode).toBe("SIGKILL");
    });

    test("a keeper that was started inside the job outlives it, and nothing else does", async () => {
      const seconds = 1000 + Math.floor(Math.random() * 1e6) / 1000;
      const script =
        `env -i ${keeperProcessVariable}=1 setsid sleep ${seconds} & env -i setsid sleep ${seconds} & wait`;
      await using run = await guarded({ command, deadlineMs: Number.MAX_SAFE_INTEGER, script });
      const sleepers = () =>
        listDescendantProcesses(run.job.pid).filter((pid) => commandLine(pid) === `sleep\0${seconds}\0`);
      const [keeper = 0, other = 0] = (await eventually(() => sleepers().length === 2 && sleepers()))
        .sort((one) => isKeeperProcess(one) ? -1 : 1);
      try {
        await run.tell();
        await run.guard.stdin.end();
        await run.guard.exited;
        expect([keeper, other].map((pid) => readProcess(pid)?.dead ?? true)).toEqual([false, true]);
        expect(run.job.signalCode).toBe("SIGKILL");
      } finally {
        process.kill(keeper, "SIGKILL");
      }
    });
  });
}

function commandLine(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "latin1");
  } catch {
    return ""; // gone meanwhile
  }
}
