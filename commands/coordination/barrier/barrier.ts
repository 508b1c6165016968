/** `baton barrier`: its definition, and gates. run_barrier.ts starts commands together. */
import { liftGate, setGate, waitGate } from "../../../src/coordination/barrier/barrier_gate.ts";
import { callDeadline, reportOutages, waitsForServer } from "../../../src/coordination/connect/command_session.ts";
import { requireScope } from "../../../src/coordination/connect/coordination_servers.ts";
import { holderInfo } from "../../../src/coordination/nodes/holder_info.ts";
import { BatonError } from "../../../src/base/errors.ts";
import { startGuard } from "../../../src/base/process/guard/guard.ts";
import { processSignals, StopSignalListener } from "../../../src/base/process/supervise/signal_source.ts";
import { systemClock } from "../../../src/base/support/clock.ts";
import { printJson, sayTo } from "../../../src/base/terminal/io.ts";
import { type Call, commandAfterOneName, defineCommand } from "../../command.ts";
import { runConnected } from "../../connected.ts";
import { type ExitCode, exitCodes, toExitCode } from "../../../src/base/exit_codes.ts";
import type { GateJson } from "../../json_shapes/election_shapes.ts";
import { barrierCommandSettings, type GateCommandOptions, readBarrierOptions } from "./barrier_options.ts";
import { runBarrier } from "./run_barrier.ts";

export const barrierCommand = defineCommand({
  name: "barrier",
  summary: "wait until several processes have come; start a command in all of them at the same time",
  usage: "NAME -N COUNT [options] [COMMAND [ARGUMENT…]] | NAME --set|--lift|--wait",
  details: [
    "Each call waits until COUNT calls have entered and are alive. Without a command, it then exits with 0: a rendezvous. It waits " +
    "for no other call to exit, so it also exits with 0 if another one is killed from then on. The next round starts when all " +
    "calls of this one have exited, or their sessions have ended.",
    "With a command, each call runs its command, waits until the commands of all " +
    "members have ended, and exits with the exit code of its own command. The number of a member is BATON_RANK, from 0 to " +
    "BATON_SIZE - 1. A call that arrives when the group is complete waits for the next round, which starts when this one has ended.",
    "If a member is lost before the start, the others print its name and exit with 82; with --on-member-lost wait they wait for " +
    "another one. If a member is lost after the start, it stops its command and exits with 79; the others do not wait for it.",
    "A gate is simpler: --set closes the gate for all processes, --lift opens it, and --wait waits until it is open.",
  ],
  examples: [
    [
      "baton barrier built -N 4 -w 10m && ./test.sh",
      "four jobs of a build, on any machines: all go on when the last has come",
    ],
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
  syntax: commandAfterOneName,
  completes: "barriers",
  run: barrier,
});

async function barrier(call: Call<typeof barrierCommandSettings>): Promise<ExitCode> {
  const options = readBarrierOptions(call);
  if ("do" in options) return await runGate(options, call);
  const guard = startGuard(sayTo(call.io)); // it takes some milliseconds to start, in parallel with the following work
  return await runBarrier(options, call.io, guard);
}

/** `--set`, `--lift`, `--wait`: closes, opens, or waits for a gate. */
async function runGate(gate: GateCommandOptions, call: Call<typeof barrierCommandSettings>): Promise<ExitCode> {
  const { values, io } = call;
  const { name } = gate;
  using stop = new StopSignalListener(processSignals());
  const clock = systemClock();
  const what = `gate "${name}"`;
  using limit = callDeadline(clock, values.within, { values, stop: stop.signal });
  const waitsFor = waitsForServer(values.within, values) ? what : undefined;
  try {
    const changed = await runConnected(call, async (zk, place) => {
      requireScope(values.scope, place);
      const { acl } = place.connect;
      const options = { root: values.root, clock, signal: limit.signal, ...(acl === undefined ? {} : { acl }) };
      if (gate.do === "set") {
        return await setGate(zk, name, { ...options, info: holderInfo({ command: ["baton"], values }) });
      }
      if (gate.do === "lift") return await liftGate(zk, name, options);
      using _outage = reportOutages(zk, what, { io, clock, quiet: values.quiet });
      await waitGate(zk, name, { ...options, ...(values.within === 0 ? { waitMs: 0 } : {}) });
      return false;
    }, { signal: limit.signal, waitsFor });
    const state = gate.do === "set" ? "closed" : "open";
    if (values.json) printJson<GateJson>(io, { version: 1, name, gate: state, changed });
    if (values.verbose) io.err(`baton: gate "${name}" is ${state}${changed || gate.do === "wait" ? "" : " already"}\n`);
    return exitCodes.SUCCESS;
  } catch (thrown) {
    if (!(thrown instanceof BatonError) || thrown.code !== "BARRIER_TIMEOUT") throw thrown;
    if (values.json) printJson<GateJson>(io, { version: 1, name, gate: "closed", changed: false });
    if (!values.quiet) io.err(`baton: ${thrown.message}\n`);
    return values.conflictExitCode ?? toExitCode(thrown.code);
  }
}
