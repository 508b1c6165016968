/** The guard as a process, told by hand what baton tells it. */
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { readFileSync } from "node:fs";
import { childLine, watchLine } from "../../src/cli/guard/guard_state.ts";
import { loadLibc } from "../../src/cli/child/libc.ts";
import { cookieEnvironment } from "../../src/cli/child/cookie.ts";
import { descendantsOf, readProcess } from "../../src/cli/child/process_table.ts";
import { isKeeperProcess, keeperMark } from "../../src/keeper/keeper_process.ts";
import { newGuid } from "../../src/support/guid.ts";
import { eventually } from "../support/eventually.ts";
import { runtimes } from "../support/supervise_run.ts";

setDefaultTimeout(20_000);

/** A command with its cookie, and a guard that was told of it and is at its post. */
async function guarded({ command, deadlineMs, script }: {
  readonly command: readonly string[];
  readonly deadlineMs: number;
  readonly script: string;
}) {
  const cookie = newGuid();
  const env = { ...process.env, ...cookieEnvironment(cookie, undefined) };
  const job = Bun.spawn(["sh", "-c", script], { detached: true, env });
  const guard = Bun.spawn([...command, "__guard"], { stdio: ["pipe", "pipe", "inherit"] });
  const { value } = await guard.stdout.getReader().read();
  expect(new TextDecoder().decode(value)).toBe("ready\n");
  return {
    job,
    guard,
    async tell() {
      const startTicks = readProcess(job.pid)?.startTicks ?? 0;
      guard.stdin.write(
        watchLine(cookie, deadlineMs) + childLine(cookie, { pid: job.pid, ownGroup: true, startTicks }),
      );
      await guard.stdin.flush();
    },
    async [Symbol.asyncDispose]() {
      job.kill("SIGKILL");
      guard.kill("SIGKILL");
      await Promise.all([job.exited, guard.exited]);
    },
  };
}

for (const { name, command } of runtimes) {
  describe(name, () => {
    test("a guard that could not read the deadline before it had passed strikes at once, not that much later", async () => {
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
      guard.kill("SIGCONT");
      await job.exited;
      expect(libc.bootTimeMs() - deadlineMs).toBeLessThan(1000);
      expect(job.signalCode).toBe("SIGKILL");
    });

    test("a keeper that was started inside the job outlives it, and nothing else does", async () => {
      const seconds = 1000 + Math.floor(Math.random() * 1e6) / 1000;
      const script = `env -i ${keeperMark}=1 setsid sleep ${seconds} & env -i setsid sleep ${seconds} & wait`;
      await using run = await guarded({ command, deadlineMs: Number.MAX_SAFE_INTEGER, script });
      const sleepers = () => descendantsOf(run.job.pid).filter((pid) => commandLine(pid) === `sleep\0${seconds}\0`);
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
