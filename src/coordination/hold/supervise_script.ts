/**
 * Supervises a running script, as superviseChild supervises a command: its processes are dead before the servers can
 * grant the lock again. The script gets the variables only after the guard process has begun to watch. Supervision ends
 * with the script, or with a release request; after that, no process belongs to the lock. Only a release request
 * releases the lease.
 */
import { basename } from "node:path";
import { CleanupScope, onAbort } from "../../base/support/abort.ts";
import { printable } from "../../base/support/text.ts";
import type { ChildExitStatus, ChildOutcome, SupervisedChildEnding } from "../../base/process/spawn/child_outcome.ts";
import { ChildRun, type SupervisionEvent } from "../../base/process/supervise/child_run.ts";
import { type SignalSource, stopSignals } from "../../base/process/supervise/signal_source.ts";
import type { StopReason } from "../../base/process/supervise/child_plan.ts";
import {
  jobCookieEnvironment,
  jobCookieVariable,
  type ProcessIdentity,
  type ProcessRow,
  readProcess,
  readProcessAncestry,
  readProcessArguments,
  sendSignal,
} from "../../base/process/proc/process_table.ts";
import { loadLibc } from "../../base/process/libc.ts";
import {
  guardForCommand,
  letGuardWatchCommand,
  reportEndToGuard,
  type SuperviseOptions,
} from "../../base/process/supervise/supervise_child.ts";
import { formatHeldLocks, type HeldLocks } from "./hold_list.ts";
import {
  type HolderReleaseResponse,
  type OpenReleaseSocket,
  openReleaseSocket,
  type ReceivedReleaseRequest,
} from "./release_socket.ts";
import { ScriptWatch } from "./script_process.ts";
import { sleep } from "../../base/support/deadline.ts";
import { CommandProcesses } from "../../base/process/proc/job_processes.ts";
import { JobProcessFinder } from "../../base/process/proc/known_processes.ts";
import { isGuardProcess } from "../../base/process/guard/guard.ts";

/**
 * Returns the signals of a holder process. It ignores real signals: users signal the script, and the hold ends with the
 * script. The code that waits for the lock gets a SIGTERM when `stop` aborts.
 */
export function holderSignals(real: SignalSource, stop: AbortSignal): SignalSource & Disposable {
  const unlisten = real.listen([...stopSignals, "SIGTSTP"], () => {});
  return {
    hangUpIgnored: true,
    listen: (signals, listener) => onAbort(signals.includes("SIGTERM") ? stop : undefined, () => listener("SIGTERM")),
    [Symbol.dispose]: unlisten,
  };
}

export interface ScriptHold {
  readonly script: ProcessIdentity;
  readonly names: readonly string[];
  /** The holder IDs, in the order of the names. */
  readonly ids: readonly [string, ...string[]];
  /** The locks that the script already holds. */
  readonly otherHolds: readonly HeldLocks[];
  /** Sends the variables to the script; undefined unsets a variable. */
  onHeld(variables: Readonly<Record<string, string | undefined>>): void;
  /** Aborts when `baton hold` has ended before the script has received the variables. */
  readonly abandoned: AbortSignal;
  readonly openSocket?: OpenReleaseSocket;
}

/** A response lists at most this many processes, and counts the others. */
const listedProcessesMax = 20;

/** Supervises the script. Resolves like `superviseChild`. */
export async function superviseScript(options: SuperviseOptions, hold: ScriptHold): Promise<ChildOutcome> {
  const { clock, guard, lease } = options;
  const { script } = hold;
  const grantedAtMs = options.grantedAtMs ?? clock.now();
  const cookie = lease.holderId;
  const libc = await loadLibc();
  const guardKills = new AbortController();
  const finish = (ending: SupervisedChildEnding): ChildOutcome => {
    reportEndToGuard(guard, cookie, { ending });
    return { ...ending, pid: script.pid, heldMs: clock.now() - grantedAtMs };
  };
  const releases = new ReleaseHandler(options);
  // Opens the socket before the guard process watches: a failure to open it must not kill the script.
  const openSocket = hold.openSocket ?? openReleaseSocket;
  using socket = await openSocket({ holderId: cookie, script }, (request) => releases.receive(request));
  const lockTicks = Math.floor((libc?.bootTimeMs() ?? 0) / 10);
  const obstacle = await letGuardWatchCommand(options, cookie, guardKills, {
    ...script,
    ownGroup: false,
    isScript: true,
  });
  if (obstacle !== null) return finish(obstacle);

  const processes = new ProcessesOfScript({ script, cookie, lockTicks });
  const end = Promise.withResolvers<ChildExitStatus>();
  using watch = new ScriptWatch(script, clock, () => processes.look());
  processes.onStop = () => watch.checkFaster();
  watch.ended.then(() => end.resolve({ kind: "exited", code: 0 }));
  const run = new ChildRun({
    ...options,
    onEvent: (event) => releases.onEvent(event),
    guard: guardForCommand(guard, cookie),
    grantedAtMs,
    processes,
    ended: end.promise,
    ownGroup: true,
    guardKills: guardKills.signal,
  });
  const release = () => {
    processes.release();
    end.resolve({ kind: "exited", code: 0 });
  };
  releases.start(processes, release);
  using _abandoned = new CleanupScope(onAbort(hold.abandoned, release));
  hold.onHeld({
    ...options.env,
    ...jobCookieEnvironment(cookie, options.env[jobCookieVariable]),
    BATON_HOLD: formatHeldLocks([...hold.otherHolds, { names: hold.names, ids: hold.ids, path: socket.path }]),
  });
  const ending = await run.finished;
  const outcome = finish(ending);
  await releases.close(ending);
  return outcome;
}

/** Handles release requests one after the other. An accepted request gets its response after the release. */
class ReleaseHandler {
  readonly #options: SuperviseOptions;
  readonly #waiting: ReceivedReleaseRequest[] = [];
  #processes: ProcessesOfScript | null = null;
  #release = () => {};
  #stopReason: StopReason | null = null;
  #isBusy = false;
  /** True if the processes are suspended until the servers respond. */
  #isFrozen = false;
  /** The accepted request, and its response without the result. The result is known only after the release. */
  #accepted: { readonly request: ReceivedReleaseRequest; readonly left: Omit<HolderReleaseResponse, "result"> } | null =
    null;
  /** The result for requests that arrive after the end; null before the end. */
  #final: HolderReleaseResponse["result"] | null = null;

  constructor(options: SuperviseOptions) {
    this.#options = options;
  }

  onEvent(event: SupervisionEvent): void {
    if (event.kind === "frozen" || event.kind === "resumed") this.#isFrozen = event.kind === "frozen";
    if (event.kind === "guard_kills") this.#stopReason ??= "lost";
    if (event.kind === "stopping" || event.kind === "killing") this.#stopReason ??= event.reason;
    this.#options.onEvent?.(event);
  }

  /**
   * Starts to handle requests; called when supervision has begun. `release` ends supervision, so that the lock can be
   * released.
   */
  start(processes: ProcessesOfScript, release: () => void): void {
    this.#processes = processes;
    this.#release = release;
    void this.#handleNext();
  }

  receive(request: ReceivedReleaseRequest): void {
    if (this.#final !== null) return respond(request, this.#final);
    this.#waiting.push(request);
    void this.#handleNext();
  }

  /**
   * Ends the handling of requests; called after supervision. Releases the lease if a request was accepted, and responds
   * to all requests.
   */
  async close(ending: SupervisedChildEnding): Promise<void> {
    const accepted = this.#accepted;
    let result = resultOf(ending);
    if (accepted !== null && ending.kind === "exited") {
      // The outcome is unknown after any failure. The lock becomes free when the session ends, which happens next.
      result = await this.#options.lease.release().then(() => "released" as const, () => "unknown" as const);
    }
    accepted?.request.respond({ ...accepted.left, result });
    this.#final = result;
    for (const request of this.#waiting.splice(0)) respond(request, result);
  }

  async #handleNext(): Promise<void> {
    const processes = this.#processes;
    if (processes === null || this.#isBusy || this.#accepted !== null) return;
    const request = this.#waiting.shift();
    if (request === undefined) return;
    this.#isBusy = true;
    await this.#handle(request, processes);
    this.#isBusy = false;
    void this.#handleNext();
  }

  async #handle(request: ReceivedReleaseRequest, processes: ProcessesOfScript): Promise<void> {
    const options = this.#options;
    const find = processes.finderFor(request.requester);
    if (find === null) return; // no process waits for a response
    const left = request.stopsProcesses ? await stopProcesses(find, options) : find().alive;
    const { clock, lease } = options;
    clock.noticeSuspend();
    // When the lease has ended, its processes must die, even if the end is detected late.
    const stopReason = this.#stopReason ?? (lease.isHeld() ? null : "lost");
    if (stopReason !== null) return respond(request, stopReason === "leftovers" ? "lost" : stopReason);
    const running = left.slice(0, listedProcessesMax).map((pid) => ({ pid, command: commandLine(pid) }));
    const response = { running, more: left.length - running.length };
    if (request.stopsProcesses && left.length > 0) return request.respond({ ...response, result: "not_stopped" });
    this.#accepted = { request, left: response };
    if (this.#isFrozen) processes.signalAll("SIGCONT"); // no other process would resume them after the release
    this.#release();
  }
}

function respond(request: ReceivedReleaseRequest, result: HolderReleaseResponse["result"]): void {
  request.respond({ result, running: [], more: 0 });
}

function resultOf(ending: SupervisedChildEnding): HolderReleaseResponse["result"] {
  return ending.kind === "revoked" || ending.kind === "time_limit" ? ending.kind : "lost";
}

/** Returns the command line for messages, cut to 60 characters; empty if the process has ended. */
function commandLine(pid: number): string {
  const [program = "", ...args] = readProcessArguments(pid);
  const line = printable([basename(program), ...args].join(" "));
  return line.length <= 60 ? line : `${line.slice(0, 59)}…`;
}

interface ScriptProcessesOptions {
  readonly script: ProcessIdentity;
  readonly cookie: string;
  /** The start of the lock, in clock ticks since boot. */
  readonly lockTicks: number;
}

/** The largest share of time that searching for the script's descendants may take. */
const lookPartMax = 1 / 20;

/**
 * The processes of a script that holds a lock. Finds and signals them, and reports which are alive. baton is not their
 * parent. The script shares its process group with other programs (a terminal's or cron's), so baton signals no group.
 * baton finds processes as descendants of the script, or by the holder ID in their environment.
 */
export class ProcessesOfScript extends CommandProcesses {
  readonly #script: ProcessIdentity;
  readonly #known: JobProcessFinder;
  #isStopped = false;
  #isReleased = false;
  #nextLookMs = 0;
  onStop: () => void = () => {};

  constructor({ script, cookie, lockTicks }: ScriptProcessesOptions) {
    super({ pid: script.pid, ownGroup: false, cookie });
    this.#script = script;
    this.#known = new JobProcessFinder(cookie, script, lockTicks);
  }

  /** Called when the lock is being released. From then on, no process belongs to the lock. */
  release(): void {
    this.#isReleased = true;
  }

  /** Does nothing: users send signals to the script, not to baton. */
  override signalCommand(): void {}

  override signalAll(signal: NodeJS.Signals, options?: { readonly isRepeated?: boolean }): void {
    if (signal !== "SIGSTOP" && signal !== "SIGCONT" && !this.#isReleased) {
      this.#isStopped ||= !this.hasEnded;
      this.onStop();
    }
    super.signalAll(signal, options);
  }

  /**
   * Remembers the descendants. Without this, baton would not find subshells that later lose their parents, because the
   * holder ID is not in their environment.
   */
  look(): void {
    const startMs = performance.now();
    if (startMs < this.#nextLookMs) return;
    this.#known.rememberDescendants();
    const endMs = performance.now();
    this.#nextLookMs = endMs + (endMs - startMs) / lookPartMax;
  }

  /** Returns the known processes that have lost their parents. Reaps none, because they are not baton's children. */
  reapOrphans(): readonly number[] {
    this.#known.rememberDescendants();
    return this.#isReleased ? [] : this.#known.orphans();
  }

  /**
   * Returns a function that finds the running processes that the script has started under the lock. It omits the
   * script, `requester` with its ancestors (such as subshells), and processes that these have started since (such as
   * the other end of a pipe). Returns null if the requester has ended, because its ancestors are then unknown.
   */
  finderFor(requester: ProcessIdentity): (() => FoundProcesses) | null {
    const ancestors = new Map([[this.#script.pid, this.#script.startTicks]]);
    if (readProcess(requester.pid)?.startTicks !== requester.startTicks) return null;
    for (const row of readProcessAncestry(requester.pid)) {
      if (ancestors.has(row.pid)) break;
      ancestors.set(row.pid, row.startTicks);
    }
    const isAncestor = ({ pid, startTicks }: ProcessIdentity) => ancestors.get(pid) === startTicks;
    const isOtherEnd = (found: ProcessRow): boolean => {
      for (let at: ProcessRow | null = found; at !== null; at = readProcess(at.parent)) {
        if (isAncestor(at)) return true;
        if (startedBefore(at, requester)) return false;
      }
      return false;
    };
    const isWanted = (pid: number): boolean => {
      const found = readProcess(pid);
      if (found === null || isAncestor(found) || this.#known.isOlder(pid)) return false;
      return !(ancestors.has(found.parent) && isGuardProcess(pid)) && !isOtherEnd(found);
    };
    return () => this.#known.findCertain(null, isWanted);
  }

  /** Returns the processes that must be dead before the lock can be granted again. Returns none after `release()`. */
  protected find(): FoundProcesses {
    if (this.#isReleased) return { alive: [], isCertain: true };
    const isWanted = (pid: number) => !this.hasEnded || this.#isStopped || !this.#known.isOlder(pid);
    const { alive, isCertain } = this.#known.findCertain(null, isWanted);
    return { alive, isCertain: isCertain || alive.length > 0 };
  }
}

interface FoundProcesses {
  readonly alive: readonly number[];
  /** True if an empty `alive` proves that no process is alive. */
  readonly isCertain: boolean;
}

/**
 * Returns true if the first process was started before the other. Within a tick of 10 ms, compares pids, because the
 * kernel assigns them in ascending order.
 */
function startedBefore(one: ProcessIdentity, other: ProcessIdentity): boolean {
  return one.startTicks === other.startTicks ? one.pid < other.pid : one.startTicks < other.startTicks;
}

/** The time between checks of processes that were told to stop, in milliseconds. */
const stopCheckIntervalMs = 20;

/** How long processes have to end after SIGKILL, in milliseconds. */
const killGraceMs = 1000;

/**
 * Sends the stop signal once to each process that `find` returns, and SIGKILL after `killAfterMs` to those that still
 * run. Resolves with the processes that could not be stopped.
 */
async function stopProcesses(
  find: () => FoundProcesses,
  { clock, killAfterMs, stopSignal }: Pick<SuperviseOptions, "clock" | "killAfterMs" | "stopSignal">,
): Promise<readonly number[]> {
  const killAtMs = clock.now() + killAfterMs;
  const signalled = new Set<number>();
  for (;;) {
    const { alive: left, isCertain } = find();
    const nowMs = clock.now();
    if ((left.length === 0 && isCertain) || nowMs >= killAtMs + killGraceMs) return left;
    for (const pid of left) {
      if (nowMs >= killAtMs) sendSignal(pid, "SIGKILL");
      else if (!signalled.has(pid)) sendSignal(pid, stopSignal);
      if (!signalled.has(pid)) sendSignal(pid, "SIGCONT"); // a suspended process cannot react
      signalled.add(pid);
    }
    await sleep(clock, stopCheckIntervalMs);
  }
}
