/** What the guard does with the lines that have gathered in its pipe while it stood still. */
import { afterEach, expect, test } from "bun:test";
import process from "node:process";
import type { Libc } from "../../../../src/process/libc.ts";
import { GuardLoop } from "../../../../src/process/guard/guard_main.ts";
import { childLine, forgetLine, renewLine, watchLine } from "../../../../src/process/guard/guard_state.ts";
import { OwnProcess, useSystem } from "../../../../src/support/own_process.ts";

const [guard, script] = [10, 20];
const cookie = "c".repeat(32);

let pipe = "";
let nowMs = 0;
let killed: [number, unknown][] = [];
let before: ReturnType<typeof useSystem> | null = null;

afterEach(() => {
  if (before !== null) useSystem(before);
  before = null;
});

/** A guard whose only job is a script that runs; its lease ends at 11 s. */
function guardOfScript(): GuardLoop {
  const missing = () => {
    throw Object.assign(new Error("no such file"), { code: "ENOENT" });
  };
  before = useSystem({
    pid: guard,
    readText: (path) =>
      path === `/proc/${script}/stat`
        ? `${script} (sh) S 1 ${script} ${script} 0 -1 0 0 0 0 0 1 1 0 0 20 0 1 0 7 0\n`
        : path === `/proc/${script}/environ`
        ? `BATON_LOCK_COOKIE=${cookie}\0`
        : missing(),
    list: (path) => path === "/proc" ? [String(guard), String(script)] : missing(),
    readLink: (path) => path === "/proc/self" ? String(guard) : "/bin/sh",
    keepOpen: missing,
    kill: (pid, signal) => {
      if (signal !== 0) killed.push([pid, signal]);
    },
    own: new OwnProcess(),
  });
  [nowMs, killed] = [1000, []];
  const libc = {
    bootTimeMs: () => nowMs,
    write: () => {},
    read(_fd: number, into: Uint8Array) {
      const { read, written } = new TextEncoder().encodeInto(pipe, into);
      pipe = pipe.slice(read);
      return written;
    },
  } as unknown as Libc;
  const loop = new GuardLoop(libc);
  pipe = watchLine(cookie, 11_000) + childLine(cookie, { pid: script, ownGroup: true, startTicks: 7 });
  loop.step(true);
  return loop;
}

/** The renewals of 12 minutes: more than a page. */
function renewals(): string {
  return Array.from({ length: 240 }, (_, at) => renewLine(cookie, 11_000 + 3000 * at)).join("");
}

test.if(process.platform === "linux")(
  "a guard that stood still does not kill a script that has released its lock meanwhile",
  () => {
    const loop = guardOfScript();
    pipe = renewals() + forgetLine(cookie);
    nowMs += 720_000;
    loop.step(true);
    expect(killed).toEqual([]);
  },
);

test.if(process.platform === "linux")(
  "a guard that stood still kills a job whose deadline had passed, also if it was renewed",
  () => {
    const loop = guardOfScript();
    pipe = renewals();
    nowMs += 12_000;
    loop.step(true);
    expect(killed).toContainEqual([script, "SIGKILL"]);
  },
);
