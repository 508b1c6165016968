/**
 * A baton that was killed while its command was being started: the guard waits until it can tell the command from a
 * copy of baton.
 */
import { expect, test } from "bun:test";
import process from "node:process";
import type { Libc } from "../../../../../src/base/process/libc.ts";
import { JobKiller } from "../../../../../src/base/process/guard/kill_job.ts";
import { ChildProcessRegistry, useProcessSystem } from "../../../../../src/base/support/own_process.ts";

const guard = 10;
const copy = 20;
const forkedWithoutExec = 0x40;

/** A machine with a guard and a copy of baton, which becomes the command at `becomesAtMs`, or never. */
function machine(becomesAtMs: number) {
  let nowMs = 0;
  let isDead = false;
  const isCommand = () => nowMs >= becomesAtMs;
  const missing = () => {
    throw Object.assign(new Error("no such file"), { code: "ENOENT" });
  };
  const stat = (pid: number, flags: number) =>
    `${pid} (x) S 1 ${pid} ${pid} 0 -1 ${flags} 0 0 0 0 1 1 0 0 20 0 1 0 7 0\n`;
  const files = (path: string): string | undefined => {
    if (path === `/proc/${guard}/stat`) return stat(guard, 0);
    if (path === "/proc/self/mountinfo") return "22 27 0:21 / /proc rw - proc proc rw\n";
    if (path === "/proc/self/status") return "CapEff:\t0000000000000000\n";
    if (isDead || !path.startsWith(`/proc/${copy}/`)) return path.endsWith("/environ") ? "A=1\0" : undefined;
    if (path.endsWith("/stat")) return stat(copy, isCommand() ? 0 : forkedWithoutExec);
    if (path.endsWith("/environ")) return isCommand() ? "BATON_LOCK_COOKIE=mine\0" : "A=1\0";
    return undefined;
  };
  const before = useProcessSystem({
    pid: guard,
    readText: (path) => files(path) ?? missing(),
    list: (path) => path === "/proc" ? [String(guard), ...isDead ? [] : [String(copy)]] : missing(),
    readLink: (path) =>
      path === "/proc/self" ? String(guard) : path.endsWith(`/${copy}/exe`) && isCommand() ? "/bin/job" : "/bin/baton",
    keepOpen: missing,
    kill: (pid, signal) => {
      if (pid !== copy || isDead) missing();
      isDead ||= signal === "SIGKILL";
    },
    own: new ChildProcessRegistry(),
  });
  const libc = { bootTimeMs: () => nowMs } as Libc;
  return {
    kill: new JobKiller("mine", { child: null, deadlineMs: 0, nodes: [], known: [], isLeft: false }, {
      libc,
      group: null,
    }),
    isDead: () => isDead,
    now: () => nowMs,
    pass: () => void (nowMs += 10),
    [Symbol.dispose]: () => void useProcessSystem(before),
  };
}

test.if(process.platform === "linux")("a command that becomes itself seconds after baton was killed is killed", () => {
  using at = machine(3000);
  let result = at.kill.killOnce();
  for (; result === null && at.now() < 20_000; result = at.kill.killOnce()) at.pass();
  expect(at.isDead()).toBe(true);
  expect(result).toMatchObject({ isCertain: true });
  expect(at.now()).toBeLessThan(3100);
});

test.if(process.platform === "linux")("a copy that never becomes a command is a doubt in the end", () => {
  using at = machine(Infinity);
  let result = at.kill.killOnce();
  for (; result === null && at.now() < 20_000; result = at.kill.killOnce()) at.pass();
  expect(at.isDead()).toBe(false);
  expect(result).toEqual({ clearedAtMs: Infinity, isCertain: false });
});
