/**
 * Benchmark: the time from the signal to a leader to resign until the next leader's first line, with waiting
 * candidates.
 */
import { eventually } from "../../test/support/eventually.ts";
import type { LockContestant } from "./contestant.ts";
import { measureInTurn } from "./peers.ts";
import { alignedTable, formatFigure, summarizeMeasurements } from "./statistics.ts";

type Elector = NonNullable<LockContestant["election"]> & Pick<LockContestant, "environment">;

/** Returns a table in milliseconds: `rounds` times `waiting` hand-overs for each contestant that elects leaders. */
export async function electHandOver(
  contestants: readonly LockContestant[],
  waiting: number,
  rounds: number,
): Promise<string> {
  const electors = contestants.flatMap(({ election, environment }) =>
    election === undefined ? [] : [{ ...election, environment }]
  );
  const gaps = await measureInTurn(
    electors,
    { task: "elect", rounds },
    (elector, round, signal) => resignInTurn(elector, { waiting, name: `elect-${round}`, signal }),
  );
  const baseline = [...gaps].find(([{ name }]) => name.startsWith("etcdctl"));
  const reference = baseline === undefined ? null : summarizeMeasurements(baseline[1].flat());
  return alignedTable([
    [`resign, ${waiting} waiting`, "ms min", "p50", "p90", "max", "p50 ÷ etcdctl"],
    ...[...gaps].map(([elector, all]) => {
      const { min, p50, p90, max } = summarizeMeasurements(all.flat());
      return [
        elector.name,
        ...[min, p50, p90, max].map(formatFigure),
        reference === null ? "–" : formatFigure(p50 / reference.p50),
      ];
    }),
  ]);
}

/** Starts all candidates, then lets one leader after the other resign. */
async function resignInTurn(
  elector: Elector,
  { waiting, name, signal }: { readonly waiting: number; readonly name: string; readonly signal: AbortSignal },
): Promise<number[]> {
  const elected: { candidate: Candidate; atMs: number }[] = [];
  const candidates: Candidate[] = [];
  try {
    for (let number = 0; number <= waiting; number++) {
      const candidate = new Candidate(elector, { name, signal }, (atMs) => elected.push({ candidate, atMs }));
      candidates.push(candidate);
      const count = number + 1;
      await eventually(async () => await elector.candidates(name) >= count, {
        withinMs: 30_000,
        what: `${count} candidates of ${elector.name}`,
      });
    }
    const gaps: number[] = [];
    for (let turn = 0; turn < waiting; turn++) {
      const leader = await eventually(() => elected[turn], { withinMs: 30_000, what: `${elector.name} to elect` });
      const toldMs = performance.now();
      leader.candidate.resign();
      const next = await eventually(() => elected[turn + 1], {
        withinMs: 30_000,
        what: `${elector.name} to hand over`,
      });
      gaps.push(next.atMs - toldMs);
      await leader.candidate.exited;
    }
    return gaps;
  } finally {
    await Promise.all(candidates.map((candidate) => candidate.end()));
  }
}

class Candidate {
  readonly #elector: Elector;
  readonly #process: Bun.Subprocess<"ignore", "pipe", "ignore">;

  constructor(
    elector: Elector,
    { name, signal }: { readonly name: string; readonly signal: AbortSignal },
    onElected: (atMs: number) => void,
  ) {
    this.#elector = elector;
    this.#process = Bun.spawn(elector.command(name), {
      env: { ...process.env, ...elector.environment },
      stdio: ["ignore", "pipe", "ignore"],
      signal,
      killSignal: "SIGKILL",
    });
    void this.#read(onElected);
  }

  get exited(): Promise<number> {
    return this.#process.exited;
  }

  resign(): void {
    this.#process.kill(this.#elector.resignSignal);
  }

  /** Ends the candidate properly, so that nothing of it remains for the next round. */
  async end(): Promise<void> {
    if (this.#process.exitCode === null) this.resign();
    await this.exited;
  }

  /** Reads all output, because a closed pipe would end a candidate that prints more. */
  async #read(onElected: (atMs: number) => void): Promise<void> {
    let isElected = false;
    for await (const _chunk of this.#process.stdout) {
      if (!isElected) onElected(performance.now());
      isElected = true;
    }
  }
}
