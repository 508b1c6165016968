/**
 * Hosts with `baton cron` and one crontab, at one keeper, under faults and with clocks that are wrong; and a quiet end
 * with right clocks.
 */
import { hostDelayAfterTickMs } from "../../../../src/coordination/cron/follow_schedule.ts";
import { scheduleId } from "../../../../src/base/schedule/schedule_text.ts";
import type { Fault } from "../../../world/fault_plan.ts";
import { atCommits, drawPlan, recipeMarks, RecipeWorld, type RecipeWorldOptions } from "../../../world/recipe_world.ts";
import type { RunOptions, RunOutcome, RunPlan, Simulation } from "../../../world/simulation.ts";
import { Chance } from "../../../world/chance.ts";
import { CronOracle } from "./cron_oracle.ts";
import { type CronLine, cronProgram, type CronSettings } from "./cron_program.ts";

interface CronWorldOptions extends RecipeWorldOptions, Omit<CronSettings, "lines" | "untilMs"> {
  readonly lines: readonly Omit<CronLine, "scheduleId">[];
}

const writtenSchedules = ["* * * * *", "*/2 * * * *"];

/** Some catch up less than a period: such a tick can be too late. */
const withShortCatchUp = (chance: Chance) => (line: CronWorldOptions["lines"][number], index: number) =>
  chance.fork(`catch up ${index}`).is(0.3) ? { ...line, catchUpMs: line.periodMs / 2 } : line;

function drawOptions(chance: Chance): CronWorldOptions {
  const sessionTimeoutMs = chance.oneOf([2000, 4000, 10_000]);
  const periodMs = chance.oneOf([3000, 10_000]);
  const lines = Array.from({ length: chance.whole(1, 3) }, (_, index) => ({
    // Two schedules of one name never run at the same time.
    name: index === 2 && chance.is(0.5) ? "job1" : `job${index + 1}`,
    written: writtenSchedules[index === 2 ? 1 : 0] ?? "",
    periodMs: index === 2 ? 2 * periodMs : periodMs,
    retriesMax: chance.oneOf([0, 0, 1, 2]),
    retryDelayMs: periodMs * chance.oneOf([0, 0, 0.2, 20]),
    overlap: chance.oneOf(["skip", "skip", "wait"] as const),
    catchUpMs: chance.oneOf([periodMs, 4 * periodMs, 60_000]),
  }));
  return {
    sessionTimeoutMs,
    tickTimeMs: chance.oneOf([20, 100]),
    clients: chance.whole(1, 3),
    clockSpread: chance.oneOf([0, 0.005, 0.024]),
    isDirect: chance.is(0.6),
    flushMs: chance.oneOf([0.2, 2]),
    quietMs: chance.oneOf([60_000, 120_000]),
    isSqlite: false,
    lines: lines.map(withShortCatchUp(chance)),
    slots: chance.oneOf([1, 2, 8]),
    // The clocks of machines differ by up to 10 s, and drift.
    skewMs: 30_000,
    splayMs: chance.oneOf([0, 300]),
    jobMsMax: chance.oneOf([50, periodMs / 2, 2.5 * periodMs]),
    failing: chance.oneOf([0, 0.3]),
  };
}

/** The longest time for which a host counts on from the servers' clock, in milliseconds. */
const waitMsMax = 60_000;

/** The longest pause of a host after a call that was refused, in milliseconds. */
const pauseMsMax = 31_000;

/** Clocks are set wrong for a time, and then right again. */
function withWrongClocks(plan: RunPlan): RunPlan {
  const chance = new Chance(plan.seed).fork("wrong clocks");
  const untilMs = Number(plan.options["quietMs"]);
  const faults = plan.faults.filter(({ kind }) => kind !== "wall step");
  for (let left = chance.oneOf([0, 0, 1, 2, 4]); left > 0; left--) {
    const target = chance.oneOf(["c1", "c2", "c3", "keeper"]);
    const byMs = Math.round(chance.between(-1, 1) * chance.oneOf([5000, 40_000, 400_000]));
    const at = chance.whole(0, untilMs - 2);
    const step = (atMs: number, ms: number): Fault => ({ kind: "wall step", target, at: atMs, byMs: ms });
    faults.push(step(at, byMs), step(chance.whole(at + 1, untilMs - 1), -byMs));
  }
  return { ...plan, faults };
}

async function run(plan: RunPlan, { log, untilMs }: RunOptions = {}): Promise<RunOutcome> {
  const options = plan.options as unknown as CronWorldOptions;
  const shared = new RecipeWorld(plan, { log });
  const { world } = shared;
  const lines = options.lines.map((line) => ({ ...line, scheduleId: scheduleId(line.written) }));
  const oracle = new CronOracle(world, shared.tree, lines, options.sessionTimeoutMs);
  const longestMs = Math.max(...lines.map(({ periodMs }) => periodMs));
  const followMs = options.quietMs + 6 * longestMs + 2 * options.sessionTimeoutMs + pauseMsMax;
  const servers = () => [...world.machines.values()][0];
  const latestServersMs = () => {
    const machine = servers();
    const isSet = machine?.wallSteps.some(({ atMs }) => atMs > world.nowMs - waitMsMax);
    return machine === undefined || isSet ? null : machine.wallMs() + 2 * options.clockSpread * waitMsMax;
  };
  return await shared.run({
    program: cronProgram(
      Object.assign(shared, { oracle, latestServersMs, settings: { ...options, lines, untilMs: followMs } }),
    ),
    holder: () => oracle.holder,
    servedWithinMs: followMs - options.quietMs + 3 * options.sessionTimeoutMs + 20_000,
    atServed: () => {
      const fromMs = options.quietMs + 2 * options.sessionTimeoutMs + pauseMsMax;
      const calm = { fromMs, untilMs: followMs, clockSpread: options.clockSpread };
      const servedMs = (servers()?.wallMs() ?? 0) - (world.nowMs - options.quietMs) + longestMs;
      const turn = (sessionId: bigint, tick: { readonly name: string; readonly tickMs: number }) =>
        hostDelayAfterTickMs(sessionId, { ...tick, splayMs: options.splayMs });
      oracle.judge(servedMs, options.slots < lines.length ? null : calm, turn);
    },
    untilMs,
  });
}

export const cronSimulation: Simulation = {
  name: "cron",
  plan: (seed) => withWrongClocks(atCommits(drawPlan("cron", seed, drawOptions))),
  run,
  marks: [...recipeMarks, "runs of ticks", "mark reload", "mark tick lost at work"],
  gateSeeds: 30,
  traceSeeds: { from: 1, seeds: 2 },
};
