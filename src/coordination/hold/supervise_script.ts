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
import type { StopReason } from "../../base/process/supervise/child_plan.ts";
import {
  jobCookieEnvironment,
  jobCookieVariable,
  type ProcessRow,
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
  HolderReleaseMailbox,
  type HolderReleaseRequest,
  type HolderReleaseResponse,
  type OwnHolderMailbox,
} from "./release_mailbox.ts";
import { type CopiesOfScript, copiesOfScript } from "../../base/process/proc/forked_subshells.ts";
import { type ScriptProcess, ScriptWatch } from "./script_process.ts";
import { sleep } from "../../base/support/deadline.ts";
import { CommandProcesses } from "../../base/process/proc/job_processes.ts";
import { KnownProcesses } from "../../base/process/proc/known_processes.ts";
import { isGuardProcess } from "../../base/process/guard/guard.ts";

export interface ScriptHold {
  readonly script: ScriptProcess;
  readonly names: readonly string[];
  /** Holder ids, in the order of the names. */
  readonly ids: readonly [string, ...string[]];
  /** The locks that the script already holds. */
  readonly otherHolds: readonly HeldLocks[];
  /** Sends the variables to the script; undefined unsets one. */
  onHeld(variables: Readonly<Record<string, string | undefined>>): void;
  /** Aborts when `baton hold` has ended before the script has received the variables. */
  readonly abandoned: AbortSignal;
  /** Default: HolderReleaseMailbox.open. */
  readonly openMailbox?: (holderId: string, script: ScriptProcess) => OwnHolderMailbox;
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
  // Opened before the guard watches: a failure here must not kill the script.
  using mailbox = (hold.openMailbox ?? HolderReleaseMailbox.open)(cookie, script);
  const sinceTicks = Math.floor((libc?.bootTimeMs() ?? 0) / 10);
  // Read here: the script may have ended when a guard looks at it.
  const copies = copiesOfScript(script.pid, sinceTicks);
  const obstacle = await letGuardWatchCommand(options, cookie, guardKills, { ...script, ownGroup: false, copies });
  if (obstacle !== null) return finish(obstacle);

  const processes = new ProcessesOfScript({ script, cookie, copies });
  const end = Promise.withResolvers<ChildEnd>();
  const onReleased = () => end.resolve({ kind: "exited", code: 0 });
  const releases = new ReleaseHandler({ options, mailbox, processes, onReleased });
  using watch = new ScriptWatch(script, clock, () => releases.checkMailbox());
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
  // `baton release` sends SIGCONT: it wakes a stopped holder, and has no other effect.
  using _listeners = new TaskScope(
    options.signals.listen(["SIGCONT"], () => releases.checkMailbox()),
    onAbort(hold.abandoned, () => {
      processes.release();
      end.resolve({ kind: "exited", code: 0 });
    }),
  );
  hold.onHeld({
    ...options.env,
    ...jobCookieEnvironment(cookie, options.env[jobCookieVariable]),
    BATON_HOLD: formatHeldLocks([...hold.otherHolds, { names: hold.names, ids: hold.ids, path: mailbox.path }]),
  });
  const ending = await run.finished;
  const outcome = finish(ending);
  await releases.close(ending);
  return outcome;
}

interface ReleaseHandlerOptions {
  readonly options: SuperviseOptions;
  readonly mailbox: OwnHolderMailbox;
  readonly processes: ProcessesOfScript;
  /** The lock may be released. */
  readonly onReleased: () => void;
}

class ReleaseHandler {
  readonly #options: ReleaseHandlerOptions;
  /** Why the script is being stopped. */
  #stopReason: StopReason | null = null;
  #isBusy = false;
  /** The processes are stopped until the servers respond. */
  #isFrozen = false;
  /** The response to the request that was accepted; its result follows from the release. */
  #accepted: Omit<HolderReleaseResponse, "result"> | null = null;

  constructor(options: ReleaseHandlerOptions) {
    this.#options = options;
  }

  onEvent(event: ChildEvent): void {
    if (event.kind === "frozen" || event.kind === "resumed") this.#isFrozen = event.kind === "frozen";
    if (event.kind === "guard_kills") this.#stopReason ??= "lost";
    if (event.kind === "stopping" || event.kind === "killing") this.#stopReason ??= event.reason;
    this.#options.options.onEvent?.(event);
  }

  checkMailbox(): void {
    const request = this.#accepted === null && !this.#isBusy ? this.#options.mailbox.nextRequest() : null;
    if (request !== null) void this.#handle(request);
  }

  /** The supervision has ended: releases the lease if a request was accepted, and responds to the last request. */
  async close(ending: ChildEnding): Promise<void> {
    const { mailbox, options } = this.#options;
    const accepted = this.#accepted;
    if (accepted === null) {
      const request = mailbox.nextRequest();
      if (request !== null) mailbox.respond({ ...emptyResponse(request), result: resultOf(ending) });
    } else if (ending.kind !== "exited") {
      mailbox.respond({ ...accepted, result: resultOf(ending) });
    } else {
      // The outcome is unknown after any failure: the lock is free when the session has ended, which it will do now.
      const result = await options.lease.release().then(() => "released" as const, () => "unknown" as const);
      mailbox.respond({ ...accepted, result });
    }
  }

  async #handle(request: HolderReleaseRequest): Promise<void> {
    const { mailbox, processes, options, onReleased } = this.#options;
    const find = processes.finderFor(request.requester);
    if (find === null) return; // no process waits for a response
    this.#isBusy = true;
    const left = request.stopsProcesses ? await stopProcesses(find, options) : find().alive;
    this.#isBusy = false;
    const { clock, lease } = options;
    clock.noticeSuspend();
    // When the lease is over, its processes have to die, also if that is noticed later.
    const stopReason = this.#stopReason ?? (lease.isHeld() ? null : "lost");
    if (stopReason !== null) {
      return mailbox.respond({ ...emptyResponse(request), result: resultOfStop(stopReason) });
    }
    const running = left.slice(0, listedProcessesMax).map((pid) => ({ pid, command: commandLine(pid) }));
    const response = { id: request.id, running, more: left.length - running.length };
    if (request.stopsProcesses && left.length > 0) return mailbox.respond({ ...response, result: "not_stopped" });
    this.#accepted = response;
    if (this.#isFrozen) processes.signalAll("SIGCONT"); // no process wakes them after the release
    processes.release();
    onReleased();
  }
}

function emptyResponse({ id }: HolderReleaseRequest) {
  return { id, running: [], more: 0 };
}

function resultOf(ending: ChildEnding): HolderReleaseResponse["result"] {
  return ending.kind === "revoked" || ending.kind === "time_limit" ? ending.kind : "lost";
}

function resultOfStop(reason: StopReason): HolderReleaseResponse["result"] {
  return reason === "leftovers" ? "lost" : reason;
}

/** The command line for messages, cut to 60 characters; empty if the process has ended. */
function commandLine(pid: number): string {
  const [program = "", ...args] = readProcessArguments(pid);
  const line = printable([basename(program), ...args].join(" "));
  return line.length <= 60 ? line : `${line.slice(0, 59)}…`;
}

interface ScriptProcessesOptions {
  readonly script: ScriptProcess;
  readonly cookie: string;
  readonly copies: CopiesOfScript;
}

/**
 * The processes of a script that holds a lock: finds them, signals them, reports which are alive. baton is not their
 * parent, and the script shares its process group with other programs (a terminal's, cron's), so that no group is
 * signalled. Processes are found by descent from the script, by the mark in their environment, and as copies of the
 * script whose parents have ended.
 */
export class ProcessesOfScript extends CommandProcesses {
  readonly #script: ScriptProcess;
  readonly #known: KnownProcesses;
  #isStopped = false;
  #isReleased = false;
  /** Called when the script is told to end. */
  onStop: () => void = () => {};

  constructor({ script, cookie, copies }: ScriptProcessesOptions) {
    super({ pid: script.pid, ownGroup: false, cookie });
    this.#script = script;
    this.#known = new KnownProcesses(cookie, script, copies);
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

  /**
   * Remembers the descendants, so that those that lose their parents later are known. None of them is baton's child to
   * reap.
   */
  reapOrphans(): readonly number[] {
    this.#known.rememberDescendants();
    return this.#isReleased ? [] : this.#known.orphans();
  }

  /**
   * Finds the running processes that the script has started under the lock. Left out: the script, `requester` and its
   * ancestors (subshells, a baton lock with its guard), and what these have started since (the other end of its pipe).
   * Null: the requester has ended, so that its ancestors are not known.
   */
  finderFor(requester: ScriptProcess): (() => FoundProcesses) | null {
    const ancestors = new Map([[this.#script.pid, this.#script.startTicks]]);
    let row = readProcess(requester.pid);
    if (row?.startTicks !== requester.startTicks) return null;
    for (; row !== null && !ancestors.has(row.pid); row = readProcess(row.parent)) {
      ancestors.set(row.pid, row.startTicks);
    }
    const isAncestor = ({ pid, startTicks }: ScriptProcess) => ancestors.get(pid) === startTicks;
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
function startedBefore(one: ScriptProcess, other: ScriptProcess): boolean {
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
