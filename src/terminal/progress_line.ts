/** One line on a terminal that says what a wait is waiting for, and that is wiped away at the end. Never in a pipe. */
import type { Io } from "./io.ts";
import { printable } from "../support/text.ts";

export class WaitLine implements Disposable {
  readonly #io: Io;
  #shown = false;

  constructor(io: Io) {
    this.#io = io;
  }

  /** Whether a line that is written over and over makes sense where stderr goes. */
  static fits(io: Io): boolean {
    return io.stderrIsTerminal && io.env["TERM"] !== "dumb";
  }

  /** Takes the place of what was shown before; cut to the width of the terminal. */
  show(text: string): void {
    this.#io.err(`\r\x1b[K${printable(text).slice(0, Math.max(1, this.#io.columns - 1))}`);
    this.#shown = true;
  }

  [Symbol.dispose](): void {
    if (this.#shown) this.#io.err("\r\x1b[K");
  }
}
