/**
 * Supervises a script that already runs as superviseChild supervises a command: its processes are dead before the
 * server can grant the lock again. The order: guard, variables for the script, end of the script; or a release request,
 * after which no process belongs to the lock. Releases the lease only on such a request.
 */
import { basename } from "node:path";
import { onAbort, TaskScope } from "../../base/support/abort.ts";
import { printable } from "../../base/support/text.ts";
import type { ChildEnd, ChildEnding, ChildOutcome } from "../../base/process/spawn/child_outcome.ts";
import { type ChildEvent, ChildRun } from "../../base/process/supervise/child_run.ts";
import { type SignalSource, stopSignals } from "../../base/process/supervise/signal_source.ts";
import type { StopReason } from "../../base/process/supervise/child_plan.ts";
import {
  jobCookieEnvironment,
  jobCookieVariable,
  type ProcessIdentity,
  type ProcessRow,
  readAncestry,
  readProcess,
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
import { KnownProcesses } from "../../base/process/proc/known_processes.ts";
import { isGuardProcess } from "../../base/process/guard/guard.ts";

/**
 * The signals of a holder process. It obeys none: the life of the script decides, and users signal the script. To the
 * code that waits for the lock, `stop` is a SIGTERM.
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
  /** Holder ids, in the order of the names. */
  readonly ids: readonly [string, ...string[]];
  /** The locks that the script already holds. */
  readonly otherHolds: readonly HeldLocks[];
  /** Sends the variables to the script; undefined unsets one. */
  onHeld(variables: Readonly<Record<string, string | undefined>>): void;
  /** Aborts when `baton hold` has ended before the script has received the variables. */
  readonly abandoned: AbortSignal;
  /** Default: openReleaseSocket. */
  readonly openSocket?: OpenReleaseSocket;
}

/** The number of processes that a response lists; the others are counted. */
const listedProcessesMax = 20;

/** Resolves as `superviseChild` does, for the script. */
export async function superviseScript(options: SuperviseOptions, hold: ScriptHold): Promise<ChildOutcome> {
  const { clock, guard, lease } = options;
  const { script } = hold;
  const grantedAtMs = options.grantedAtMs ?? clock.now();
  const cookie = lease.holderId;
  const libc = await loadLibc();
  const guardKills = new AbortController();
  const finish = (ending: ChildEnding): ChildOutcome => {
    reportEndToGuard(guard, cookie, { ending });
    return { ...ending, pid: script.pid, heldMs: clock.now() - grantedAtMs };
  };
  const releases = new ReleaseHandler(options);
  // Opened before the guard watches: a failure here must not kill the script.
  const openSocket = hold.openSocket ?? openReleaseSocket;
  using socket = await openSocket({ holderId: cookie, script }, (request) => releases.receive(request));
  const lockTicks = Math.floor((libc?.bootTimeMs() ?? 0) / 10);
  const obstacle = await letGuardWatchCommand(options, cookie, guardKills, { ...script, ownGroup: false });
  if (obstacle !== null) return finish(obstacle);

  const processes = new ProcessesOfScript({ script, cookie, lockTicks });
  const end = Promise.withResolvers<ChildEnd>();
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
  using _abandoned = new TaskScope(onAbort(hold.abandoned, release));
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

/** Handles one request for the release after the other. A request that is accepted is answered after the release. */
class ReleaseHandler {
  readonly #options: SuperviseOptions;
  readonly #waiting: ReceivedReleaseRequest[] = [];
  #processes: ProcessesOfScript | null = null;
  #release = () => {};
  /** Why the script is being stopped. */
  #stopReason: StopReason | null = null;
  #isBusy = false;
  /** The processes are stopped until the servers respond. */
  #isFrozen = false;
  /** The request that was accepted, and its response without the result, which follows from the release. */
  #accepted: { readonly request: ReceivedReleaseRequest; readonly left: Omit<HolderReleaseResponse, "result"> } | null =
    null;
  /** The result for requests that come after the end. */
  #final: HolderReleaseResponse["result"] | null = null;

  constructor(options: SuperviseOptions) {
    this.#options = options;
  }

  onEvent(event: ChildEvent): void {
    if (event.kind === "frozen" || event.kind === "resumed") this.#isFrozen = event.kind === "frozen";
    if (event.kind === "guard_kills") this.#stopReason ??= "lost";
    if (event.kind === "stopping" || event.kind === "killing") this.#stopReason ??= event.reason;
    this.#options.onEvent?.(event);
  }

  /** The supervision has begun; `release` lets the lock go. */
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

  /** The supervision has ended: releases the lease if a request was accepted, and responds to all requests. */
  async close(ending: ChildEnding): Promise<void> {
    const accepted = this.#accepted;
    let result = resultOf(ending);
    if (accepted !== null && ending.kind === "exited") {
      // The outcome is unknown after any failure: the lock is free when the session has ended, which it will do now.
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
    // When the lease is over, its processes have to die, also if that is noticed later.
    const stopReason = this.#stopReason ?? (lease.isHeld() ? null : "lost");
    if (stopReason !== null) return respond(request, stopReason === "leftovers" ? "lost" : stopReason);
    const running = left.slice(0, listedProcessesMax).map((pid) => ({ pid, command: commandLine(pid) }));
    const response = { running, more: left.length - running.length };
    if (request.stopsProcesses && left.length > 0) return request.respond({ ...response, result: "not_stopped" });
    this.#accepted = { request, left: response };
    if (this.#isFrozen) processes.signalAll("SIGCONT"); // no process wakes them after the release
    this.#release();
  }
}

/** Responds that the lock is not held any longer. */
function respond(request: ReceivedReleaseRequest, result: HolderReleaseResponse["result"]): void {
  request.respond({ result, running: [], more: 0 });
}

function resultOf(ending: ChildEnding): HolderReleaseResponse["result"] {
  return ending.kind === "revoked" || ending.kind === "time_limit" ? ending.kind : "lost";
}

/** The command line for messages, cut to 60 characters; empty if the process has ended. */
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

/** The largest part of the time that is spent on looking for the script's descendants. */
const lookPartMax = 1 / 20;

/**
 * The processes of a script that holds a lock: finds them, signals them, reports which are alive. baton is not their
 * parent, and the script shares its process group with other programs (a terminal's, cron's), so that no group is
 * signalled. Processes are found by descent from the script, and by the mark in their environment.
 */
export class ProcessesOfScript extends CommandProcesses {
  readonly #script: ProcessIdentity;
  readonly #known: KnownProcesses;
  #isStopped = false;
  #isReleased = false;
  #nextLookMs = 0;
  /** Called when the script is told to end. */
  onStop: () => void = () => {};

  constructor({ script, cookie, lockTicks }: ScriptProcessesOptions) {
    super({ pid: script.pid, ownGroup: false, cookie });
    this.#script = script;
    this.#known = new KnownProcesses(cookie, script, lockTicks);
  }

  /** The lock is being released: no process belongs to it any longer. */
  release(): void {
    this.#isReleased = true;
  }

  /** Passes no signals on: users send them to the script. */
  override signalCommand(): void {}

  override signalAll(signal: NodeJS.Signals, options?: { readonly isRepeated?: boolean }): void {
    if (signal !== "SIGSTOP" && signal !== "SIGCONT" && !this.#isReleased) {
      this.#isStopped ||= !this.hasEnded;
      this.onStop();
    }
    super.signalAll(signal, options);
  }

  /** Remembers the descendants: those that lose their parents later have no mark if they are subshells. */
  look(): void {
    const startMs = performance.now();
    if (startMs < this.#nextLookMs) return;
    this.#known.rememberDescendants();
    const endMs = performance.now();
    this.#nextLookMs = endMs + (endMs - startMs) / lookPartMax;
  }

  /** Returns the known processes that have lost their parents. None of them is baton's child to reap. */
  reapOrphans(): readonly number[] {
    this.#known.rememberDescendants();
    return this.#isReleased ? [] : this.#known.orphans();
  }

  /**
   * Finds the running processes that the script has started under the lock. Left out: the script, `requester` and its
   * ancestors (subshells, a baton lock with its guard), and what these have started since (the other end of its pipe).
   * Null: the requester has ended, so that its ancestors are not known.
   */
  finderFor(requester: ProcessIdentity): (() => FoundProcesses) | null {
    const ancestors = new Map([[this.#script.pid, this.#script.startTicks]]);
    if (readProcess(requester.pid)?.startTicks !== requester.startTicks) return null;
    for (const row of readAncestry(requester.pid)) {
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

  /** The processes that have to be dead before the lock can be granted again. None after `release()`. */
  protected find(): FoundProcesses {
    if (this.#isReleased) return { alive: [], isCertain: true };
    const isWanted = (pid: number) => !this.hasEnded || this.#isStopped || !this.#known.isOlder(pid);
    const { alive, isCertain } = this.#known.findCertain(null, isWanted);
    return { alive, isCertain: isCertain || alive.length > 0 };
  }
}

interface FoundProcesses {
  readonly alive: readonly number[];
  /** If `alive` is empty, no process is alive. */
  readonly isCertain: boolean;
}

/** Compares pids within a tick of 10 ms: the kernel counts them up. */
function startedBefore(one: ProcessIdentity, other: ProcessIdentity): boolean {
  return one.startTicks === other.startTicks ? one.pid < other.pid : one.startTicks < other.startTicks;
}

/** Milliseconds between checks of processes that were told to stop. */
const stopCheckIntervalMs = 20;

/** How long processes have to end after SIGKILL. */
const killGraceMs = 1000;

/**
 * Sends the stop signal to each process that `find` returns, once, and SIGKILL after `killAfterMs` to those that are
 * left. Resolves with the processes that could not be stopped: none, as a rule.
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
      if (!signalled.has(pid)) sendSignal(pid, "SIGCONT"); // a stopped process reacts to no other signal
      signalled.add(pid);
    }
    await sleep(clock, stopCheckIntervalMs);
  }
}
