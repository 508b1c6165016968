/** Draws lines on a terminal, and draws them again in the same place. */
import process from "node:process";
import { isTerminal } from "./output_writer.ts";
import { cutTextToWidth, textWidth } from "./text_width.ts";

interface TerminalSize {
  readonly columns: number;
  readonly rows: number;
}

/** Returns the size of the terminal of stdout; 80 x 24 if stdout has none. */
export function terminalSize(): TerminalSize {
  // Does not use `process.stdout` for a pipe, because that would make the pipe non-blocking for other processes, too.
  const { columns, rows } = isTerminal(1) ? process.stdout : { columns: 0, rows: 0 };
  return { columns: columns || 80, rows: rows || 24 };
}

const escape = "\x1b";
const styleCode = new RegExp(`(${escape}\\[[\\d;]*m)`);

/** Cuts a line to `columns`. Keeps all style codes, which have no width, so that each style that begins also ends. */
export function cutTerminalLine(line: string, columns: number): string {
  let left = columns;
  return line.split(styleCode).map((part, index) => {
    if (index % 2 === 1) return part;
    const kept = cutTextToWidth(part, left);
    left = kept.length < part.length ? 0 : left - textWidth(kept);
    return kept;
  }).join("");
}

/**
 * The escape codes that turn line wrapping off and on. While lines are redrawn, a wrapped line would move all lines
 * below it.
 */
const lineWrapCodes = { off: `${escape}[?7l`, on: `${escape}[?7h` } as const;

/**
 * Draws lines at the end of the output, over the lines of the previous call. Lines that have scrolled off the screen
 * stay.
 */
export class RedrawnTerminalLines {
  readonly #write: (text: string) => boolean;
  readonly #size: () => TerminalSize;
  #drawn = 0;

  /** `write` returns false if it skipped the text. In that case, the next call draws in the same place. */
  constructor(write: (text: string) => boolean, size: () => TerminalSize = terminalSize) {
    this.#write = write;
    this.#size = size;
  }

  show(lines: readonly string[]): void {
    const { columns, rows } = this.#size();
    const room = Math.max(2, rows - 1); // the cursor is below the lines
    const shown = lines.length <= room
      ? lines
      : [...lines.slice(0, room - 1), `… ${lines.length - room + 1} more lines`];
    const up = this.#drawn === 0 ? "" : `${escape}[${this.#drawn}A`;
    const text = shown.map((line) => `${cutTerminalLine(line, columns)}${escape}[K\r\n`).join("");
    if (this.#write(`${lineWrapCodes.off}\r${up}${text}${escape}[J${lineWrapCodes.on}`)) this.#drawn = shown.length;
  }
}
