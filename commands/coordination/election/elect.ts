/**
 * `baton elect`: stands for election, runs the command while this candidate is the leader, and stands for election
 * again.
 */
import { LeaseNoteFile } from "../../../src/base/process/supervise/lease_note.ts";
import { loadLibc } from "../../../src/base/process/libc.ts";
import { type CommandGuard, startGuard } from "../../../src/base/process/guard/guard.ts";
import { type Io, stderrSentencePrinter } from "../../../src/base/terminal/io.ts";
import { encodeSessionHandle } from "../../../src/protocols/zookeeper/end_session.ts";
import type { ZooKeeper } from "../../../src/protocols/zookeeper/zookeeper.ts";
import { isSessionEndError } from "../../../src/protocols/zookeeper/zookeeper_error.ts";
import { BatonError, errorMessage } from "../../../src/base/errors.ts";
import { campaign, type Leadership } from "../../../src/coordination/election/campaign.ts";
import { readLeaderStatus, watchLeader } from "../../../src/coordination/election/leader_status.ts";
import { rejectOnAbort } from "../../../src/base/support/abort.ts";
import { sleep } from "../../../src/base/support/deadline.ts";
import { formatDuration } from "../../../src/base/support/duration.ts";
import { chooseCoordinationServers } from "../../coordination_session.ts";
import { CandidateSession } from "../../../src/coordination/connect/candidate_session.ts";
import type { CoordinationServers } from "../../../src/coordination/connect/coordination_servers.ts";
import { electCommandSettings, type ElectOptions, readElectOptions } from "./elect_options.ts";
import { decideElectionNextStep } from "./election_next_step.ts";
import type { ExitCode } from "../../../src/base/exit_codes.ts";
import {
  commandEnvironment,
  commandRunDependencies,
  toSuperviseOptions,
} from "../../../src/coordination/job/leased_command.ts";
import { outerHolderIds } from "../../../src/coordination/job/outer_locks.ts";
import { decideLockEnding, type LockEnding } from "../../../src/coordination/job/lock_ending.ts";
import type { RecordedHold } from "../../../src/coordination/job/recorded_hold.ts";
import { type CallNotice, endNotices } from "../../../src/coordination/job/notice_command.ts";
import { runWithStatusReport, StatusReportFacts } from "../../../src/coordination/job/run_with_status_report.ts";
import {
  openCoordinationSession,
  reportServerOutages,
  warnOfLongSessionTimeout,
} from "../../../src/coordination/connect/command_session.ts";
import { showLockWait } from "../../../src/coordination/job/wait_display.ts";
import { describeThisHolder } from "../../../src/coordination/nodes/holder_info.ts";
import { type SignalSource, StopRequestListener } from "../../../src/base/process/supervise/signal_source.ts";
import { defineCommand, oneNameCommandSyntax } from "../../command.ts";
import type { ChildOutcome } from "../../../src/base/process/spawn/child_outcome.ts";
import { shellHealthCheck, watchCommandHealth } from "../../../src/base/process/supervise/health_watch.ts";
import { describeHookFailure, runLeadershipHook } from "../../../src/base/process/supervise/run_hook.ts";
import { prepareForCommand, superviseChild } from "../../../src/base/process/supervise/supervise_child.ts";
import { jobCookieEnvironment, jobCookieVariable } from "../../../src/base/process/proc/process_table.ts";
import { ResignableLease } from "../../../src/base/process/resignable_lease.ts";
import type { Clock } from "../../../src/base/support/clock.ts";
import { LeaderChanges } from "../../../src/coordination/election/election_history.ts";
import { replaceFile } from "../../../src/base/support/replace_file.ts";

/** Runs `baton elect`. Throws BatonError for a failure before the command starts, or StoppedBySignal after a signal. */
async function runElect(options: ElectOptions, io: Io): Promise<ExitCode> {
  const facts = new StatusReportFacts();
  const about = { verb: "elect", names: [options.name], conflicts: [] };
  return await runWithStatusReport({ ...options, ...about, io, facts }, () => {
    const place = chooseCoordinationServers(options, io, {
      what: `election "${options.name}"`,
      scope: options.values.scope,
    });
    return new ElectionRun(options, io, { facts, place }).run();
  });
}

interface LeaderFileOptions {
  readonly file: string;
  readonly name: string;
  readonly root: string;
  readonly clock: Clock;
  /** Called when the file can no longer be written. Called again only after a write has succeeded. */
  readonly onProblem: (what: string) => void;
}

/**
 * Keeps the value of the current leader in a file. Each update renames a new file to this name, so that no reader sees
 * a partial value.
 */
class LeaderFile {
  readonly #options: LeaderFileOptions;
  readonly #changes = new LeaderChanges();
  readonly #over = new AbortController();
  #hasComplained = false;
  /** The ID of the current leader; null if there is no leader or it is unknown. */
  #leader: string | null = null;

  /** Writes an empty file, because the leader is not known yet. Throws CANNOT_CREATE if that fails. */
  constructor(options: LeaderFileOptions) {
    this.#options = options;
    const failure = this.#write("");
    if (failure !== null) throw new BatonError("CANNOT_CREATE", failure);
  }

  /** Updates the file through this session until the session ends. */
  follow(zk: ZooKeeper): void {
    void this.#follow(zk);
  }

  /**
   * Stops updating the file. If the file shows `own`, the ID of this process's leadership, which has ended, empties the
   * file.
   */
  close(own: string | null): void {
    this.#over.abort();
    const failure = own !== null && own === this.#leader ? this.#write("") : null;
    if (failure !== null) this.#complain(failure);
  }

  async #follow(zk: ZooKeeper): Promise<void> {
    const { name, root, clock } = this.#options;
    const options = { root, clock, changes: this.#changes, signal: this.#over.signal };
    try {
      for await (const change of watchLeader(zk, name, options)) {
        if (change.kind === "missed") continue;
        this.#leader = change.kind === "elected" ? change.grant.id : null;
        const failure = this.#write(change.kind === "vacant" ? "" : `${change.grant.value}\n`);
        if (failure !== null) this.#complain(failure);
        else this.#hasComplained = false;
      }
    } catch (thrown) {
      // The caller replaces an expired session; other failures are reported.
      if (!zk.session.ended.aborted) {
        this.#complain(`Cannot follow the leader for --leader-file: ${errorMessage(thrown)}`);
      }
    }
  }

  #write(text: string): string | null {
    const { file } = this.#options;
    try {
      replaceFile(file, text, { what: `--leader-file ${file}` });
      return null;
    } catch (thrown) {
      return errorMessage(thrown);
    }
  }

  #complain(what: string): void {
    if (!this.#hasComplained) this.#options.onProblem(what);
    this.#hasComplained = true;
  }
}

class ElectionRun {
  readonly #options: ElectOptions;
  readonly #io: Io;
  readonly #deps = commandRunDependencies();
  readonly #facts: StatusReportFacts;
  readonly #place: CoordinationServers;
  readonly #candidate: CandidateSession;
  /** Run at the end, when this candidate no longer leads. */
  readonly #notices: CallNotice[] = [];
  #file: LeaderFile | null = null;
  #leadership: Leadership | null = null;

  constructor(
    options: ElectOptions,
    io: Io,
    { facts, place }: { readonly facts: StatusReportFacts; readonly place: CoordinationServers },
  ) {
    this.#options = options;
    this.#io = io;
    this.#facts = facts;
    this.#place = place;
    const { clock, connect } = this.#deps;
    const { quiet, name } = options;
    this.#candidate = new CandidateSession({
      connect: (to, isRetry) =>
        isRetry
          ? connect(to)
          : openCoordinationSession(connect, to, { isPatient: false, io, clock, quiet, what: `election "${name}"` }),
      options: { ...place.connect, onSlow: (sentence) => this.#print(sentence) },
      clock,
      isPatient: options.values.restart !== "never",
      onOpened: (zk, isFirst) => this.#onSessionOpened(zk, isFirst),
      onUnreachable: (why) => this.#print(`${why}; retrying`),
    });
  }

  async run(): Promise<LockEnding> {
    const { values } = this.#options;
    const { clock, signals } = this.#deps;
    if (values.leaderFile !== undefined) this.#file = this.#openFile(values.leaderFile);
    let stop = new StopRequestListener(signals);
    try {
      for (let shortTerms = 0;;) {
        const { term, ending } = await this.#lead(stop.signal);
        const { outcome, isUnhealthy } = term;
        const next = decideElectionNextStep({
          restart: values.restart,
          outcome,
          isUnhealthy,
          signals: stop.received,
          shortTerms,
        });
        if (term.hasBreach) this.#candidate.abandon(); // a process that could not be killed may still run
        if (next.do === "end") {
          if (values.onFailure !== undefined) await this.#addFailureNotice(term, ending);
          return ending;
        }
        shortTerms = next.shortTerms;
        // The new StopRequestListener begins to listen before the old one is disposed, so that no signal is missed.
        const listening = new StopRequestListener(signals);
        stop[Symbol.dispose]();
        stop = listening;
        await this.#giveUp(stop.signal);
        const when = next.pauseMs === 0 ? "" : ` in ${formatDuration(next.pauseMs)}`;
        this.#print(
          `${ending.message ?? `The command ended with exit code ${ending.exitCode}`}; standing again${when}`,
        );
        await sleep(clock, next.pauseMs, stop.signal);
      }
    } finally {
      this.#file?.close(this.#leadership?.holderId ?? null);
      await this.#candidate.close(stop.signal);
      await endNotices(this.#notices, stop.signal);
      stop[Symbol.dispose]();
    }
  }

  async #addFailureNotice({ outcome, lost }: TermResult, ending: LockEnding): Promise<void> {
    const { noticeOfCommand } = await import("../../../src/coordination/job/failure_notice.ts");
    const about = { names: [this.#options.name], values: this.#options.values };
    this.#notices.push(noticeOfCommand(about, { io: this.#io, clock: this.#deps.clock, outcome, ending, lost }));
  }

  async #lead(stop: AbortSignal): Promise<{ readonly term: TermResult; readonly ending: LockEnding }> {
    const { clock } = this.#deps;
    const guard = startGuard(stderrSentencePrinter(this.#io));
    let isGuardLeft = false;
    try {
      const { leadership, recorded } = await this.#campaign(stop, guard);
      const grantedAtMs = clock.now();
      this.#leadership = leadership;
      this.#facts.granted([leadership], leadership.waitedMs);
      if (this.#options.verbose) this.#print(describeLeadership(leadership));
      using note = LeaseNoteFile.open(leadership, { clock, libc: await loadLibc() });
      isGuardLeft = true; // set until the command has certainly ended
      const term = await runTerm(this.#options, leadership, {
        deps: { ...this.#deps, io: this.#io, guard },
        env: this.#environment(leadership, note),
        grantedAtMs,
        stop,
      });
      isGuardLeft = term.hasBreach;
      const problem = term.hasBreach ? null : await recorded?.end(term.outcome) ?? null;
      if (problem !== null) this.#print(problem);
      this.#facts.outcome = term.outcome;
      const what = JSON.stringify(this.#options.name);
      const ending = decideLockEnding(term.outcome, {
        what,
        kind: "Leadership",
        lost: term.lost,
        outage: leadership.describeOutage?.(),
        maxHoldMs: undefined,
      });
      if (ending === null) throw stop.reason;
      return { term, ending };
    } finally {
      if (!isGuardLeft) guard.end();
    }
  }

  /**
   * Waits until this candidate is the leader. If its session expires, waits again with a new session, at the end of the
   * queue.
   */
  async #campaign(
    stop: AbortSignal,
    guard: CommandGuard,
  ): Promise<{ readonly leadership: Leadership; readonly recorded: RecordedHold | null }> {
    const { name, value, values, quiet } = this.#options;
    const { clock } = this.#deps;
    for (;;) {
      const zk = await this.#candidate.openSession(stop);
      guard.setSession(encodeSessionHandle(this.#place.connect, zk.session));
      using _outage = reportServerOutages(zk, JSON.stringify(name), { io: this.#io, clock, quiet });
      using progress = showLockWait(name, this.#options, this.#io);
      try {
        await rejectOnAbort(this.#refuseNested(zk), stop);
        const { acl } = this.#place.connect;
        const info = describeThisHolder(this.#options);
        const recorder = values.history
          ? new (await import("../../../src/coordination/job/recorded_hold.ts")).HoldRecorder(zk, {
            kind: "election",
            values,
            info,
            acl,
            clock,
          })
          : null;
        const standing = campaign(zk, name, {
          value,
          clock,
          signal: stop,
          priority: values.priority,
          preempt: values.preempt,
          root: values.root,
          info,
          ...progress.options,
          ...(acl === undefined ? {} : { acl }),
        });
        prepareForCommand(this.#options.command);
        const leadership = await standing;
        return { leadership, recorded: recorder?.begin(leadership) ?? null };
      } catch (thrown) {
        if (stop.aborted || !isSessionEndError(zk.session.ended.reason)) throw thrown;
        this.#print(`the session that stood for "${name}" has expired; standing again at the end of the queue`);
      }
    }
  }

  /** Throws USAGE if the command around this call leads the election: the call would wait for itself forever. */
  async #refuseNested(zk: ZooKeeper): Promise<void> {
    const cookies = outerHolderIds(this.#io.env);
    if (cookies.length === 0) return;
    const { name, values } = this.#options;
    const { leader } = await readLeaderStatus(zk, name, { root: values.root });
    if (leader === null || !cookies.includes(leader.id)) return;
    throw new BatonError("USAGE", `"${name}" is already led by this command: it runs under baton elect ${name}`);
  }

  /** Releases the leadership. If that fails, closes the session, so that its node does not block the next term. */
  async #giveUp(stop: AbortSignal): Promise<void> {
    try {
      await this.#leadership?.release();
    } catch {
      await this.#candidate.close(stop);
    }
  }

  #onSessionOpened(zk: ZooKeeper, isFirst: boolean): void {
    if (isFirst) warnOfLongSessionTimeout(this.#options, this.#io, { place: this.#place, zk });
    this.#file?.follow(zk);
  }

  #openFile(file: string): LeaderFile {
    const { name, values } = this.#options;
    const onProblem = (what: string) => this.#io.err(`baton: ${what}\n`);
    return new LeaderFile({ file, name, root: values.root, clock: this.#deps.clock, onProblem });
  }

  #environment(leadership: Leadership, note: LeaseNoteFile | null): Record<string, string | undefined> {
    const { name, value, values: { passAuth } } = this.#options;
    const job = { leases: [leadership], waitedMs: leadership.waitedMs, place: this.#place, note, passAuth };
    return commandEnvironment(this.#io, { ...job, election: { name, value } });
  }

  #print(what: string): void {
    if (!this.#options.quiet) this.#io.err(`baton: ${what}\n`);
  }
}

function describeLeadership({ name, waitedMs, holderId, fencingToken, sessionTimeoutMs }: Leadership): string {
  return `"${name}" is led after ${Math.round(waitedMs)} ms as ${holderId}, token ${fencingToken}, ` +
    `session timeout ${sessionTimeoutMs} ms`;
}

interface TermDependencies {
  readonly io: Io;
  readonly clock: Clock;
  readonly signals: SignalSource;
  readonly guard: CommandGuard;
}

interface TermResult {
  readonly outcome: ChildOutcome;
  /** Aborts with the reason when leadership is lost. */
  readonly lost: AbortSignal;
  /** True if the --health check has ended the term. */
  readonly isUnhealthy: boolean;
  /** True if the command or a hook could not be killed. The guard process then continues alone. */
  readonly hasBreach: boolean;
}

/**
 * Runs one term of a leader: --on-elected, the command with its --health check, and --on-deposed. All run under one
 * guard process. Neither releases the leadership nor ends the guard process. `stop` aborts at the first signal; from
 * then on nothing is started. Rejects only because of a bug.
 */
async function runTerm(
  options: ElectOptions,
  leadership: Leadership,
  { deps, env, grantedAtMs, stop }: {
    readonly deps: TermDependencies;
    readonly env: Readonly<Record<string, string | undefined>>;
    readonly grantedAtMs: number;
    readonly stop: AbortSignal;
  },
): Promise<TermResult> {
  const { clock } = deps;
  const { onElected, onDeposed } = options.values;
  const lease = new ResignableLease(leadership);
  const term = (outcome: ChildOutcome, last = outcome): TermResult => ({
    outcome,
    lost: lease.lost,
    isUnhealthy: lease.hasResigned,
    hasBreach: last.kind === "breach" && !last.isDead,
  });

  if (onElected !== undefined) {
    const elected = await runElectionHook("--on-elected", onElected, options, { deps, env, lease, signal: stop });
    if (elected.kind === "breach") return term({ ...elected, heldMs: clock.now() - grantedAtMs });
  }
  const outcome = await superviseWithHealth(options, lease, { deps, env, grantedAtMs, stop });
  if (outcome.kind !== "breach") deps.guard.forget(lease.holderId);
  // The hook must not run while a process that could not be killed may still be running.
  if (onDeposed === undefined || outcome.kind === "breach") return term(outcome);
  return term(outcome, await runElectionHook("--on-deposed", onDeposed, options, { deps, env }));
}

async function runElectionHook(
  flag: string,
  line: string,
  { values, quiet }: ElectOptions,
  { deps, env, ...rest }: {
    readonly deps: TermDependencies;
    readonly env: Readonly<Record<string, string | undefined>>;
    readonly lease?: ResignableLease;
    readonly signal?: AbortSignal;
  },
): Promise<ChildOutcome> {
  const { clock, signals, guard, io } = deps;
  const { hookTimeout: timeoutMs, killAfter: killAfterMs, signal: stopSignal } = values;
  const outcome = await runLeadershipHook({
    ...rest,
    line,
    env,
    clock,
    signals,
    guard,
    timeoutMs,
    killAfterMs,
    stopSignal,
  });
  const complaint = describeHookFailure(outcome, timeoutMs);
  if (complaint !== null && !quiet) io.err(`baton: ${flag} ${complaint}\n`);
  return outcome;
}

async function superviseWithHealth(
  options: ElectOptions,
  lease: ResignableLease,
  { deps, env, grantedAtMs, stop }: {
    readonly deps: TermDependencies;
    readonly env: Readonly<Record<string, string | undefined>>;
    readonly grantedAtMs: number;
    readonly stop: AbortSignal;
  },
): Promise<ChildOutcome> {
  const { io, clock, guard } = deps;
  const ending = new AbortController();
  const supervised = toSuperviseOptions(options, io, deps);
  let health: Promise<void> = Promise.resolve();
  const outcome = await superviseChild({
    ...supervised,
    lease,
    guard,
    keepsGuard: true,
    grantedAtMs,
    signal: stop,
    env,
    onStarted({ ended }) {
      void ended.then(() => ending.abort());
      health = resignIfUnhealthy(options, lease, { io, clock, env, signal: ending.signal });
    },
    onEvent(event) {
      if (event.kind === "stopping" || event.kind === "killing") ending.abort();
      supervised.onEvent(event);
    },
  });
  ending.abort();
  await health;
  return outcome;
}

async function resignIfUnhealthy(
  { name, quiet, values }: ElectOptions,
  lease: ResignableLease,
  { io, clock, env, signal }: {
    readonly io: Io;
    readonly clock: Clock;
    readonly env: Readonly<Record<string, string | undefined>>;
    readonly signal: AbortSignal;
  },
): Promise<void> {
  const { health, healthInterval, healthTimeout, healthFailures, onDoubt } = values;
  if (health === undefined) return;
  const cookie = jobCookieEnvironment(lease.holderId, env[jobCookieVariable]);
  const what = await watchCommandHealth({
    intervalMs: healthInterval,
    timeoutMs: healthTimeout,
    failuresMax: healthFailures,
    clock,
    signal,
    isFrozen: () => onDoubt === "freeze" && lease.inDoubt(),
    check: shellHealthCheck({ line: health, env: { ...env, ...cookie }, clock }),
    onFailure: (failure, inARow) => {
      if (!quiet) io.err(`baton: --health ${failure}, ${inARow} of ${healthFailures} in a row\n`);
    },
  });
  if (what !== null) {
    lease.resign(
      `Leadership "${name}" ends: the --health check failed ${healthFailures} times in a row, the last time: ${what}`,
    );
  }
}

export const electCommand = defineCommand({
  name: "elect",
  summary: "run a command while leader",
  usage: "NAME [options] COMMAND [ARGUMENT…]",
  details: [
    "Stands for election, runs the command while it leads, and stops it before another candidate can lead. When " +
    "leadership is lost, or the leader steps down (baton resign, or --health fails), it stands again. A command " +
    "that ends by itself ends baton with its exit code, unless --restart says otherwise. Signals are passed on to " +
    "the command; after TERM, INT and QUIT baton does not stand again.",
    "baton leader prints the leader's --value, baton forward connects to it, and --leader-file stores it. Without " +
    "--value, it is the host name; two candidates on one machine then have the same value, and baton who --kind " +
    "election shows their pids.",
  ],
  examples: [
    ["baton elect cleanup -- ./cleanup.sh", "one of many runs; the others wait"],
    ["baton elect echo --value $(hostname):9000 -- ./echo-server --port 9000", "clients find the leader by its value"],
    [
      "baton elect db --value db1:5432 --health 'pg_isready -q' -- ./primary.sh",
      "step down when the check fails three times",
    ],
    ["baton elect vip --restart never -- ./hold-address.sh", "one term; exit 79 when it is lost"],
    [
      "baton elect echo --value a:1 --priority foreground --preempt -- ./serve.sh",
      "ask a leader of worse priority to step down",
    ],
    [
      "baton elect echo --value a:1 --leader-file /run/echo.leader -- ./serve.sh",
      "store the value of the current leader in a file",
    ],
  ],
  settings: electCommandSettings,
  syntax: oneNameCommandSyntax,
  completes: "elections",
  run: (call) => runElect(readElectOptions(call), call.io),
});
