/**
 * Runs a shell command for each message, with the message as its stdin. When baton ends, even by SIGKILL, a guard
 * process kills the command. Therefore the command of an earlier process has ended when the next process gets the
 * message.
 */
import { closeSync } from "node:fs";
import { childEnvironment, spawnChild } from "../../src/base/process/spawn/spawn_child.ts";
import { openMessageBodyFile } from "../../src/base/process/spawn/unnamed_file.ts";
import {
  hasProcessTable,
  isProcessGroupAlive,
  jobCookieEnvironment,
  jobCookieVariable,
  readProcess,
  sendSignal,
} from "../../src/base/process/proc/process_table.ts";
import { JobProcessFinder } from "../../src/base/process/proc/known_processes.ts";
import { ownSignalSource } from "../../src/base/process/supervise/signal_source.ts";
import { TwoStageStopListener } from "../../src/base/process/supervise/two_stage_stop.ts";
import { type CommandGuard, startGuard } from "../../src/base/process/guard/guard.ts";
import { BatonError } from "../../src/base/errors.ts";
import type { Clock } from "../../src/base/support/clock.ts";
import { sha256Hex } from "../../src/base/support/digest.ts";
import { sleep } from "../../src/base/support/deadline.ts";
import { type ExitCode, exitCodes } from "../../src/base/exit_codes.ts";

export interface MessageCommandOptions {
  readonly line: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Identifies the client and the topic. All processes that may get the same messages have the same value. */
  readonly place: string;
  /** How long to wait for processes of the command that cannot be killed, in milliseconds. */
  readonly waitMs: number;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** Shows a sentence to the user, even if the user asked for quiet output. */
  readonly say: (sentence: string) => void;
}

export interface MessageForCommand {
  readonly id: number;
  readonly body: Uint8Array;
  readonly redelivered: boolean;
}

/**
 * Matches a line that consists of one program with a path and its arguments. When such a program runs, no shell is
 * needed.
 */
const oneProgram = /^[\w.~$"{}-]*\/[^\s;&|()`'\\<>]+([ \t][^;&|()`\n]*)?$/;

/**
 * Returns `exec LINE` if the line consists of one program; otherwise returns the line. With `exec`, the program
 * replaces the shell, so signals reach the program, and its exit code becomes the code of the line. Some shells do this
 * by themselves; dash does not, and when a signal ends dash, the exit code of the program is unknown.
 */
export function execInsteadOfShell(line: string): string {
  const words = line.trim();
  return oneProgram.test(words) ? `exec ${words}` : line;
}

/**
 * Resolves when no process of the group is alive. There is no time limit, because a second stop signal kills the group.
 */
async function untilGroupIsEmpty(group: number, clock: Clock): Promise<void> {
  while (isProcessGroupAlive(group)) await sleep(clock, checkEveryMs);
}

/** The time limit of the guard, in milliseconds. It is some years, because the guard must act only when baton ends. */
const guardMs = 1e11;
/**
 * How long the guard of an earlier run may take to end its processes, in milliseconds. After SIGKILL, the processes may
 * take the same time to end.
 */
const earlierRunMsMax = 2000;
const killMsMax = 10_000;
const checkEveryMs = 20;

export interface MessageCommandEnd {
  readonly code: ExitCode;
  /** The signal that ended the command; null if the command exited by itself. */
  readonly signal: NodeJS.Signals | null;
}

export class MessageCommand implements Disposable {
  readonly #options: MessageCommandOptions;
  readonly #guard: CommandGuard;

  constructor(options: MessageCommandOptions) {
    this.#options = options;
    this.#guard = startGuard(options.say);
  }

  /**
   * Runs the command, and resolves when it has ended. Passes a stop signal on to the command, and then waits for all
   * processes of its group, not only for the shell; a second signal kills them. Rejects with START_FAILED if there is
   * no guard, FENCE_BREACH if processes of an earlier run cannot be killed, IO if there is no room for the message, or
   * with the signal's reason before the command has started.
   */
  async run(message: MessageForCommand, env: Readonly<Record<string, string | undefined>>): Promise<MessageCommandEnd> {
    const { signal, place, env: inherited } = this.#options;
    const every = `message-${sha256Hex(`${place}\n${message.id}`).slice(0, 32)}`;
    if (message.redelivered) await this.#endEarlierRun(message.id, every);
    // Each run has a mark of its own. The guard of an earlier run may act late, and then ends only the processes with
    // its own mark.
    const cookie = `run-${crypto.randomUUID()}`;
    const marks = jobCookieEnvironment(
      cookie,
      jobCookieEnvironment(every, inherited[jobCookieVariable])[jobCookieVariable],
    );
    await this.#guard.watch(cookie, {
      remainingMs: () => guardMs,
      subscribe: () => () => {},
      onKill: () => {},
      onReplaced: () => {},
      signal,
    });
    try {
      return await this.#run(message.body, { ...inherited, ...env, ...marks }, cookie);
    } finally {
      this.#guard.forget(cookie);
    }
  }

  [Symbol.dispose](): void {
    this.#guard.end();
  }

  async #run(
    body: Uint8Array,
    env: Readonly<Record<string, string | undefined>>,
    cookie: string,
  ): Promise<MessageCommandEnd> {
    const { line, clock, signal } = this.#options;
    // The body is passed as a file and not as a pipe. A pipe would end when baton is killed, and the command would take
    // a part of the message for the whole.
    const input = openMessageBodyFile(body);
    const signals = ownSignalSource();
    const child = await spawnChild(["/bin/sh", "-c", execInsteadOfShell(line)], {
      env: childEnvironment(env),
      input,
      signal,
      descriptors: [],
      hangUpIgnored: signals.hangUpIgnored,
      ownGroup: true, // a signal to the group reaches the whole command
      onStarted: (pid) =>
        this.#guard.reportChild(cookie, { pid, ownGroup: true, startTicks: readProcess(pid)?.startTicks ?? 0 }),
    }).finally(() => closeSync(input));
    if (child.kind === "cancelled") throw signal.reason;
    if (child.kind !== "started") return { code: exitCodes.START_FAILED, signal: null };
    let isStopped = false;
    const toAll = (name: NodeJS.Signals) => {
      isStopped = true;
      sendSignal(-child.pid, name);
    };
    using _stop = new TwoStageStopListener({
      source: signals,
      clock,
      onFirst: toAll,
      onSecond: () => toAll("SIGKILL"),
    });
    const end = await child.ended;
    // The signal may have ended only the shell, while a program that it started is still working on the message.
    if (isStopped || end.kind === "signaled") await untilGroupIsEmpty(child.pid, clock);
    if (end.kind === "exited") return { code: end.code, signal: null };
    if (end.kind === "unreadable") throw new BatonError("INTERNAL", `The command has ended: ${end.why}`);
    return { code: 128 + end.signalNumber, signal: end.signal as NodeJS.Signals };
  }

  /**
   * Waits for the end of an earlier run whose baton was killed. The guard of that run may still be working, or was
   * killed too.
   */
  async #endEarlierRun(id: number, cookie: string): Promise<void> {
    if (!hasProcessTable()) return;
    const { clock, signal, waitMs } = this.#options;
    const startMs = clock.now();
    const former = new JobProcessFinder(cookie, null);
    for (;;) {
      const { alive: left, isCertain } = former.findCertain();
      if (left.length === 0 && isCertain) return;
      const waitedMs = clock.now() - startMs;
      if (waitedMs > earlierRunMsMax) left.forEach((pid) => sendSignal(pid, "SIGKILL"));
      if (waitedMs > earlierRunMsMax + Math.min(waitMs, killMsMax)) {
        const sentence = `Cannot run the command for message ${id} again: an earlier run is still running and ` +
          `cannot be killed: process ${left.join(", ")}`;
        throw new BatonError("FENCE_BREACH", sentence);
      }
      await sleep(clock, checkEveryMs, signal);
    }
  }
}
