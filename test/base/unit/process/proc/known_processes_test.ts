/**
 * Scans of a process table that changes while it is read: an empty result is certain only if no process can have been
 * missed.
 */
import { afterEach, describe, expect, test } from "bun:test";
import { ProcessesOfScript } from "../../../../../src/coordination/hold/supervise_script.ts";
import { JobProcesses } from "../../../../../src/base/process/proc/job_processes.ts";
import { JobProcessFinder } from "../../../../../src/base/process/proc/known_processes.ts";
import { ChildProcessRegistry, useProcessSystem } from "../../../../../src/base/support/own_process.ts";

const init = 1;
const self = 10;
const older = 15;
const script = 20;
const shell = 30;
const subshell = 31;
const next = 32;
const release = 50;
const copy = 0x40;
const mark = "HOME=/\0BATON_LOCK_COOKIE=mine\0";
const sinceTicks = 8;

interface Row {
  readonly parent: number;
  readonly flags?: number;
  /** Empty: it is in execve. */
  readonly environ?: string;
  readonly ticks?: number;
}

/** A machine whose processes change when a file of /proc is read. */
class Machine {
  readonly rows = new Map<number, Row>([
    [init, { parent: 0, ticks: 0 }],
    [self, { parent: init, ticks: 1 }],
    [script, { parent: init, ticks: 2 }],
  ]);
  /** Called after each read of this file of a process, "PID FILE". */
  readonly onRead = new Map<string, () => void>();
  /** /proc does not show them. */
  readonly hidden = new Set<number>();
  readonly #before = useProcessSystem({
    pid: self,
    readText: (path) => this.#read(path),
    list: (path) => this.#list(path),
    readLink: (path) => path === "/proc/self" ? String(self) : "/bin/sh",
    keepOpen: () => this.#missing(),
    kill: (pid) => {
      if (!this.rows.has(pid)) throw Object.assign(new Error("no such process"), { code: "ESRCH" });
    },
    own: new ChildProcessRegistry(),
  });

  #list(path: string): string[] {
    if (path === "/proc") return [...this.rows.keys()].filter((pid) => !this.hidden.has(pid)).map(String);
    const [, , pid = "", file] = path.split("/");
    return file === "task" && this.rows.has(Number(pid)) ? [pid] : this.#missing();
  }

  #read(path: string): string {
    const [, , pid = "", file = ""] = path.split("/");
    const row = this.rows.get(Number(pid));
    if (row === undefined || this.hidden.has(Number(pid))) return this.#missing();
    const text = this.#textOf(Number(pid), row, file);
    this.onRead.get(`${pid} ${file}`)?.();
    return text;
  }

  #textOf(pid: number, { parent, flags = 0, environ = "HOME=/\0", ticks = 9 }: Row, file: string): string {
    switch (file) {
      case "stat": {
        const memory = `${"0 ".repeat(28)}${environ === "" ? 0 : 1}`; // fields 23 to 51
        return `${pid} (sh) S ${parent} 5 5 0 -1 ${flags} 0 0 0 0 1 1 0 0 20 0 1 0 ${ticks} ${memory}\n`;
      }
      case "task":
        return [...this.rows].filter(([, row]) => row.parent === pid).map(([child]) => `${child} `).join("");
      case "cmdline":
        return "sh\0";
      case "environ":
        return environ;
      default:
        return this.#missing();
    }
  }

  #missing(): never {
    throw Object.assign(new Error("no such file"), { code: "ENOENT" });
  }

  [Symbol.dispose](): void {
    useProcessSystem(this.#before);
  }
}

let machine: Machine;
afterEach(() => machine[Symbol.dispose]());

/** The script has ended, and what is left of it is searched for. */
function search() {
  machine = new Machine();
  const { rows, onRead } = machine;
  rows.delete(script);
  return { rows, onRead, known: new JobProcessFinder("mine", { pid: script, startTicks: 2 }, sinceTicks) };
}

const program = (parent: number): Row => ({ parent, environ: mark });

test("a copy whose parent lives may have left a child when it has ended at the next look", () => {
  const { rows, onRead, known } = search();
  rows.set(shell, { parent: init });
  rows.set(subshell, { parent: shell, flags: copy });
  expect(known.find(null)).toMatchObject({ alive: [], isCertain: false });
  // It forks and ends when it is listed and not wholly read.
  onRead.set(`${subshell} environ`, () => {
    rows.delete(subshell);
    rows.set(next, program(init));
  });
  expect(known.find(null)).toMatchObject({ alive: [], isCertain: false });
  expect(known.find(null)).toMatchObject({ alive: [next] });
});

test("a copy whose parent lives, and that is there at two looks, is none of the job's", () => {
  const { rows, known } = search();
  rows.set(shell, { parent: init });
  rows.set(subshell, { parent: shell, flags: copy });
  expect(known.find(null).isCertain).toBe(false);
  expect(known.find(null)).toMatchObject({ alive: [], isCertain: true });
});

describe("a copy that becomes a program is found", () => {
  const { length } = ["environ", "stat", "environ again"];
  for (let reads = 1; reads <= length; reads++) {
    test(`when its execve is over after ${reads} reads`, () => {
      const { rows, onRead, known } = search();
      rows.set(subshell, { parent: init, flags: copy });
      let left = reads;
      const onAny = () => --left === 0 && void rows.set(subshell, program(init));
      for (const file of ["environ", "stat"]) onRead.set(`${subshell} ${file}`, onAny);
      expect(known.findCertain()).toMatchObject({ alive: [subshell] });
    });
  }

  test("when its new environment does not exist yet", () => {
    const { rows, onRead, known } = search();
    rows.set(subshell, { parent: init, flags: copy });
    let reads = 0;
    onRead.set(`${subshell} environ`, () => {
      rows.set(subshell, ++reads === 1 ? { parent: init, environ: "" } : program(init));
    });
    expect(known.findCertain()).toMatchObject({ alive: [subshell] });
  });

  test("when its parent has ended meanwhile", () => {
    const { rows, onRead, known } = search();
    rows.set(shell, { parent: init, flags: copy });
    rows.set(subshell, { parent: shell, flags: copy });
    onRead.set(`${shell} stat`, () => {
      if (!rows.delete(shell)) return;
      rows.set(subshell, { parent: init, environ: "" });
    });
    expect(known.findCertain()).not.toMatchObject({ alive: [], isCertain: true });
  });

  test("when its execve takes long", () => {
    const { rows, known } = search();
    rows.set(subshell, { parent: init, environ: "" });
    expect([known.find(null).isCertain, known.find(null).isCertain]).toEqual([false, false]);
    rows.set(subshell, program(init));
    expect(known.find(null)).toMatchObject({ alive: [subshell] });
  });
});

test("one that ends while it is asked whether it is wanted is searched for again", () => {
  const { rows, known } = search();
  rows.set(subshell, program(init));
  const wanted = (pid: number) => {
    if (pid === subshell) {
      rows.delete(subshell);
      rows.set(next, program(init));
    }
    return rows.has(pid);
  };
  expect(known.findCertain(null, wanted)).toMatchObject({ alive: [next] });
});

test("a process that forks and ends at any moment of a search leaves no certain result without its child", () => {
  for (let reads = 1; reads <= 12; reads++) {
    const { rows, onRead } = search();
    rows.set(subshell, program(init));
    let left = reads;
    onRead.set(`${subshell} stat`, () => {
      if (--left > 0) return;
      rows.delete(subshell);
      rows.set(next, program(init));
    });
    const job = new JobProcesses({ pid: script, ownGroup: false, cookie: "mine", libc: null, adopts: false });
    job.commandEnded();
    const alive = job.alive();
    expect({ reads, isOverlooked: alive.length === 0 && !job.isUndecided() }).toEqual({ reads, isOverlooked: false });
    machine[Symbol.dispose]();
  }
});

test("the holder process of another hold, seen between its fork and its execve, is none of the job's", () => {
  const { rows, known } = search();
  rows.set(script, { parent: init, ticks: 2 });
  rows.set(shell, program(script));
  rows.set(next, { ...program(shell), flags: copy });
  known.rememberDescendants();
  rows.delete(shell);
  rows.set(next, { parent: init, environ: "BATON_HOLDER_PROCESS=1\0" });
  expect(known.findCertain().alive).not.toContain(next);
});

describe("the processes of a script that holds a lock", () => {
  function holding() {
    machine = new Machine();
    const { rows, onRead, hidden } = machine;
    rows.set(script, { parent: init, ticks: 2 });
    rows.set(release, { ...program(script), ticks: 11 });
    const processes = new ProcessesOfScript({
      script: { pid: script, startTicks: 2 },
      cookie: "mine",
      lockTicks: sinceTicks,
    });
    const running = () => processes.finderFor({ pid: release, startTicks: 11 })?.().alive;
    const end = () => {
      rows.delete(script);
      processes.commandEnded();
    };
    return { rows, onRead, hidden, processes, running, end };
  }

  test("a subshell that was seen below the script is found when it has lost its parents", () => {
    const { rows, processes, running, end } = holding();
    rows.set(shell, { parent: script, flags: copy });
    rows.set(subshell, { parent: shell, flags: copy });
    processes.look();
    rows.delete(shell);
    rows.set(subshell, { parent: init, flags: copy });
    expect(running()).toEqual([subshell]);
    rows.delete(release);
    end();
    expect(processes.alive()).toEqual([subshell]);
  });

  test("a subshell of another shell is never the script's", () => {
    const { rows, processes, end } = holding();
    rows.set(subshell, { parent: init, flags: copy });
    processes.look();
    rows.delete(release);
    end();
    expect([processes.alive(), processes.isUndecided()]).toEqual([[], false]);
  });

  test("a release looks again when a process has replaced itself during the look", () => {
    const { rows, onRead, running } = holding();
    rows.set(subshell, program(init));
    onRead.set(`${release} environ`, () => rows.delete(subshell) && void rows.set(next, program(init)));
    expect(running()).toEqual([next]);
  });

  test("what a process under the lock starts after the request is found; the requester's pipe is not", () => {
    const { rows, running } = holding();
    rows.set(shell, program(script));
    rows.set(60, { ...program(shell), ticks: 12 });
    rows.set(61, { ...program(script), ticks: 12 });
    rows.set(62, { ...program(init), ticks: 12 });
    expect(running()?.toSorted()).toEqual([shell, 60, 62]);
  });

  test("the ancestors of a requester that ends meanwhile are left out; those of one that has ended are unknown", () => {
    const { rows, processes } = holding();
    rows.set(shell, { parent: script, flags: copy });
    rows.set(release, { ...program(shell), ticks: 11 });
    const find = processes.finderFor({ pid: release, startTicks: 11 });
    rows.delete(release);
    expect(find?.().alive).toEqual([]);
    expect(processes.finderFor({ pid: release, startTicks: 11 })).toBeNull();
  });

  test("a script that ends leaves alone what is older than the lock, and what that has started since", () => {
    const { rows, processes, running, end } = holding();
    rows.set(older, { parent: script, flags: copy, ticks: 5 });
    rows.set(next, { parent: older, ticks: 12 });
    expect(running()).toEqual([]);
    rows.delete(release);
    end();
    rows.set(older, { parent: init, flags: copy, ticks: 5 });
    expect([processes.alive(), processes.isUndecided()]).toEqual([[], false]);
    processes.signalAll("SIGTERM");
    expect(processes.alive()).toEqual([]);
  });

  test("a script that is stopped takes with it what is older than the lock", () => {
    const { rows, processes, end } = holding();
    rows.set(older, { parent: script, flags: copy, ticks: 5 });
    rows.delete(release);
    processes.signalAll("SIGTERM");
    end();
    rows.set(older, { parent: init, flags: copy, ticks: 5 });
    expect(processes.alive()).toEqual([older]);
  });

  test("what has lost its parents is an orphan; a child of a known process is none, nor what is older", () => {
    const { rows, processes } = holding();
    rows.set(shell, program(script));
    rows.set(next, program(shell));
    rows.set(older, { parent: script, flags: copy, ticks: 5 });
    expect(processes.reapOrphans()).toEqual([]);
    rows.delete(shell);
    rows.set(next, program(init));
    rows.set(60, program(next));
    rows.set(older, { parent: init, flags: copy, ticks: 5 });
    expect(processes.reapOrphans()).toEqual([next]);
    processes.release();
    expect(processes.reapOrphans()).toEqual([]);
  });

  test("a process that /proc hides is not dropped when the script ends", () => {
    const { rows, hidden, processes, end } = holding();
    rows.delete(release);
    rows.set(shell, program(script));
    processes.reapOrphans();
    hidden.add(shell);
    end();
    expect(processes.alive()).toContain(shell);
  });
});
