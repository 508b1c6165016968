/**
 * Passes dead letters to a shell command as stdin. Exit code 0 means that the dead letter was delivered. A dead letter
 * can be delivered twice, with the same ID.
 */
import { ResignableLease } from "../../base/process/resignable_lease.ts";
import { LocalLease } from "../../base/process/local_lease.ts";
import { startGuard } from "../../base/process/guard/guard.ts";
import { BatonError } from "../../base/errors.ts";
import type { ClaimedMessage } from "../queue/stored_message.ts";
import { onAbort } from "../../base/support/abort.ts";
import type { Clock } from "../../base/support/clock.ts";
import { type CommandEnd, runWithInput, type RunWithInputOptions } from "../targets/run_with_input.ts";
import { type DeadLetterFormat, deadLetterLine } from "./dead_letter_record.ts";
import type { DeadLetterSink, DeadLetterSinkSession } from "./dead_letter_forwarder.ts";

export interface CommandSinkOptions extends DeadLetterFormat {
  readonly line: string;
  readonly timeoutMs: number;
  readonly killAfterMs: number;
  readonly clock: Clock;
  /** Acquires the forwarder lock. Returns the function that releases the lock; null if another process is sending. */
  readonly takeLock: () => (() => void) | null;
  readonly say?: (sentence: string) => void;
  /** Runs the command; tests replace this function. */
  readonly run?: (options: Omit<RunWithInputOptions, "guard">) => Promise<CommandEnd>;
}

async function runUnderGuard(
  options: Omit<RunWithInputOptions, "guard">,
  say: (sentence: string) => void,
): Promise<CommandEnd> {
  const ended = await runWithInput({ ...options, guard: startGuard(say) });
  if (ended.kind === "not_started") throw ended.error;
  return ended;
}

export class CommandSink implements DeadLetterSink {
  readonly skipsFailed = true;
  readonly #options: CommandSinkOptions;

  constructor(options: CommandSinkOptions) {
    this.#options = options;
  }

  // deno-lint-ignore require-await -- the interface is asynchronous for sinks on other machines
  async open(): Promise<DeadLetterSinkSession | null> {
    const release = this.#options.takeLock();
    if (release === null) return null;
    return { nextOffset: () => null, send: (letter, _, signal) => this.#send(letter, signal), close: release };
  }

  /** Sends one dead letter. If the signal aborts, the command is stopped, and the dead letter stays in the store. */
  async #send(letter: ClaimedMessage, signal: AbortSignal): Promise<void> {
    const { line, storeName, timeoutMs, killAfterMs, clock, say = () => {} } = this.#options;
    const { run = (options) => runUnderGuard(options, say) } = this.#options;
    const lease = new ResignableLease(new LocalLease(clock, timeoutMs + 10 * killAfterMs + 10_000));
    const off = onAbort(signal, () => lease.resign("The processor ends"));
    const ended = await run({
      command: ["/bin/sh", "-c", line],
      env: { BATON_MESSAGE_ID: letter.id, BATON_MESSAGE_STORE: storeName, BATON_MESSAGE_KEY: letter.key ?? "" },
      body: new TextEncoder().encode(deadLetterLine(letter, this.#options)),
      hangUpIgnored: false,
      lease,
      clock,
      timeoutMs,
      killAfterMs,
    }).finally(off);
    if (ended.code !== 0) throw new BatonError("IO", `the command of --dead-letter ${ended.how}`);
  }
}
