/** Benchmark: the time from the end of one child to the start of the next, with many processes waiting for one lock. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { eventually } from "../../test/support/eventually.ts";
import type { LockContestant } from "./contestant.ts";
import { measureInTurn } from "./peers.ts";
import { alignedTable, formatFigure, summarizeMeasurements } from "./statistics.ts";

/** Returns a table of the milliseconds between children: `rounds` times `waiters` hand-overs for each contestant. */
export async function lockHandOver(
  contestants: readonly LockContestant[],
  waiters: number,
  rounds: number,
): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), "baton-bench-"));
  try {
    const probe = join(folder, "probe");
    const compiled = spawnSync("cc", ["-O2", "-o", probe, join(import.meta.dirname, "probe.c")], { encoding: "utf8" });
    if (compiled.status !== 0) {
      return `hand-over: not measured, no C compiler for its probe (${compiled.stderr ?? "cc is missing"})`;
    }
    const gaps = await measureInTurn(
      contestants,
      { task: `hand-over, ${waiters} waiting`, rounds },
      (contestant, round, signal) =>
        handOverOnce(contestant, { waiters, probe, folder, name: `hand-over-${waiters}-${round}`, signal }),
    );
    const baseline = [...gaps].find(([{ name }]) => name.startsWith("etcdctl"));
    const reference = baseline === undefined ? null : summarizeMeasurements(baseline[1].flat());
    return alignedTable([
      [`hand-over, ${waiters} waiting`, "ms min", "p50", "p90", "max", "p50 ÷ etcdctl", "p90 ÷ etcdctl"],
      ...[...gaps].map(([contestant, all]) => {
        const { min, p50, p90, max } = summarizeMeasurements(all.flat());
        return [
          contestant.name,
          ...[min, p50, p90, max].map(formatFigure),
          reference === null ? "–" : formatFigure(p50 / reference.p50),
          reference === null ? "–" : formatFigure(p90 / reference.p90),
        ];
      }),
    ]);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

interface Round {
  readonly waiters: number;
  readonly probe: string;
  readonly folder: string;
  readonly name: string;
  /** Ends all processes of the round. */
  readonly signal: AbortSignal;
}

async function handOverOnce(contestant: LockContestant, round: Round): Promise<number[]> {
  const record = join(round.folder, `${round.name}.txt`);
  const gate = join(round.folder, `${round.name}.fifo`);
  writeFileSync(record, "");
  spawnSync("mkfifo", [gate]);
  const spawn = (child: string[]) =>
    Bun.spawn(contestant.command(round.name, child), {
      env: { ...process.env, ...contestant.environment },
      stdio: ["ignore", "ignore", "ignore"],
      signal: round.signal,
      killSignal: "SIGKILL",
    });
  const queued = (count: number) =>
    eventually(async () => await contestant.queued(round.name) >= count, {
      withinMs: 120_000,
      what: `${count} processes of ${contestant.name} to queue`,
    });
  const holder = spawn(["sh", "-c", `read -r _ <"${gate}"`]);
  await queued(1);
  const processes = Array.from({ length: round.waiters }, () => spawn([round.probe, record]));
  await queued(round.waiters + 1);
  writeFileSync(gate, "go\n");
  const codes = await Promise.all([holder, ...processes].map((child) => child.exited));
  const failed = codes.filter((code) => code !== 0);
  if (failed.length > 0) {
    throw new Error(`${contestant.name}: ${failed.length} of ${codes.length} processes failed: ${failed}`);
  }
  return gapsMs(readFileSync(record, "latin1"));
}

/** Returns the milliseconds from each section's end to the next one's start. Throws if sections overlap. */
function gapsMs(record: string): number[] {
  const sections = record.trim().split("\n")
    .map((line) => line.split(" ").map(Number) as [start: number, end: number])
    .sort(([a], [b]) => a - b);
  return sections.slice(1).map(([start], index) => {
    const gap = (start - (sections[index]?.[1] ?? 0)) / 1e6;
    if (gap < 0) throw new Error(`Two holders at the same time: critical sections overlap by ${-gap} ms`);
    return gap;
  });
}
