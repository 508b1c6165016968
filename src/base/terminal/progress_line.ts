/** A line on a terminal that shows progress and is erased at the end. Pipes and files never get this line. */
import type { Io } from "./io.ts";
import { printable } from "../support/text.ts";

export class ErasableTerminalLine implements Disposable {
  readonly #io: Io;
  #shown = false;

  constructor(io: Io) {
    this.#io = io;
  }

  /** Returns true if stderr is a terminal that can overwrite a line. */
  static canShow(io: Io): boolean {
    return io.stderrIsTerminal && io.env["TERM"] !== "dumb";
  }

  /** Replaces the line. Cuts the text to the width of the terminal. */
  show(text: string): void {
    const line = `\r\x1b[K${printable(text).slice(0, Math.max(1, this.#io.columns - 1))}`;
    if (this.#io.frame("stderr", line)) this.#shown = true;
  }

  erase(): void {
    if (this.#shown) this.#io.err("\r\x1b[K", "display");
    this.#shown = false;
  }

  [Symbol.dispose](): void {
    this.erase();
  }
}
