/** `baton barrier NAME --set`, `--lift`, `--wait`: closes, opens, or waits for a gate. */
import { processSignals } from "../../src/process/supervise/signal_source.ts";
import { StopRequest } from "../../src/process/supervise/stop_signals.ts";
import { BatonError } from "../../src/errors.ts";
import { liftGate, setGate, waitGate } from "../../src/coordination/barrier/barrier_gate.ts";
import { systemClock } from "../../src/support/clock.ts";
import type { barrierCommandSettings, GateCommandOptions } from "./barrier_options.ts";
import type { Call } from "../command.ts";
import { connected } from "../coordination/connected.ts";
import { requireScope } from "../../src/coordination/connect/coordination_servers.ts";
import { callLimit, waitsForServer } from "../../src/coordination/connect/command_session.ts";
import { type ExitCode, exitCodeOf, exitCodes } from "../exit_codes.ts";
import type { GateJson } from "../json_shapes/election_shapes.ts";
import { reportOutages } from "../job/wait_display.ts";
import { holderInfo } from "../../src/coordination/holder_info.ts";

export async function runGate(gate: GateCommandOptions, call: Call<typeof barrierCommandSettings>): Promise<ExitCode> {
  const { values, io } = call;
  const { name } = gate;
  using stop = new StopRequest(processSignals());
  const clock = systemClock();
  const what = `gate "${name}"`;
  const limit = callLimit(clock, values.within, { values, stop: stop.signal });
  const waitsFor = waitsForServer(values.within, values) ? what : undefined;
  try {
    const changed = await connected(call, async (zk, place) => {
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
    if (values.json) io.out(lineOf({ version: 1, name, gate: state, changed }));
    if (values.verbose) io.err(`baton: gate "${name}" is ${state}${changed || gate.do === "wait" ? "" : " already"}\n`);
    return exitCodes.SUCCESS;
  } catch (thrown) {
    if (!(thrown instanceof BatonError) || thrown.code !== "BARRIER_TIMEOUT") throw thrown;
    if (values.json) io.out(lineOf({ version: 1, name, gate: "closed", changed: false }));
    if (!values.quiet) io.err(`baton: ${thrown.message}\n`);
    return values.conflictExitCode ?? exitCodeOf(thrown.code);
  } finally {
    limit.cancel();
  }
}

function lineOf(response: GateJson): string {
  return JSON.stringify(response) + "\n";
}
