/**
 * Keeps for a script that runs already the promise that superviseChild keeps for a command: its processes are dead before
 * the server can give the lock to anybody else. The order of things: guard, hand-over, end; or a request to release, after
 * which nothing is the lock's any more. Releases the lease in that case only.
 */
import { readFileSync } from "node:fs";
import { basename } from "node:path";
import { messageOf } from "../../errors.ts";
import { onAbort } from "../../support/abort.ts";
import { printable } from "../../support/text.ts";
import type { ChildEnd, ChildEnding, ChildOutcome } from "../spawn/child_outcome.ts";
import { type ChildEvent, ChildRun } from "../supervise/child_run.ts";
import type { StopReason } from "../supervise/child_plan.ts";
import { cookieEnvironment, cookieVariable } from "../proc/process_marker.ts";
import { loadLibc } from "../libc.ts";
import { leaveGuard, type SuperviseOptions, watchJob } from "../supervise/supervise_child.ts";
import { formatHolds, type Held } from "./hold_list.ts";
import { type ReleaseAnswer, ReleaseBox, type ReleaseRequest } from "./release_mailbox.ts";
import type { ScriptProcess } from "./script_process.ts";
import { ScriptProcesses } from "./script_processes.ts";
import { ScriptWatch } from "./script_watch.ts";
import { sweepUnder } from "./sweep_under.ts";

export interface ScriptHold {
  readonly script: ScriptProcess;
  /** What is taken, in the order of the names. */
  readonly names: readonly string[];
  readonly ids: readonly [string, ...string[]];
  /** What the script holds besides. */
  readonly others: readonly Held[];
  /** Tells the script what it holds; undefined takes a variable away. */
  handOver(variables: Readonly<Record<string, string | undefined>>): void;
  /** Aborts when the script was not told, because nobody is there any more. */
  readonly gone: AbortSignal;
}

/** What is told of processes at a release; more are counted. */
const toldMax = 20;

/** As `superviseChild` resolves, for the script. */
export async function superviseScript(options: SuperviseOptions, hold: ScriptHold): Promise<ChildOutcome> {
  const { clock, guard, lease } = options;
  const { script } = hold;
  const grantedAtMs = options.grantedAtMs ?? clock.now();
  const cookie = lease.holderId;
  const libc = await loadLibc();
  const struck = new AbortController();
  const finish = (ending: ChildEnding): ChildOutcome => {
    leaveGuard(guard, cookie, { ending });
    return { ...ending, pid: script.pid, heldMs: clock.now() - grantedAtMs };
  };
  using box = ReleaseBox.open(cookie); // before the guard watches: what cannot be had is no reason to kill anybody
  const obstacle = await watchJob(options, cookie, struck, { ...script, ownGroup: false });
  if (obstacle !== null) return finish(obstacle);

  const sinceTicks = Math.floor((libc?.bootTimeMs() ?? 0) / 10);
  const processes = new ScriptProcesses({ script, cookie, sinceTicks });
  const end = Promise.withResolvers<ChildEnd>();
  const desk = new ReleaseDesk({ options, box, processes, isDone: () => end.resolve({ kind: "exited", code: 0 }) });
  using watch = new ScriptWatch(script, clock, () => desk.look());
  processes.onStop = () => watch.hurry();
  watch.ended.then(() => end.resolve({ kind: "exited", code: 0 }));
  const run = new ChildRun({
    ...options,
    onEvent: (event) => desk.heard(event),
    guard: { clearedAfterMs: (signal) => guard.clearedAfterMs(cookie, signal) },
    grantedAtMs,
    processes,
    ended: end.promise,
    ownGroup: true,
    struck: struck.signal,
  });
  // Whoever asks for a release wakes the holder, if it sleeps, with the one signal that harms nobody.
  const offs = [
    options.signals.listen(["SIGCONT"], () => desk.look()),
    onAbort(hold.gone, () => {
      processes.letGo();
      end.resolve({ kind: "exited", code: 0 });
    }),
  ];
  hold.handOver(variables(options, cookie, [...hold.others, { names: hold.names, ids: hold.ids, path: box.path }]));
  const ending = await run.finished;
  for (const off of offs) off();
  const outcome = finish(ending);
  await desk.close(ending);
  return outcome;
}

function variables(options: SuperviseOptions, cookie: string, holds: readonly Held[]) {
  return {
    ...options.env,
    ...cookieEnvironment(cookie, options.env[cookieVariable]),
    BATON_HOLD: formatHolds(holds),
  };
}

interface DeskOptions {
  readonly options: SuperviseOptions;
  readonly box: ReleaseBox;
  readonly processes: ScriptProcesses;
  /** The script needs the lock no more. */
  readonly isDone: () => void;
}

/** Where releases are asked for, and answered. */
class ReleaseDesk {
  readonly #desk: DeskOptions;
  /** Why the script is being stopped. */
  #stopping: StopReason | null = null;
  #isSweeping = false;
  #granted: Omit<ReleaseAnswer, "result"> | null = null;

  constructor(desk: DeskOptions) {
    this.#desk = desk;
  }

  heard(event: ChildEvent): void {
    if (event.kind === "guard_kills") this.#stopping ??= "lost";
    if (event.kind === "stopping" || event.kind === "killing") this.#stopping ??= event.reason;
    this.#desk.options.onEvent?.(event);
  }

  look(): void {
    const request = this.#granted === null && !this.#isSweeping ? this.#desk.box.next() : null;
    if (request !== null) void this.#serve(request);
  }

  /** The lock is the script's no more; gives it back if that is what was asked for. */
  async close(ending: ChildEnding): Promise<void> {
    const { box, options } = this.#desk;
    const granted = this.#granted;
    if (granted === null) {
      const request = box.next();
      if (request !== null) box.answer({ ...nothing(request), result: endOf(ending) });
    } else if (ending.kind !== "exited") {
      box.answer({ ...granted, result: endOf(ending) });
    } else {
      // Whatever kept the server from it: when the session has ended, as it will now, the lock is free.
      const result = await options.lease.release().then(() => "released" as const, () => "unknown" as const);
      box.answer({ ...granted, result });
    }
  }

  async #serve(request: ReleaseRequest): Promise<void> {
    const { box, processes, options, isDone } = this.#desk;
    this.#isSweeping = true;
    const find = () => processes.startedUnder(request.asking);
    const left = request.sweeps ? await sweepUnder(find, options) : find();
    this.#isSweeping = false;
    if (this.#stopping !== null) return box.answer({ ...nothing(request), result: reasonOf(this.#stopping) });
    const running = left.slice(0, toldMax).map((pid) => ({ pid, command: commandLine(pid) }));
    const answer = { id: request.id, running, more: left.length - running.length };
    if (request.sweeps && left.length > 0) return box.answer({ ...answer, result: "unswept" });
    this.#granted = answer;
    processes.letGo();
    isDone();
  }
}

function nothing({ id }: ReleaseRequest) {
  return { id, running: [], more: 0 };
}

function endOf(ending: ChildEnding): ReleaseAnswer["result"] {
  return ending.kind === "revoked" || ending.kind === "time_limit" ? ending.kind : "lost";
}

function reasonOf(reason: StopReason): ReleaseAnswer["result"] {
  return reason === "leftovers" ? "lost" : reason;
}

/** For the user's own eyes; the end of a long one is left out. */
function commandLine(pid: number): string {
  try {
    const words = readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0").slice(0, -1);
    const line = printable([basename(words[0] ?? ""), ...words.slice(1)].join(" "));
    return line.length <= 60 ? line : `${line.slice(0, 59)}…`;
  } catch (error) {
    return messageOf(error);
  }
}
