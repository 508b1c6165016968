/** Scans of a process table that changes while it is read: an empty result is certain only if no process can have been missed. */
import { afterEach, expect, test } from "bun:test";
import { copiesOfScript, ForkedSubshells } from "../../../../src/process/proc/forked_subshells.ts";
import { JobProcesses } from "../../../../src/process/proc/job_processes.ts";
import { KnownProcesses } from "../../../../src/process/proc/known_processes.ts";
import { OwnProcess, useSystem } from "../../../../src/support/own_process.ts";

const [self, script, shell, subshell, next] = [10, 20, 30, 31, 32];
const copy = 0x40;
const startTicks = 7;

interface Row {
  readonly parent: number;
  readonly flags: number;
}

/** A machine whose processes change when a file of /proc is read. */
class Machine {
  readonly rows = new Map<number, Row>([[self, { parent: 1, flags: 0 }], [script, { parent: 1, flags: 0 }]]);
  /** Called after each read of this file of a process, "PID FILE". */
  readonly onRead = new Map<string, () => void>();
  /** Of the processes that carry it. */
  readonly environ = new Map<number, string>();
  readonly #before = useSystem({
    pid: self,
    readText: (path) => this.#read(path),
    list: (path) => path === "/proc" ? [...this.rows.keys()].map(String) : this.#missing(),
    readLink: (path) => path === "/proc/self" ? String(self) : "/bin/sh",
    keepOpen: () => this.#missing(),
    kill: (pid) => {
      if (!this.rows.has(pid)) throw Object.assign(new Error("no such process"), { code: "ESRCH" });
    },
    own: new OwnProcess(),
  });

  #read(path: string): string {
    const [, , pid = "", file = ""] = path.split("/");
    const row = this.rows.get(Number(pid));
    if (row === undefined) return this.#missing();
    const text = this.#textOf(Number(pid), row, file);
    this.onRead.get(`${pid} ${file}`)?.();
    return text;
  }

  #textOf(pid: number, { parent, flags }: Row, file: string): string {
    switch (file) {
      case "stat":
        return `${pid} (sh) S ${parent} 5 5 0 -1 ${flags} 0 0 0 0 1 1 0 0 20 0 1 0 ${startTicks} 0\n`;
      case "cmdline":
        return pid === shell ? "sh\0other.sh\0" : "sh\0nightly.sh\0";
      case "environ":
        return this.environ.get(pid) ?? "HOME=/\0";
      default:
        return this.#missing();
    }
  }

  #missing(): never {
    throw Object.assign(new Error("no such file"), { code: "ENOENT" });
  }

  [Symbol.dispose](): void {
    useSystem(this.#before);
  }
}

let machine: Machine | null = null;
afterEach(() => machine?.[Symbol.dispose]());

/** The script has ended, and what is left of it is searched for. */
function search() {
  machine = new Machine();
  const { rows, onRead } = machine;
  const copies = copiesOfScript(script, 0);
  if (copies === null) throw new Error("the script cannot be read");
  rows.delete(script);
  const known = new KnownProcesses("mine", { pid: script, startTicks });
  return { rows, onRead, known, knowCopies: () => known.addCopies(new ForkedSubshells(copies)) };
}

test("a subshell is found also right after a look at which nobody knew that its script had ended", () => {
  const { rows, known, knowCopies } = search();
  rows.set(subshell, { parent: 1, flags: copy });
  expect(known.findCertain()).toMatchObject({ alive: [], isCertain: true });
  knowCopies();
  expect(known.findCertain()).toMatchObject({ alive: [subshell] });
});

test("a copy whose parent lives may have left a child when it has ended at the next look", () => {
  const { rows, onRead, known, knowCopies } = search();
  knowCopies();
  rows.set(shell, { parent: 1, flags: 0 });
  rows.set(subshell, { parent: shell, flags: copy });
  expect(known.find(null)).toMatchObject({ alive: [], isCertain: false });
  // It forks and ends when it is listed and not wholly read.
  onRead.set(`${subshell} environ`, () => {
    rows.delete(subshell);
    rows.set(next, { parent: 1, flags: copy });
  });
  expect(known.find(null)).toMatchObject({ alive: [], isCertain: false });
  expect(known.find(null)).toMatchObject({ alive: [next] });
});

test("a copy whose parent lives, and that is there at two looks, is none of the job's", () => {
  const { rows, known, knowCopies } = search();
  knowCopies();
  rows.set(shell, { parent: 1, flags: 0 });
  rows.set(subshell, { parent: shell, flags: copy });
  expect(known.find(null).isCertain).toBe(false);
  expect(known.find(null)).toMatchObject({ alive: [], isCertain: true });
});

test("a copy that becomes a program between the reads of its environment and of its state is found by its mark", () => {
  const { rows, onRead, known, knowCopies } = search();
  knowCopies();
  rows.set(subshell, { parent: 1, flags: copy });
  onRead.set(`${subshell} environ`, () => {
    rows.set(subshell, { parent: 1, flags: 0 });
    machine?.environ.set(subshell, "BATON_LOCK_COOKIE=mine\0");
  });
  expect(known.findCertain()).toMatchObject({ alive: [subshell] });
});

test("one that ends while it is asked whether it is wanted is searched for again", () => {
  const { rows, known, knowCopies } = search();
  knowCopies();
  rows.set(subshell, { parent: 1, flags: copy });
  const wanted = (pid: number) => {
    if (pid === subshell) {
      rows.delete(subshell);
      rows.set(next, { parent: 1, flags: copy });
    }
    return rows.has(pid);
  };
  expect(known.findCertain(null, wanted)).toMatchObject({ alive: [next] });
});

test("a process that forks and ends at any moment of a search leaves no certain result without its child", () => {
  for (let reads = 1; reads <= 12; reads++) {
    const { rows, onRead } = search();
    const environ = "BATON_LOCK_COOKIE=mine\0";
    machine?.environ.set(subshell, environ).set(next, environ);
    rows.set(subshell, { parent: 1, flags: 0 });
    let left = reads;
    onRead.set(`${subshell} stat`, () => {
      if (--left > 0) return;
      rows.delete(subshell);
      rows.set(next, { parent: 1, flags: 0 });
    });
    const job = new JobProcesses({ pid: script, ownGroup: false, cookie: "mine", libc: null, adopts: false });
    job.commandEnded();
    const alive = job.alive();
    expect({ reads, isOverlooked: alive.length === 0 && !job.isUndecided() }).toEqual({ reads, isOverlooked: false });
    machine?.[Symbol.dispose]();
  }
});
