/** The definition of `baton barrier`. The work is in run_barrier.ts and run_gate.ts. */
import { startGuard } from "../../src/process/guard/guard.ts";
import { barrierCommandSettings, barrierOptionsOf } from "./barrier_options.ts";
import { type Call, defineCommand } from "../command.ts";
import type { ExitCode } from "../exit_codes.ts";
import { runBarrier } from "./run_barrier.ts";
import { runGate } from "./run_gate.ts";

export const barrierCommand = defineCommand({
  name: "barrier",
  summary: "start a command in several processes at the same time, and wait for all of them",
  usage: "NAME -N COUNT [options] -- COMMAND [ARGUMENT…] | NAME --set|--lift|--wait",
  details: [
    "Each call waits until COUNT calls have entered and are alive. Then each runs its command, waits until the commands of all " +
    "members have ended, and exits with the exit code of its own command. The number of a member is BATON_RANK, from 0 to " +
    "BATON_SIZE - 1. A call that arrives when the group is complete waits for the next round, which starts when this one has ended.",
    "If a member is lost before the start, the others print its name and exit with 82; with --on-member-lost wait they wait for " +
    "another one. If a member is lost after the start, it stops its command and exits with 79; the others do not wait for it.",
    "A gate is simpler: --set closes the gate for all processes, --lift opens it, and --wait waits until it is open.",
  ],
  examples: [
    ["baton barrier agents -N 8 -- ./agent.sh", "eight calls on any machines: all agents start together"],
    [
      "baton barrier agents -N 8 -w 1m -- ./agent.sh",
      "after one minute, exit with 75 and print the participants and how many are missing",
    ],
    [
      "baton barrier step -N 3 -- sh -c './part.sh $BATON_RANK $BATON_SIZE'",
      "each call processes its part, and all end together",
    ],
    ["baton barrier maintenance --set --reason 'disk swap'", "close the gate"],
    ["baton barrier maintenance --wait -w 10m && ./work.sh", "work when the gate is open"],
  ],
  settings: barrierCommandSettings,
  completes: "barriers",
  run: barrier,
});

async function barrier(call: Call<typeof barrierCommandSettings>): Promise<ExitCode> {
  const options = barrierOptionsOf(call);
  if ("do" in options) return await runGate(options, call);
  const guard = startGuard(); // it takes some milliseconds to start, in parallel with the following work
  return await runBarrier(options, call.io, guard);
}
