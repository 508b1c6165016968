/**
 * Gives a program the whole terminal: an alternate screen, and keys without echo. Every way out restores the terminal:
 * disposal, a signal that ends the process, ^Z, and the exit after an internal error.
 */
import process from "node:process";
import { cutTerminalLine, lineWrapCodes, type TerminalSize, terminalSize } from "./terminal_lines.ts";
import type { Io } from "./io.ts";

/** Alternate screen, no cursor, and the wheel sends cursor keys. */
const enterCodes = `\x1b[?1049h\x1b[?25l\x1b[?1007h${lineWrapCodes.off}\x1b[2J`;
const leaveCodes = `\x1b[0m${lineWrapCodes.on}\x1b[?1007l\x1b[?25h\x1b[?1049l`;

export interface FullScreenHooks {
  /** Gets the text that the terminal sends for keys. */
  readonly onInput: (text: string) => void;
  /** Called when the screen must be drawn again: its size has changed, or the program continues after ^Z. */
  readonly onRedraw: () => void;
}

export class FullScreen implements Disposable {
  readonly #io: Io;
  readonly #hooks: FullScreenHooks;
  readonly #hasKeys = process.stdin.isTTY === true;
  readonly #onData = (data: Uint8Array | string) => this.#hooks.onInput(data.toString());
  readonly #onExit = () => this.#leave();
  readonly #onResize = () => this.#hooks.onRedraw();
  readonly #onStop = () => this.suspend(process.pid);
  readonly #onContinue = () => {
    this.#leave(); // after SIGSTOP: the shell has set its own modes meanwhile
    this.#enter();
    this.#hooks.onRedraw();
  };
  #isEntered = false;

  constructor(io: Io, hooks: FullScreenHooks) {
    this.#io = io;
    this.#hooks = hooks;
    process.on("exit", this.#onExit);
    process.on("SIGWINCH", this.#onResize);
    process.on("SIGTSTP", this.#onStop);
    process.on("SIGCONT", this.#onContinue);
    this.#enter();
  }

  get size(): TerminalSize {
    return terminalSize();
  }

  /** Draws the lines; skips them while the terminal is stopped (^S). Throws IO if the terminal is gone. */
  draw(lines: readonly string[]): void {
    if (!this.#isEntered) return;
    const { columns } = this.size;
    const text = lines.map((line) => `${cutTerminalLine(line, columns)}\x1b[K`).join("\r\n");
    // Terminals that know mode 2026 show the new screen in one step; the others ignore it.
    this.#io.frame("stdout", `\x1b[?2026h\x1b[H${text}\x1b[J\x1b[?2026l`);
  }

  /**
   * Restores the terminal, and stops `target` until SIGCONT: this process, or the negative number of its process group.
   * If no shell could continue them, as in a container, the kernel does not stop them, and the screen stays.
   */
  suspend(target: number): void {
    this.#leave();
    process.off("SIGTSTP", this.#onStop);
    process.kill(target, "SIGTSTP"); // returns after SIGCONT
    process.on("SIGTSTP", this.#onStop);
    this.#onContinue();
  }

  [Symbol.dispose](): void {
    process.off("exit", this.#onExit);
    process.off("SIGWINCH", this.#onResize);
    process.off("SIGTSTP", this.#onStop);
    process.off("SIGCONT", this.#onContinue);
    this.#leave();
  }

  #enter(): void {
    if (this.#isEntered) return;
    this.#isEntered = true;
    if (this.#hasKeys) {
      process.stdin.setRawMode(true);
      process.stdin.on("data", this.#onData);
      process.stdin.resume();
    }
    this.#io.out(enterCodes);
  }

  #leave(): void {
    if (!this.#isEntered) return;
    this.#isEntered = false;
    try {
      if (this.#hasKeys) {
        process.stdin.off("data", this.#onData);
        process.stdin.pause();
        process.stdin.setRawMode(false);
      }
      this.#io.out(leaveCodes);
    } catch {
      // the terminal is gone
    }
  }
}
