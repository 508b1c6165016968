/** One health check as processes: started in a group of its own, and dead with everything it started when it is over. */
import { onAbort } from "../../support/abort.ts";
import type { Clock } from "../../support/clock.ts";
import { sleep } from "../../support/deadline.ts";
import { newGuid } from "../../support/guid.ts";
import { cookieEnvironment, cookieVariable } from "../proc/process_marker.ts";
import type { CheckHealth } from "./health_watch.ts";
import { JobProcesses } from "../proc/job_processes.ts";
import { shellLine } from "../spawn/shell_line.ts";
import { childEnvironment, spawnChild } from "../spawn/spawn_child.ts";

export interface ShellCheckOptions {
  readonly line: string;
  /** The job's, its cookie included: whatever ends the job ends a check too. */
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly clock: Clock;
}

const lookEveryMs = 5;
/** What cannot be killed by then is left to the end of the job, which waits for it. */
const killMsMax = 1000;

export function shellCheck({ line, env, clock }: ShellCheckOptions): CheckHealth {
  return async (signal) => {
    const cookie = newGuid();
    const started = await spawnChild(shellLine(line), {
      env: childEnvironment({ ...env, ...cookieEnvironment(cookie, env[cookieVariable]) }),
      ownGroup: true,
      descriptors: [],
      hangUpIgnored: false,
      signal,
    });
    if (started.kind === "cancelled") return null;
    if (started.kind !== "started") return `could not be started: ${started.message}`;
    const processes = new JobProcesses({ pid: started.pid, ownGroup: true, cookie, libc: null, adopts: false });
    const off = onAbort(signal, () => processes.signalAll("SIGKILL"));
    const end = await started.ended;
    off();
    processes.leaderEnded();
    await sweep(processes, clock);
    switch (end.kind) {
      case "exited":
        return end.code === 0 ? null : `exited with ${end.code}`;
      case "signaled":
        return `was ended by ${end.signal}`;
      case "unreadable":
        return `has ended, and how is not known: ${end.why}`;
    }
  };
}

async function sweep(processes: JobProcesses, clock: Clock): Promise<void> {
  const lastMs = clock.now() + killMsMax;
  while (processes.alive().length > 0 && clock.now() < lastMs) {
    processes.signalAll("SIGKILL");
    await sleep(clock, lookEveryMs);
  }
}
