/** Dead letters as the stdin of a line of shell: there when it exits with 0; at least once, the id tells a repetition. */
import { OwnTime } from "../../src/process/supervise/local_lease.ts";
import { startGuard } from "../../src/process/guard/guard.ts";
import { BatonError } from "../../src/errors.ts";
import { letterLine, type LetterRules } from "../../src/retry/dead_letters/dead_letter_record.ts";
import type { LetterPlace, OpenPlace } from "../../src/retry/dead_letters/dead_letter_forwarder.ts";
import type { ClaimedMessage } from "../../src/retry/queue/stored_message.ts";
import { ResignableLease } from "../../src/coordination/election/resignable_lease.ts";
import { onAbort } from "../../src/support/abort.ts";
import type { Clock } from "../../src/support/clock.ts";
import { takeLetterTurn } from "./letter_turn.ts";
import { superviseInput } from "./supervise_input.ts";

export interface ExecLettersOptions extends LetterRules {
  readonly line: string;
  readonly folder: string;
  readonly timeoutMs: number;
  readonly killAfterMs: number;
  readonly clock: Clock;
  readonly lockFile: (fd: number) => boolean;
}

export class ExecLetters implements LetterPlace {
  readonly isEachAlone = true;
  readonly #options: ExecLettersOptions;

  constructor(options: ExecLettersOptions) {
    this.#options = options;
  }

  // deno-lint-ignore require-await -- as places that are not on this machine
  async open(): Promise<OpenPlace | null> {
    const { folder, lockFile } = this.#options;
    const turn = takeLetterTurn(folder, lockFile);
    return turn === null
      ? null
      : { next: () => null, send: (letter, _, signal) => this.#send(letter, signal), close: turn };
  }

  /** With the signal its command is told to end: the letter stays. */
  async #send(letter: ClaimedMessage, signal: AbortSignal): Promise<void> {
    const { line, storeName, timeoutMs, killAfterMs, clock } = this.#options;
    const lease = new ResignableLease(new OwnTime(clock, timeoutMs + 10 * killAfterMs + 10_000));
    const off = onAbort(signal, () => lease.resign("The processor ends"));
    const ended = await superviseInput({
      command: ["/bin/sh", "-c", line],
      env: { BATON_MESSAGE_ID: letter.id, BATON_MESSAGE_STORE: storeName, BATON_MESSAGE_KEY: letter.key ?? "" },
      body: new TextEncoder().encode(letterLine(letter, this.#options)),
      guard: startGuard(),
      hangUpIgnored: false,
      ...{ lease, clock, timeoutMs, killAfterMs },
    }).finally(off);
    if (ended.kind === "refused") throw ended.error;
    if (ended.code !== 0) throw new BatonError("IO", `the command of --dead-letter ${ended.how}`);
  }
}
