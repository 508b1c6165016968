/**
 * Runs a line of shell for each message, which is its stdin. Everything of it dies with baton, however that ends: a guard
 * beside it sees to that, so that the next process that is given the message does not run the line while the last one's
 * still works.
 */
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { closeSync } from "node:fs";
import { constants } from "node:os";
import { openBodyFile } from "../../src/process/spawn/unnamed_file.ts";
import { cookieEnvironment, cookieVariable } from "../../src/process/proc/process_marker.ts";
import { KnownProcesses } from "../../src/process/proc/known_processes.ts";
import { hasProcessTable, readProcess } from "../../src/process/proc/process_table.ts";
import { sendSignal } from "../../src/process/proc/send_signal.ts";
import { processSignals } from "../../src/process/supervise/signal_source.ts";
import { type Guard, startGuard } from "../../src/process/guard/guard.ts";
import { listenForStops } from "../../src/process/supervise/stop_signals.ts";
import { BatonError } from "../../src/errors.ts";
import type { Clock } from "../../src/support/clock.ts";
import { sleep } from "../../src/support/deadline.ts";
import { type ExitCode, exitCodes } from "../exit_codes.ts";

export interface MessageCommandOptions {
  /** The line of shell. */
  readonly line: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Names the client's place: the same for every process that may be given the same messages. */
  readonly place: string;
  /** What is left of the line and cannot be killed is waited for so long. */
  readonly waitMs: number;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

export interface CommandMessage {
  readonly id: number;
  readonly body: Uint8Array;
  readonly redelivered: boolean;
}

/** The guard's deadline is baton's own end, and nothing else: some years. */
const forMs = 1e11;
/** What a former process has left is given so long to end by its guard's hand, and then so long, at most, by this one's. */
const leftMsMax = 2000;
const killMsMax = 10_000;
const lookMs = 20;

export class MessageCommand implements Disposable {
  readonly #options: MessageCommandOptions;
  readonly #guard: Guard = startGuard();

  constructor(options: MessageCommandOptions) {
    this.#options = options;
  }

  /**
   * Resolves with the line's exit code, as a shell counts it. A stop request is passed on to all of it, and its end waited for;
   * the second one kills it. Rejects with START_FAILED without a guard, with FENCE_BREACH when what a former process has left of this
   * message cannot be killed, with IO where there is no room for the message, and with the signal's reason before the line has begun.
   */
  async run(message: CommandMessage, env: Readonly<Record<string, string>>): Promise<ExitCode> {
    const { signal, place, env: inherited } = this.#options;
    const every = `message-${createHash("sha256").update(`${place}\n${message.id}`).digest("hex").slice(0, 32)}`;
    if (message.redelivered) await this.#endEarlierRun(message.id, every);
    // Of this run alone: the guard of a former one may come late, and ends what has the mark that it was told.
    const cookie = `run-${crypto.randomUUID()}`;
    const marks = cookieEnvironment(cookie, cookieEnvironment(every, inherited[cookieVariable])[cookieVariable]);
    await this.#guard.watch(cookie, {
      remainingMs: () => forMs,
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
    this.#guard.done();
  }

  #run(body: Uint8Array, env: Readonly<Record<string, string | undefined>>, cookie: string): Promise<ExitCode> {
    const { line, clock, signal } = this.#options;
    return new Promise((resolve, reject) => {
      if (signal.aborted) return reject(signal.reason as Error);
      // A pipe would end where baton is killed, and the line would take the beginning of a message for all of it.
      const input = openBodyFile(body);
      const child = spawn("/bin/sh", ["-c", line], {
        env,
        stdio: [input, "inherit", "inherit"],
        detached: true, // a group of its own: a signal reaches all of the line
      });
      closeSync(input);
      const { pid } = child;
      if (pid !== undefined) {
        this.#guard.child(cookie, { pid, ownGroup: true, startTicks: readProcess(pid)?.startTicks ?? 0 });
      }
      const toAll = (name: NodeJS.Signals) => {
        if (pid !== undefined) sendSignal(-pid, name);
      };
      const unlisten = listenForStops(processSignals(), clock, { first: toAll, again: () => toAll("SIGKILL") });
      const end = (code: ExitCode) => {
        unlisten();
        resolve(code);
      };
      child.once("error", () => end(exitCodes.START_FAILED));
      child.once("exit", (code, name) => end(code ?? 128 + (name === null ? 0 : constants.signals[name])));
    });
  }

  /** Whoever ran the line for this message was killed; its guard is at work, or was killed as well. */
  async #endEarlierRun(id: number, cookie: string): Promise<void> {
    if (!hasProcessTable()) return;
    const { clock, signal, waitMs } = this.#options;
    const startMs = clock.now();
    const former = new KnownProcesses(cookie, null);
    for (;;) {
      const { alive: left, isCertain } = former.findCertain();
      if (left.length === 0 && isCertain) return;
      const waitedMs = clock.now() - startMs;
      if (waitedMs > leftMsMax) left.forEach((pid) => sendSignal(pid, "SIGKILL"));
      if (waitedMs > leftMsMax + Math.min(waitMs, killMsMax)) {
        const sentence = `Cannot run the line for message ${id} again: what was begun for it before still runs, and ` +
          `cannot be killed: process ${left.join(", ")}`;
        throw new BatonError("FENCE_BREACH", sentence);
      }
      await sleep(clock, lookMs, signal);
    }
  }
}
