/** Benchmark: the memory that a held lock costs: the holder and its helpers, without the command. */
import { readdirSync, readFileSync } from "node:fs";
import { eventually } from "../../test/support/eventually.ts";
import type { LockContestant } from "./contestant.ts";
import { measureInTurn } from "./peers.ts";
import { alignedTable, formatFigure } from "./statistics.ts";

/** The command, whose command line distinguishes it from the lock's own processes. */
const command = ["sleep", "86399"];
const commandLineOfCommand = `${command.join("\0")}\0`;

/** Returns a table of the proportional and resident memory of one holder of each contestant, in MiB. Linux only. */
export async function holderMemory(contestants: readonly LockContestant[]): Promise<string> {
  const rows = [["while holding", "processes", "PSS MiB", "RSS MiB"]];
  const measured = await measureInTurn(contestants, { task: "memory", rounds: 1 }, measureHolder);
  return alignedTable([...rows, ...[...measured.values()].flat()]);
}

async function measureHolder(contestant: LockContestant, _round: number, signal: AbortSignal): Promise<string[]> {
  const holder = Bun.spawn(contestant.command("memory", command), {
    env: { ...process.env, ...contestant.environment },
    stdio: ["ignore", "ignore", "ignore"],
    signal,
    killSignal: "SIGKILL",
  });
  const isCommand = (pid: number) => commandLine(pid) === commandLineOfCommand;
  const child = await eventually(() => family(holder.pid).find(isCommand), {
    withinMs: 20_000,
    what: `${contestant.name} to hold`,
  });
  const own = family(holder.pid).filter((pid) => !isCommand(pid));
  const sumMib = (kind: "Pss" | "Rss") => own.reduce((sum, pid) => sum + memoryMib(pid, kind), 0);
  const row = [contestant.name, String(own.length), formatFigure(sumMib("Pss")), formatFigure(sumMib("Rss"))];
  process.kill(child, "SIGKILL");
  await holder.exited;
  return row;
}

/** Returns a process and its descendants. */
function family(pid: number): number[] {
  const parents = new Map<number, number>();
  for (const entry of readdirSync("/proc")) {
    const [, parent] = /\) . (\d+)/.exec(/^\d+$/.test(entry) ? readOrEmpty(`/proc/${entry}/stat`) : "") ?? [];
    if (parent !== undefined) parents.set(Number(entry), Number(parent));
  }
  const members = [pid];
  for (const member of members) {
    for (const [child, parent] of parents) if (parent === member) members.push(child);
  }
  return members;
}

function commandLine(pid: number): string {
  return readOrEmpty(`/proc/${pid}/cmdline`);
}

function memoryMib(pid: number, kind: "Pss" | "Rss"): number {
  const [, kib] = new RegExp(`^${kind}:\\s+(\\d+) kB`, "m").exec(readOrEmpty(`/proc/${pid}/smaps_rollup`)) ?? [];
  return Number(kib ?? 0) / 1024;
}

function readOrEmpty(path: string): string {
  try {
    return readFileSync(path, "latin1");
  } catch {
    return ""; // the process has ended
  }
}
