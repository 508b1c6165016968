/** What can happen to a script, its holder and that one's guard, and what must come of it. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { guardProcessName } from "../../../../src/base/process/guard/guard_main.ts";
import { listChildProcesses } from "../../../../src/base/process/proc/process_table.ts";
import { holderProcessName } from "../../../../src/coordination/hold/find_holds.ts";
import { eventually } from "../../../support/eventually.ts";
import { span } from "../../../support/server_outages.ts";
import type { Contender } from "../lock/contender.ts";
import type { Fault, FaultContext } from "../lock/faults.ts";

type Span = readonly [from: number, to: number];
type Who = (victim: Contender) => Promise<number> | number;

export const holdFaults: readonly Fault[] = [
  { name: "script killed", expect: "killed", apply: killed(scriptOf) },
  { name: "holder killed", expect: "killed", apply: killed(holderOf) },
  { name: "guard killed", expect: "survives", apply: killed(guardOf) },
  // As for a wrapper: what it may miss is 5/8 T, of which T/6 may be over.
  { name: "holder stopped for less than the lease", expect: "survives", apply: stopped(holderOf, [0.05, 0.3]) },
  { name: "holder stopped for 0.5 to 1 T", expect: "either", apply: stopped(holderOf, [0.5, 1]) },
  { name: "holder stopped for 1.05 to 3 T", expect: "loses", apply: stopped(holderOf, [1.05, 3]) },
  { name: "script stopped for 1.05 to 2 T", expect: "survives", apply: stopped(scriptOf, [1.05, 2]) },
  // It would kill the job when it wakes up, because the deadline that it knows has passed: it is replaced before.
  { name: "guard stopped for 1.5 to 3 T", expect: "survives", apply: stopped(guardOf, [1.5, 3]) },
];

function killed(who: Who): Fault["apply"] {
  return async ({ victim }) => void process.kill(await who(victim), "SIGKILL");
}

function stopped(who: Who, [from, to]: Span): Fault["apply"] {
  return async ({ victim, random, sessionTimeoutMs, wait }: FaultContext) => {
    const pid = await who(victim);
    process.kill(pid, "SIGSTOP");
    await wait(span(random, from, to) * sessionTimeoutMs);
    if (isThere(pid)) process.kill(pid, "SIGCONT");
  };
}

/** Its pid, while nobody else can have it. */
function scriptOf({ pid, exit }: Contender): number {
  if (exit !== null) throw new Error("The victim had ended before the fault");
  return pid;
}

/** The script writes down where its lease is told: a file of the holder's process. */
async function holderOf({ home }: Contender): Promise<number> {
  return await eventually(() => {
    const [, pid = ""] = /^\/proc\/(\d+)\/fd\//.exec(textOf(join(home, "lease"))) ?? [];
    return nameOf(pid) === holderProcessName ? Number(pid) : null;
  }, { what: "the script to know its holder" });
}

async function guardOf(victim: Contender): Promise<number> {
  const holder = await holderOf(victim);
  return await eventually(
    () => listChildProcesses(holder).find((pid) => nameOf(pid) === guardProcessName) ?? null,
    { what: "the holder to have a guard" },
  );
}

const isThere = (pid: number): boolean => nameOf(pid) !== "";

/** The kernel's name of a process; empty when there is none. */
const nameOf = (pid: number | string): string => textOf(`/proc/${pid}/comm`).trim();

function textOf(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
}
