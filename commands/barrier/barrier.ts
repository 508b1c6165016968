/** `baton barrier`: its words. What it does is in run_barrier.ts and run_gate.ts. */
import { startGuard } from "../../src/process/guard/guard.ts";
import { barrierCommandSettings, barrierOptionsOf } from "./barrier_options.ts";
import { type Call, defineCommand } from "../command.ts";
import type { ExitCode } from "../exit_codes.ts";
import { barrierDependencies, runBarrier } from "./run_barrier.ts";
import { runGate } from "./run_gate.ts";

export const barrierCommand = defineCommand({
  name: "barrier",
  summary: "start a command on all machines together, and end together",
  usage: "NAME -N COUNT [options] -- COMMAND [ARGUMENT…] | NAME --set|--lift|--wait",
  details: [
    "Waits until COUNT have entered and all of them are alive, runs the command in each, and exits with the command's own " +
    "code when all the others have ended too. Each command knows its number, BATON_RANK, from 0 to BATON_SIZE less 1. " +
    "Who comes when they are complete waits for the next generation, which starts when this one has ended.",
    "When one is lost before the start, the others exit with 82 and say who it was; with --on-member-lost wait they wait " +
    "for another. One that is lost after the start is not waited for, and stops its own command: exit 79.",
    "The gate is simpler: --wait ends as soon as it is not closed; --set closes it for everybody, --lift opens it.",
  ],
  examples: [
    ["baton barrier agents -N 8 -- ./agent.sh", "eight calls, on any machines: all agents start together"],
    [
      "baton barrier agents -N 8 -w 1m -- ./agent.sh",
      "exit 75 after a minute, and say who is there and how many are not",
    ],
    [
      "baton barrier step -N 3 -- sh -c './part.sh $BATON_RANK $BATON_SIZE'",
      "each does its share, and nobody goes on before all are through",
    ],
    ["baton barrier maintenance --set --reason 'disk swap'", "close the gate"],
    ["baton barrier maintenance --wait -w 10m && ./work.sh", "work when it is open"],
  ],
  settings: barrierCommandSettings,
  completes: "barriers",
  run: barrier,
});

async function barrier(call: Call<typeof barrierCommandSettings>): Promise<ExitCode> {
  const options = barrierOptionsOf(call);
  if ("do" in options) return await runGate(options, call);
  const guard = startGuard(); // its start, of some milliseconds, runs beside everything that comes now
  return await runBarrier(options, call.io, barrierDependencies(guard));
}
