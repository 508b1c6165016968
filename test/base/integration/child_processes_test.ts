/** Finding a job's processes where baton does not take in orphans: by group and cookie. */
import { expect, spyOn, test } from "bun:test";
import { newGuid } from "../../../src/base/support/guid.ts";
import {
  checkFirstThreadHasChild,
  jobCookieEnvironment,
  listChildProcesses,
  listDescendantProcesses,
  listProcesses,
  readProcess,
} from "../../../src/base/process/proc/process_table.ts";
import { JobProcesses } from "../../../src/base/process/proc/job_processes.ts";
import { JobProcessFinder } from "../../../src/base/process/proc/known_processes.ts";
import { loadLibc } from "../../../src/base/process/libc.ts";
import { eventually } from "../../support/eventually.ts";

function start(script: string) {
  const cookie = newGuid();
  const child = Bun.spawn(["sh", "-c", script], {
    detached: true,
    stdio: ["ignore", "ignore", "ignore"],
    env: { ...process.env, ...jobCookieEnvironment(cookie, "outer") },
  });
  const job = new JobProcesses({ pid: child.pid, ownGroup: true, cookie, libc: null, adopts: false });
  return { child, job };
}

test("group and cookie find the background processes, also those in sessions of their own, and end them", async () => {
  const { child, job } = start("sleep 1000 & setsid sleep 1000 & setsid sh -c 'sleep 1000 & wait' & wait");
  await eventually(() => job.alive().length === 5);
  job.signalAll("SIGKILL");
  await child.exited;
  job.commandEnded();
  await eventually(() => {
    job.signalAll("SIGKILL");
    return job.alive().length === 0;
  });
});

test("the group is still signaled after its leader has ended, and a process that left nothing is not", async () => {
  const { child, job } = start("env -i sleep 1000 & exit 0");
  await child.exited;
  job.commandEnded();
  expect(job.alive().length).toBe(1);
  job.signalCommand("SIGTERM");
  await eventually(() => job.alive().length === 0);
});

test("a stop signal is told once: to the group, and apart from it to those outside", async () => {
  const { child, job } = start("trap : TERM; sleep 1000 & setsid sleep 1000 & wait; wait");
  const outside = await eventually(() => {
    const alive = job.alive();
    return alive.length === 3 && alive.find((pid) => readProcess(pid)?.group !== child.pid);
  });
  const kill = spyOn(process, "kill").mockImplementation(() => true);
  job.signalAll("SIGTERM");
  const told = kill.mock.calls.filter(([, signal]) => signal === "SIGTERM").map(([pid]) => pid);
  kill.mockRestore();
  job.signalAll("SIGKILL");
  await child.exited;
  expect(told).toEqual([-child.pid, outside]);
});

test("the table knows children, descendants, groups and the dead", async () => {
  const child = Bun.spawn(["sh", "-c", "sleep 1000 & setsid sh -c 'sleep 1000 & wait' & wait"], { detached: true });
  const below = await eventually(() => {
    const found = listDescendantProcesses(child.pid);
    return found.length === 3 && found;
  });
  expect(listChildProcesses(process.pid)).toContain(child.pid);
  expect(listChildProcesses(child.pid).length).toBe(2);
  expect(listDescendantProcesses(child.pid, (pid) => readProcess(pid)?.group !== child.pid).length).toBe(1);
  expect(
    listProcesses().flatMap((pid) => readProcess(pid) ?? []).filter(({ group, dead }) => group === child.pid && !dead)
      .length,
  ).toBe(2);
  for (const pid of [...below, child.pid]) process.kill(pid, "SIGKILL");
  await child.exited;
  expect(readProcess(child.pid)).toBeNull();
});

test("once a child has told, the look at the first thread alone finds all children, adopted orphans too", async () => {
  const libc = await loadLibc();
  if (libc?.becomeSubreaper() !== true) throw new Error("this system adopts no orphans");
  const child = Bun.spawn(["sh", "-c", "sleep 1000 >/dev/null & echo $!"], { stdout: "pipe" });
  checkFirstThreadHasChild(child.pid);
  expect(listChildProcesses(process.pid)).toContain(child.pid);
  const orphan = Number(await new Response(child.stdout).text());
  await child.exited;
  expect(listChildProcesses(process.pid)).toContain(orphan);
  expect(listChildProcesses(process.pid)).not.toContain(child.pid);
  process.kill(orphan, "SIGKILL");
  await eventually(() => libc.reap(orphan));
  expect(listChildProcesses(process.pid)).not.toContain(orphan);
});

test("a command that was on its way to its program at one look is found at the next", async () => {
  const cookie = newGuid();
  const known = new JobProcessFinder(cookie, null);
  const words = Object.entries(jobCookieEnvironment(cookie, undefined)).map(([name, value]) => `${name}=${value}`);
  const child = Bun.spawn(["sh", "-c", 'read go; exec env "$@" sleep 1000', "sh", ...words], { stdin: "pipe" });
  expect(known.findCertain()).toMatchObject({ alive: [], isCertain: true });
  child.stdin.write("go\n");
  await child.stdin.end();
  await eventually(() => known.findCertain().alive.includes(child.pid), { withinMs: 500 });
  child.kill("SIGKILL");
  await child.exited;
  expect(known.findCertain()).toMatchObject({ alive: [], isCertain: true });
});

test("a process is found behind a thousand dead ones, which are then reaped", async () => {
  const libc = await loadLibc();
  if (libc?.becomeSubreaper() !== true) throw new Error("this system adopts no orphans");
  // Numbers of up to seven digits: some pages of the list of children, at whose end the living one stands.
  const script =
    "i=0; while [ $i -lt 1000 ]; do sh -c ': &'; i=$((i + 1)); done; sh -c 'sleep 1000 >/dev/null & echo $!'";
  const child = Bun.spawn(["sh", "-c", script], { stdout: "pipe" });
  checkFirstThreadHasChild(child.pid);
  const orphan = Number(await new Response(child.stdout).text());
  await child.exited;
  expect(readProcess(orphan)?.dead).toBe(false);
  expect(listChildProcesses(process.pid).length).toBeGreaterThan(1000);
  const job = new JobProcesses({ pid: child.pid, ownGroup: false, cookie: newGuid(), libc, adopts: true });
  job.commandEnded();
  try {
    expect(job.alive()).toEqual([orphan]);
    expect(listChildProcesses(process.pid)).toEqual([orphan]);
  } finally {
    process.kill(orphan, "SIGKILL");
  }
  await eventually(() => job.alive().length === 0);
});
