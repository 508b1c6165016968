/**
 * Runs a shell command for each message, which is its stdin. A guard process kills the command when baton ends for any
 * reason, so that the next process that gets the message does not run the command while the earlier one still works.
 */
import { createHash } from "node:crypto";
import { closeSync } from "node:fs";
import { childEnvironment, spawnChild } from "../../src/base/process/spawn/spawn_child.ts";
import { openBodyFile } from "../../src/base/process/spawn/unnamed_file.ts";
import {
  cookieEnvironment,
  cookieVariable,
  hasProcessTable,
  isGroupAlive,
  readProcess,
  sendSignal,
} from "../../src/base/process/proc/process_table.ts";
import { KnownProcesses } from "../../src/base/process/proc/known_processes.ts";
import { listenForStops, processSignals } from "../../src/base/process/supervise/signal_source.ts";
import { type Guard, startGuard } from "../../src/base/process/guard/guard.ts";
import { BatonError } from "../../src/base/errors.ts";
import type { Clock } from "../../src/base/support/clock.ts";
import { TaskScope } from "../../src/base/support/abort.ts";
import { sleep } from "../../src/base/support/deadline.ts";
import { type ExitCode, exitCodes } from "../../src/base/exit_codes.ts";

export interface MessageCommandOptions {
  /** The shell command. */
  readonly line: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Identifies the client and the topic: the same for all processes that may get the same messages. */
  readonly place: string;
  /** Milliseconds to wait for processes of the command that cannot be killed. */
  readonly waitMs: number;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** Shows a sentence whatever the options. */
  readonly say: (sentence: string) => void;
}

export interface MessageForCommand {
  readonly id: number;
  readonly body: Uint8Array;
  readonly redelivered: boolean;
}

/** A program with a path, and its arguments: nothing for which the shell would have to stay. */
const oneProgram = /^[\w.~$"{}-]*\/[^\s;&|()`'\\<>]+([ \t][^;&|()`\n]*)?$/;

/**
 * A line of shell that is one program: the shell becomes the program, so that signals reach it and its exit code is the
 * line's. Some shells do that by themselves; dash waits, dies of the signal, and how the program ends stays unknown.
 * Pure.
 */
export function execInsteadOfShell(line: string): string {
  const words = line.trim();
  return oneProgram.test(words) ? `exec ${words}` : line;
}

/** Resolves when no process of the group is alive. A stop signal ends it, so it has no limit of its own. */
async function untilGroupIsEmpty(group: number, clock: Clock): Promise<void> {
  while (isGroupAlive(group)) await sleep(clock, checkEveryMs);
}

/** Milliseconds, some years: the guard acts only when baton ends. */
const guardMs = 1e11;
/**
 * Milliseconds: processes of an earlier run first get this time to be ended by their guard, and then at most this time
 * to end after SIGKILL.
 */
const earlierRunMsMax = 2000;
const killMsMax = 10_000;
const checkEveryMs = 20;

export interface MessageCommandEnd {
  /** The exit code, as a shell reports it. */
  readonly code: ExitCode;
  /** The signal that has ended the command; null for an exit code of its own. */
  readonly signal: NodeJS.Signals | null;
}

export class MessageCommand implements Disposable {
  readonly #options: MessageCommandOptions;
  readonly #guard: Guard;

  constructor(options: MessageCommandOptions) {
    this.#options = options;
    this.#guard = startGuard(options.say);
  }

  /**
   * Resolves with the end of the command. A stop signal is passed on to the command; then all processes of its group
   * are awaited, not only the shell. A second one kills them. Rejects with START_FAILED without a guard, FENCE_BREACH
   * if processes of an earlier run cannot be killed, IO if there is no room for the message, and the signal's reason
   * before the command has started.
   */
  async run(message: MessageForCommand, env: Readonly<Record<string, string | undefined>>): Promise<MessageCommandEnd> {
    const { signal, place, env: inherited } = this.#options;
    const every = `message-${createHash("sha256").update(`${place}\n${message.id}`).digest("hex").slice(0, 32)}`;
    if (message.redelivered) await this.#endEarlierRun(message.id, every);
    // The marker is unique for this run: the guard of an earlier run may act late, and ends only processes with its own
    // marker.
    const cookie = `run-${crypto.randomUUID()}`;
    const marks = cookieEnvironment(cookie, cookieEnvironment(every, inherited[cookieVariable])[cookieVariable]);
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
    // The body is a file and not a pipe: a pipe would end when baton is killed, and the command would take a part of
    // the message for the whole.
    const input = openBodyFile(body);
    const signals = processSignals();
    const child = await spawnChild(["/bin/sh", "-c", execInsteadOfShell(line)], {
      env: childEnvironment(env),
      input,
      signal,
      descriptors: [],
      hangUpIgnored: signals.hangUpIgnored,
      ownGroup: true, // so that a signal reaches the whole command
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
    using _listening = new TaskScope(listenForStops(signals, clock, {
      onFirstSignal: toAll,
      onLaterSignal: () => toAll("SIGKILL"),
    }));
    const end = await child.ended;
    // The signal may have ended the shell alone, while a program of the line still works at the message.
    if (isStopped || end.kind === "signaled") await untilGroupIsEmpty(child.pid, clock);
    if (end.kind === "exited") return { code: end.code, signal: null };
    if (end.kind === "unreadable") throw new BatonError("INTERNAL", `The command has ended: ${end.why}`);
    return { code: 128 + end.signalNumber, signal: end.signal as NodeJS.Signals };
  }

  /**
   * Waits for the end of an earlier run, whose baton process was killed; its guard is still working, or was killed too.
   */
  async #endEarlierRun(id: number, cookie: string): Promise<void> {
    if (!hasProcessTable()) return;
    const { clock, signal, waitMs } = this.#options;
    const startMs = clock.now();
    const former = new KnownProcesses(cookie, null);
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
