/** The guard as a process, told by hand what baton tells it. */
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { readFileSync } from "node:fs";
import { childLine, watchLine } from "../../src/cli/guard/guard_state.ts";
import { loadLibc } from "../../src/cli/child/libc.ts";
import { cookieEnvironment } from "../../src/cli/child/cookie.ts";
import { readProcess } from "../../src/cli/child/process_table.ts";
import { newGuid } from "../../src/support/guid.ts";
import { eventually } from "../support/eventually.ts";
import { runtimes } from "../support/supervise_run.ts";

setDefaultTimeout(20_000);

for (const { name, command } of runtimes) {
  describe(name, () => {
    test("a guard that could not read the deadline before it had passed strikes at once, not that much later", async () => {
      const libc = await loadLibc();
      if (libc === null) throw new Error("libc cannot be called here");
      const cookie = newGuid();
      const environment = { ...process.env, ...cookieEnvironment(cookie, undefined) };
      const job = Bun.spawn(["sleep", "1000"], { detached: true, env: environment });
      const startTicks = readProcess(job.pid)?.startTicks ?? 0;
      const guard = Bun.spawn([...command, "__guard"], { stdio: ["pipe", "pipe", "inherit"] });
      try {
        const reader = guard.stdout.getReader();
        expect(new TextDecoder().decode((await reader.read()).value)).toBe("ready\n");
        guard.kill("SIGSTOP");
        await eventually(() => / T /.test(readFileSync(`/proc/${guard.pid}/stat`, "latin1")), {
          what: "the guard to be stopped",
        });
        const deadlineMs = libc.bootTimeMs() + 2000;
        guard.stdin.write(watchLine(cookie, deadlineMs) + childLine({ pid: job.pid, ownGroup: true, startTicks }));
        await guard.stdin.flush();
        await eventually(() => libc.bootTimeMs() > deadlineMs);
        expect(job.exitCode).toBeNull();
        guard.kill("SIGCONT");
        await job.exited;
        expect(libc.bootTimeMs() - deadlineMs).toBeLessThan(1000);
        expect(job.signalCode).toBe("SIGKILL");
      } finally {
        job.kill("SIGKILL");
        guard.kill("SIGKILL");
        await Promise.all([job.exited, guard.exited]);
      }
    });
  });
}
