/** What the guard does with the lines that have gathered in its pipe while it stood still. */
import { afterEach, expect, test } from "bun:test";
import process from "node:process";
import type { Libc } from "../../../../../src/base/process/libc.ts";
import { GuardLoop } from "../../../../../src/base/process/guard/guard_main.ts";
import {
  guardChildLine,
  guardForgetLine,
  guardGiveUpLine,
  guardRenewLine,
  guardSessionLine,
  guardWatchLine,
} from "../../../../../src/base/process/guard/guard_state.ts";
import { ChildProcessRegistry, useProcessSystem } from "../../../../../src/base/support/own_process.ts";

const guard = 10;
const script = 20;
const owner = 7;
const cookie = "c".repeat(32);

let pipe = "";
let onRead = () => {};
let nowMs = 0;
let killed: [number, unknown][] = [];
let said: string[] = [];
let parent = guard;
let isScriptAlive = true;
let isGroupHidden = false;
let ownerState = "S";
let before: ReturnType<typeof useProcessSystem> | null = null;

afterEach(() => {
  if (before !== null) useProcessSystem(before);
  before = null;
});

/** A guard whose only job is a script that runs; its lease ends at 11 s. */
function guardOfScript(): GuardLoop {
  const missing = () => {
    throw Object.assign(new Error("no such file"), { code: "ENOENT" });
  };
  const real = useProcessSystem({
    pid: guard,
    readText: (path) =>
      path === `/proc/${owner}/stat`
        ? `${owner} (baton) ${ownerState} 1 ${owner} ${owner} 0 -1 0 0 0 0 0 1 1 0 0 20 0 1 0 7 0\n`
        : path === "/proc/self/mountinfo"
        ? `22 27 0:21 / /proc rw,relatime - proc proc rw${isGroupHidden ? ",hidepid=2" : ""}\n`
        : !isScriptAlive
        ? missing()
        : path === `/proc/${script}/stat`
        ? `${script} (sh) S 1 ${script} ${script} 0 -1 0 0 0 0 0 1 1 0 0 20 0 1 0 7 0\n`
        : path === `/proc/${script}/environ`
        ? `BATON_LOCK_COOKIE=${cookie}\0`
        : missing(),
    list: (path) => path === "/proc" ? [String(guard), ...isScriptAlive ? [String(script)] : []] : missing(),
    readLink: (path) => path === "/proc/self" ? String(guard) : "/bin/sh",
    keepOpen: missing,
    kill: (pid, signal) => {
      if (pid === -script && isGroupHidden) throw Object.assign(new Error("not permitted"), { code: "EPERM" });
      if (Math.abs(pid) === script && !isScriptAlive) throw Object.assign(new Error("no process"), { code: "ESRCH" });
      if (signal !== 0) killed.push([pid, signal]);
    },
    own: new ChildProcessRegistry(),
  });
  before ??= real;
  nowMs = 1000;
  killed = [];
  said = [];
  parent = owner;
  isScriptAlive = true;
  isGroupHidden = false;
  ownerState = "S";
  const libc = {
    bootTimeMs: () => nowMs,
    write: (fd: number, bytes: Uint8Array) => fd === 2 && said.push(new TextDecoder().decode(bytes)),
    waitWritable: () => true,
    parentPid: () => parent,
    waitReadable: () => pipe !== "" || parent !== owner,
    read(_fd: number, into: Uint8Array) {
      onRead();
      const { read, written } = new TextEncoder().encodeInto(pipe, into);
      pipe = pipe.slice(read);
      return written;
    },
  } as unknown as Libc;
  onRead = () => {};
  const loop = new GuardLoop(libc);
  pipe = guardWatchLine(cookie, 11_000) + guardChildLine(cookie, { pid: script, ownGroup: true, startTicks: 7 });
  loop.step();
  return loop;
}

/** Renewals every 3 s: more than one read takes. */
const renewals = Array.from({ length: 6000 }, (_, at) => guardRenewLine(cookie, 11_000 + 3000 * at)).join("");

test.if(process.platform === "linux")(
  "a guard that stood still does not kill a script that has released its lock meanwhile",
  () => {
    const loop = guardOfScript();
    pipe = renewals + guardForgetLine(cookie);
    nowMs += 6000 * 3000 + 20_000;
    loop.step();
    expect(killed).toEqual([]);
  },
);

test.if(process.platform === "linux")(
  "a guard that stood still kills a job whose last renewal is over, and no job that was renewed in time",
  () => {
    const loop = guardOfScript();
    pipe = renewals;
    nowMs += 6000 * 3000;
    loop.step();
    expect(killed).toEqual([]);
    nowMs += 8000;
    loop.step();
    expect(killed).toContainEqual([script, "SIGKILL"]);
  },
);

test.if(process.platform === "linux")(
  "a guard that stands still between the clock and the pipe takes the deadline for later, and looks again immediately",
  () => {
    const loop = guardOfScript();
    onRead = () => nowMs = 12_000;
    pipe = "ask\n";
    expect(loop.step()).toEqual({ kind: "wait", forMs: 0 });
    expect(killed).toEqual([]);
    loop.step();
    expect(killed).toContainEqual([script, "SIGKILL"]);
  },
);

const session = { owner, handle: "h" };
const node = "/baton/locks/a/h/x-1";
const stuck = { nodes: [node], what: `cannot be stopped: pid ${script}` };

/** The same guard, which knows of a session; baton has died. */
function orphanedGuard(...lines: string[]): GuardLoop {
  const loop = guardOfScript();
  pipe = guardSessionLine(session) + guardWatchLine(cookie, 11_000, [node]) +
    guardChildLine(cookie, { pid: script, ownGroup: true, startTicks: 7 }) + lines.join("");
  loop.step();
  parent = 1;
  pipe = "";
  return loop;
}

test.if(process.platform === "linux")(
  "a process that lives on keeps the session from a quarter of a second on, without a limit; then the session is ended",
  () => {
    const loop = orphanedGuard();
    expect(loop.step()).toEqual({ kind: "sleep", forMs: 10 });
    nowMs += 200;
    expect(loop.step()).toEqual({ kind: "sleep", forMs: 10 });
    nowMs += 50;
    const says = expect.stringContaining(`cannot be stopped: pid ${script}; its guard keeps the lock`);
    expect(loop.step()).toEqual({ kind: "keep", forMs: 12.5, session, jobs: [stuck], says });
    for (let minutes = 0; minutes < 60; minutes++) {
      nowMs += 60_000;
      expect(loop.step()).toEqual({ kind: "keep", forMs: 1000, session, jobs: [stuck] });
    }
    isScriptAlive = false;
    expect(loop.step()).toEqual({ kind: "sleep", forMs: 10 });
    expect(loop.step()).toEqual({ kind: "end", session });
  },
);

test.if(process.platform === "linux")(
  "another user's process that /proc hides keeps the session while it is in the command's group",
  () => {
    const loop = orphanedGuard();
    isScriptAlive = false;
    isGroupHidden = true;
    loop.step();
    nowMs += 60_000;
    const what = `cannot be stopped: a process of group ${script} that /proc does not show`;
    expect(loop.step()).toMatchObject({ kind: "keep", jobs: [{ nodes: [node], what }] });
    isGroupHidden = false;
    loop.step();
    expect(loop.step()).toMatchObject({ kind: "end" });
  },
);

test.if(process.platform === "linux")(
  "a session that is lost is not kept: the guard gives up after ten seconds",
  () => {
    const loop = orphanedGuard();
    loop.step();
    nowMs += 5000;
    expect(loop.step()).toMatchObject({ kind: "keep" });
    expect(loop.step(true)).toMatchObject({ kind: "sleep" });
    nowMs += 10_000;
    loop.step(true);
    nowMs += 2000;
    expect(loop.step(true)).toEqual({ kind: "end", session: null });
  },
);

test.if(process.platform === "linux")(
  "the session of a job that baton gave up is kept, and then left to expire",
  () => {
    const loop = orphanedGuard(guardGiveUpLine(cookie));
    loop.step();
    nowMs += 250;
    expect(loop.step()).toMatchObject({ kind: "keep", says: "" });
    isScriptAlive = false;
    loop.step();
    loop.step();
    nowMs += 2000;
    expect(loop.step()).toEqual({ kind: "end", session: null });
  },
);

test.if(process.platform === "linux")(
  "while baton is stopped, its guard keeps the session; it lets go when baton runs again",
  () => {
    const loop = orphanedGuard();
    parent = owner;
    nowMs = 11_000;
    expect(loop.step()).toMatchObject({ kind: "wait" });
    ownerState = "T";
    nowMs += 101;
    expect(loop.step()).toEqual({ kind: "keep", forMs: 100, session, jobs: [stuck] });
    ownerState = "S";
    expect(loop.step()).toMatchObject({ kind: "wait" });
  },
);

test.if(process.platform === "linux")(
  "a script is told once why it was killed, which its holder process does too late or never",
  () => {
    for (const why of ["has died", "stood still, or its processes ended too late"]) {
      const loop = orphanedGuard(
        guardChildLine(cookie, { pid: script, ownGroup: false, isScript: true, startTicks: 7 }),
      );
      if (why !== "has died") [parent, nowMs] = [owner, 11_000];
      loop.step();
      expect(killed).toContainEqual([script, "SIGKILL"]);
      expect(said).toEqual([]); // stderr may be a file on a disk that hangs
      isScriptAlive = false;
      for (let steps = 0; steps < 4; steps++) loop.step();
      const text = `baton: the hold of /baton/locks/a is lost: its holder process (pid ${owner}) ${why}; ` +
        "the guard has killed what ran under it\n";
      expect(said).toEqual([text]);
    }
  },
);

test.if(process.platform === "linux")(
  "nothing is said of a command, whose baton the user waits for, and of a script that has ended",
  () => {
    const inForeground = guardChildLine(cookie, { pid: script, ownGroup: false, startTicks: 7 });
    for (const lines of [[], [inForeground]]) {
      const ofCommand = orphanedGuard(...lines);
      ofCommand.step();
      expect(killed).toContainEqual([script, "SIGKILL"]);
      isScriptAlive = false;
      for (let steps = 0; steps < 4; steps++) ofCommand.step();
    }
    const ofScript = orphanedGuard(
      guardChildLine(cookie, { pid: script, ownGroup: false, isScript: true, startTicks: 7 }),
    );
    isScriptAlive = false;
    for (let steps = 0; steps < 4; steps++) ofScript.step();
    expect(said).toEqual([]);
  },
);
