/**
 * `baton barrier`: enters a barrier, runs the command, and leaves with the others. Also closes, opens and waits for
 * gates.
 */
import { liftGate, setGate, waitGate } from "../../../src/coordination/barrier/barrier_gate.ts";
import {
  closeCoordinationSession,
  connectAndWaitDeadline,
  openCoordinationSession,
  reportServerOutages,
  waitIncludesConnecting,
  warnOfLongSessionTimeout,
} from "../../../src/coordination/connect/command_session.ts";
import { type CoordinationServers, requireLockScope } from "../../../src/coordination/connect/coordination_servers.ts";
import { describeThisHolder } from "../../../src/coordination/nodes/holder_info.ts";
import { BatonError } from "../../../src/base/errors.ts";
import { type CommandGuard, startGuard } from "../../../src/base/process/guard/guard.ts";
import { StoppedBySignal, StopRequestListener } from "../../../src/base/process/supervise/signal_source.ts";
import { systemClock } from "../../../src/base/support/clock.ts";
import { type Io, printJson, stderrSentencePrinter } from "../../../src/base/terminal/io.ts";
import { type CommandCall, defineCommand, oneNameCommandSyntax } from "../../command.ts";
import { chooseCoordinationServers, runInCoordinationSession } from "../../coordination_session.ts";
import { type ExitCode, exitCodes, toExitCode } from "../../../src/base/exit_codes.ts";
import type { GateJson } from "../../json_shapes/election_shapes.ts";
import {
  type BarrierCommandOptions,
  barrierCommandSettings,
  type GateCommandOptions,
  readBarrierOptions,
} from "./barrier_options.ts";
import { LeaseNoteFile } from "../../../src/base/process/supervise/lease_note.ts";
import { loadLibc } from "../../../src/base/process/libc.ts";
import { superviseChild } from "../../../src/base/process/supervise/supervise_child.ts";
import { ErasableTerminalLine } from "../../../src/base/terminal/progress_line.ts";
import { encodeSessionHandle } from "../../../src/protocols/zookeeper/end_session.ts";
import type { ZooKeeper } from "../../../src/protocols/zookeeper/zookeeper.ts";
import { isSessionEndError } from "../../../src/protocols/zookeeper/zookeeper_error.ts";
import { enterBarrier } from "../../../src/coordination/barrier/enter_barrier.ts";
import type { BarrierMembership } from "../../../src/coordination/barrier/barrier_membership.ts";
import { coordinationObjectPath } from "../../../src/coordination/nodes/node_paths.ts";
import { parseBarrierParticipantNodes } from "../../../src/coordination/barrier/barrier_state.ts";
import { readBarrierView } from "../../../src/coordination/barrier/barrier_view.ts";
import { rejectOnAbort } from "../../../src/base/support/abort.ts";
import {
  commandEnvironment,
  type CommandRunDependencies,
  commandRunDependencies,
  toSuperviseOptions,
} from "../../../src/coordination/job/leased_command.ts";
import { outerHolderIds } from "../../../src/coordination/job/outer_locks.ts";
import { decideLockEnding, type LockEnding } from "../../../src/coordination/job/lock_ending.ts";
import { runWithStatusReport, StatusReportFacts } from "../../../src/coordination/job/run_with_status_report.ts";

export const barrierCommand = defineCommand({
  name: "barrier",
  summary: "wait until several processes have arrived; start a command in all of them at the same time",
  usage: "NAME -N COUNT [options] [COMMAND [ARGUMENT…]] | NAME --set|--lift|--wait",
  details: [
    "Each call waits until COUNT calls have entered and are alive. Without a command, it then exits with 0: a " +
    "rendezvous. It does not wait until other calls exit, so it exits with 0 even if one is killed from then " +
    "on. The next round starts when all calls of this one have exited, or their sessions have ended.",
    "With a command, each call runs its command, waits until the commands of all members have ended, and exits " +
    "with its command's exit code. The number of a member is BATON_RANK, from 0 to BATON_SIZE - 1. A call " +
    "that arrives when the group is complete waits for the next round, which starts when this one has ended.",
    "If a member is lost before the start, the others print its name and exit with 82; with --on-member-lost wait " +
    "they wait for another one. If a member is lost after the start, it stops its command and exits with 79; the " +
    "others do not wait for it.",
    "A gate is simpler: --set closes the gate for all processes, --lift opens it, and --wait waits until it is open.",
  ],
  examples: [
    [
      "baton barrier built -N 4 -w 10m && ./test.sh",
      "four jobs of a build, on any machines: all continue when the last has arrived",
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
  syntax: oneNameCommandSyntax,
  completes: "barriers",
  run: barrier,
});

async function barrier(call: CommandCall<typeof barrierCommandSettings>): Promise<ExitCode> {
  const options = readBarrierOptions(call);
  if ("do" in options) return await runGate(options, call);
  // The guard process starts within milliseconds, in parallel with the following work.
  const guard = startGuard(stderrSentencePrinter(call.io));
  return await runBarrier(options, call.io, guard);
}

/** Closes, opens or waits for a gate: `--set`, `--lift`, `--wait`. */
async function runGate(gate: GateCommandOptions, call: CommandCall<typeof barrierCommandSettings>): Promise<ExitCode> {
  const { values, io } = call;
  const { name } = gate;
  using stop = new StopRequestListener();
  const clock = systemClock();
  const what = `gate "${name}"`;
  using limit = connectAndWaitDeadline(clock, values.within, { values, stop: stop.signal });
  const waitsFor = waitIncludesConnecting(values.within, values) ? what : undefined;
  try {
    const changed = await runInCoordinationSession(call, async (zk, place) => {
      requireLockScope(values.scope, place);
      const { acl } = place.connect;
      const options = { root: values.root, clock, signal: limit.signal, ...(acl === undefined ? {} : { acl }) };
      if (gate.do === "set") {
        return await setGate(zk, name, { ...options, info: describeThisHolder({ command: ["baton"], values }) });
      }
      if (gate.do === "lift") return await liftGate(zk, name, options);
      using _outage = reportServerOutages(zk, what, { io, clock, quiet: values.quiet });
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
    return toExitCode(thrown.code);
  }
}

interface BarrierRun {
  readonly io: Io;
  readonly deps: CommandRunDependencies;
  readonly facts: StatusReportFacts;
}

/**
 * Runs a barrier with or without a command. `guard` is the guard process, which is already started. Throws BatonError
 * for a failure before the command, or StoppedBySignal after a signal.
 */
async function runBarrier(options: BarrierCommandOptions, io: Io, guard: CommandGuard): Promise<ExitCode> {
  const facts = new StatusReportFacts();
  const about = { verb: "barrier", names: [options.name], conflicts: ["BARRIER_TIMEOUT"] } as const;
  const run = { io, deps: commandRunDependencies(), facts };
  return await runWithStatusReport({ ...options, ...about, io, facts }, () => enterAndRun(options, run, guard));
}

async function enterAndRun(options: BarrierCommandOptions, run: BarrierRun, guard: CommandGuard): Promise<LockEnding> {
  const { io, deps, facts } = run;
  using stop = new StopRequestListener(deps.signals);
  const { values } = options;
  using limit = connectAndWaitDeadline(deps.clock, values.within, { values, stop: stop.signal });
  let isGuardLeft = false;
  let zk: ZooKeeper | null = null;
  try {
    const what = JSON.stringify(options.name);
    const place = chooseCoordinationServers(options, io, {
      what: `barrier ${what}`,
      scope: values.scope,
      signal: limit.signal,
    });
    const opened = (session: ZooKeeper) => {
      if (zk === null) warnOfLongSessionTimeout(options, io, { place, zk: session });
      zk = session;
      guard.setSession(encodeSessionHandle(place.connect, session.session));
    };
    const entering = enterInSession(options, run, { place, limit: limit.signal, opened });
    const { command } = options;
    if (command === null) return await meet(entering, options, run);
    const member = await entering;
    limit.cancel();
    const grantedAtMs = deps.clock.now();
    facts.granted([member], member.waitedMs);
    if (options.verbose) io.err(startLine(member));
    using note = LeaseNoteFile.open(member, { clock: deps.clock, libc: await loadLibc() });
    isGuardLeft = true; // set until the command is known to have ended
    const { waitedMs } = member;
    const job = { leases: [member], waitedMs, place, note, passAuth: values.passAuth, barrier: member };
    const outcome = await superviseChild({
      ...toSuperviseOptions({ ...options, command }, io, deps),
      lease: member,
      guard,
      keepsGuard: true, // the guard process is also needed while this member waits for the others
      grantedAtMs,
      signal: stop.signal,
      env: commandEnvironment(io, job),
    });
    facts.outcome = outcome;
    isGuardLeft = outcome.kind === "breach";
    if (!isGuardLeft) guard.forget(member.holderId);
    const { maxHold: maxHoldMs } = values;
    const ending = decideLockEnding(outcome, {
      what,
      kind: "Barrier",
      lost: member.lost,
      outage: member.describeOutage?.(),
      maxHoldMs,
    });
    if (ending === null) throw stop.signal.reason;
    if (outcome.kind === "exited" || outcome.kind === "signaled") {
      return await leaveTogether(member, ending, { options, run, before: stop.signal });
    }
    // A process could not be killed, so this call does not close the session, which ends after its timeout.
    if (outcome.kind === "breach") zk = null;
    return ending;
  } finally {
    if (!isGuardLeft) guard.end();
    if (zk !== null) await closeCoordinationSession(zk, deps.clock, facts.tokens === null ? limit.signal : stop.signal);
  }
}

/**
 * Ends a rendezvous when all have arrived. Does not wait until the others have left: they only exit, and one that is
 * dead would delay this call. This member leaves when the caller closes the session.
 */
async function meet(
  entering: Promise<BarrierMembership>,
  { verbose }: BarrierCommandOptions,
  { io, facts }: BarrierRun,
): Promise<LockEnding> {
  try {
    const member = await entering;
    facts.granted([member], member.waitedMs);
    if (verbose) io.err(startLine(member));
  } catch (thrown) {
    // All have arrived, so the loss of this member affects no command.
    if (!(thrown instanceof BatonError) || thrown.code !== "LOCK_LOST") throw thrown;
  }
  return { exitCode: exitCodes.SUCCESS, reason: "all_arrived", message: null };
}

/**
 * Waits for the other members. Returns how the command ended; returns a failure if it is unknown whether the others
 * have ended.
 */
async function leaveTogether(
  member: BarrierMembership,
  ending: LockEnding,
  { options: { verbose }, run: { io, deps }, before }: {
    readonly options: BarrierCommandOptions;
    readonly run: BarrierRun;
    /** A signal that has aborted if a signal arrived before this wait. */
    readonly before: AbortSignal;
  },
): Promise<LockEnding> {
  // The signal has ended the command. It also ends the wait for the others.
  if (before.aborted && asksForEnd(before.reason)) {
    await member.release().catch(() => {}); // the session is closed next, which has the same effect
    return ending;
  }
  if (verbose) io.err(`baton: barrier "${member.name}": rank ${member.rank} has ended, waiting for the others\n`);
  using stop = new StopRequestListener(deps.signals);
  try {
    await member.leave({ signal: stop.signal });
    return ending;
  } catch (thrown) {
    if (!(thrown instanceof BatonError)) throw thrown;
    const message = `${thrown.message}; the command had exited with ${ending.exitCode}`;
    return { exitCode: toExitCode(thrown.code), reason: thrown.code.toLowerCase(), message };
  }
}

/** Returns true if a signal asks the command to end. SIGUSR1 and SIGUSR2 have other purposes. */
function asksForEnd(reason: unknown): boolean {
  return reason instanceof StoppedBySignal && reason.signal !== "SIGUSR1" && reason.signal !== "SIGUSR2";
}

/**
 * Enters the barrier. If --on-member-lost is "wait", a new session replaces an expired one. Calls `opened` for each
 * session; the caller closes the last session.
 */
async function enterInSession(options: BarrierCommandOptions, { io, deps }: BarrierRun, { place, limit, opened }: {
  readonly place: CoordinationServers;
  readonly limit: AbortSignal;
  readonly opened: (zk: ZooKeeper) => void;
}): Promise<BarrierMembership> {
  const { values, name, parties, quiet } = options;
  const { clock } = deps;
  const startMs = clock.now();
  const what = JSON.stringify(name);
  for (let isPatient = waitIncludesConnecting(values.within, values);; isPatient = true) {
    const zk = await openCoordinationSession(deps.connect, place.connect, { isPatient, io, clock, quiet, what });
    opened(zk);
    using _outage = reportServerOutages(zk, what, { io, clock, quiet });
    using gathered = showGathered(options, io);
    try {
      await rejectOnAbort(refuseNested(zk, options, io), limit);
      return await enterBarrier(zk, name, {
        parties,
        onMemberLost: values.onMemberLost,
        clock,
        signal: limit,
        ...(values.within === 0 ? { wait: 0 } : {}),
        root: values.root,
        sinceMs: startMs,
        info: describeThisHolder({ ...options, command: options.command ?? ["baton"] }),
        onWaiting: gathered.onWaiting,
        ...(place.connect.acl === undefined ? {} : { acl: place.connect.acl }),
      });
    } catch (thrown) {
      const isStarted = thrown instanceof BatonError && thrown.code === "LOCK_LOST";
      const mayReplace = values.onMemberLost === "wait" && !isStarted;
      const again = mayReplace && !limit.aborted && isSessionEndError(zk.session.ended.reason);
      if (!again) throw thrown;
      if (!quiet) io.err(`baton: the session of barrier "${name}" has expired; entering again\n`);
    }
  }
}

/** Throws USAGE if this call runs inside a member of the same barrier, because the call would wait for itself. */
async function refuseNested(zk: ZooKeeper, { name, values }: BarrierCommandOptions, io: Io): Promise<void> {
  const cookies = outerHolderIds(io.env);
  if (cookies.length === 0) return;
  const view = await readBarrierView(zk, coordinationObjectPath("barriers", name, values.root));
  if (!parseBarrierParticipantNodes(view?.children ?? []).some((node) => cookies.includes(node.guid))) return;
  throw new BatonError(
    "USAGE",
    `This process is already a member of barrier "${name}", by a baton barrier call around it`,
  );
}

/**
 * Shows how many participants have arrived: in one updated line on a terminal, or with --verbose a line for each
 * change.
 */
function showGathered(
  { name, parties, verbose, quiet }: BarrierCommandOptions,
  io: Io,
): Disposable & { onWaiting(gathered: number): void } {
  const line = !quiet && !verbose && ErasableTerminalLine.canShow(io) ? new ErasableTerminalLine(io) : null;
  let last = -1;
  return {
    onWaiting(gathered) {
      if (gathered === last) return;
      last = gathered;
      const text = `baton: waiting at barrier "${name}": ${gathered} of ${parties} are here`;
      line?.show(text);
      if (verbose) io.err(`${text}\n`);
    },
    [Symbol.dispose]: () => line?.erase(),
  };
}

function startLine({ name, rank, size, generation, holderId, fencingToken, waitedMs }: BarrierMembership): string {
  return `baton: barrier "${name}" starts after ${
    Math.round(waitedMs)
  } ms: rank ${rank} of ${size}, generation ${generation}, ` +
    `as ${holderId}, token ${fencingToken}\n`;
}
