/** Computes what a terminal shows over time, from the text that was written to it. Pure. */

/** Text that was written to the terminal, with the time since the start of the recording. */
export interface TerminalOutput {
  readonly atMs: number;
  readonly text: string;
}

export interface TextStyle {
  readonly bold: boolean;
  readonly dim: boolean;
  /** ANSI color from 0 to 7; null for the default color. */
  readonly color: number | null;
}

/** Characters of one row with the same style, shown from `sinceMs` to `untilMs` (Infinity: to the end). */
export interface TextRun {
  readonly row: number;
  readonly column: number;
  readonly text: string;
  readonly style: TextStyle;
  readonly sinceMs: number;
  readonly untilMs: number;
}

interface Cell {
  readonly row: number;
  readonly column: number;
  readonly character: string;
  readonly style: TextStyle;
  readonly sinceMs: number;
  untilMs: number;
}

const plain: TextStyle = { bold: false, dim: false, color: null };
/** Escape codes, control characters, or text between them. */
// deno-lint-ignore no-control-regex -- these are the control characters of a terminal
const tokens = /\x1b\[([0-9;?]*)([A-Za-z])|\x1b\][^\x07]*\x07|\x1b[=>]|[\r\n\b\x07]|[^\x1b\r\n\b\x07]+/g;

/** A terminal without scrolling: a recording with more lines than rows throws. */
export class TerminalScreen {
  readonly #columns: number;
  readonly #rows: number;
  readonly #shown = new Map<number, Cell>();
  readonly #cells: Cell[] = [];
  #row = 0;
  #column = 0;
  #style = plain;

  constructor(columns: number, rows: number) {
    this.#columns = columns;
    this.#rows = rows;
  }

  write({ atMs, text }: TerminalOutput): void {
    for (const [token, values, command] of text.matchAll(tokens)) {
      if (command !== undefined) this.#control(command, values ?? "", atMs);
      else if (token === "\r") this.#column = 0;
      else if (token === "\b") this.#column = Math.max(0, this.#column - 1);
      else if (token === "\n") this.#row++;
      else if (!token.startsWith("\x1b") && token !== "\x07") { for (const one of token) this.#put(one, atMs); }
    }
  }

  /** Returns all text that was shown at any time, in the order of rows and columns. */
  runs(): TextRun[] {
    const order = (a: Cell, b: Cell) => a.row - b.row || a.sinceMs - b.sinceMs || a.column - b.column;
    const runs: TextRun[] = [];
    for (const { character, ...cell } of this.#cells.toSorted(order)) {
      const last = runs.at(-1);
      if (last !== undefined && continues(last, cell)) runs[runs.length - 1] = { ...last, text: last.text + character };
      else runs.push({ ...cell, text: character });
    }
    return runs.filter(({ text }) => text.trim() !== "");
  }

  /** Returns the final lines, without empty ones at the end. */
  lines(): string[] {
    const lines = Array.from({ length: this.#rows }, () => " ".repeat(this.#columns).split(""));
    for (const { row, column, character } of this.#shown.values()) (lines[row] ?? [])[column] = character;
    return lines.map((line) => line.join("").trimEnd()).join("\n").trimEnd().split("\n");
  }

  #put(character: string, atMs: number): void {
    if (this.#column === this.#columns) {
      this.#column = 0;
      this.#row++;
    }
    if (this.#row >= this.#rows) throw new Error(`the terminal has ${this.#rows} rows, and more was written to it`);
    const row = this.#row;
    const column = this.#column;
    this.#clear(row, column, atMs);
    const cell: Cell = { row, column, character, style: this.#style, sinceMs: atMs, untilMs: Infinity };
    this.#shown.set(row * this.#columns + column, cell);
    this.#cells.push(cell);
    this.#column++;
  }

  #clear(row: number, column: number, atMs: number): void {
    const place = row * this.#columns + column;
    const cell = this.#shown.get(place);
    if (cell !== undefined) cell.untilMs = atMs;
    this.#shown.delete(place);
  }

  #control(command: string, values: string, atMs: number): void {
    if (command === "m") this.#style = values.split(";").map(Number).reduce(restyled, this.#style);
    if (command !== "K" && command !== "J") return;
    for (let column = this.#column; column < this.#columns; column++) this.#clear(this.#row, column, atMs);
  }
}

/** Returns the style after one code of an escape sequence for styles. */
function restyled(style: TextStyle, code: number): TextStyle {
  if (code === 0) return plain;
  if (code === 1) return { ...style, bold: true };
  if (code === 2) return { ...style, dim: true };
  if (code === 22) return { ...style, bold: false, dim: false };
  if (code >= 30 && code <= 37) return { ...style, color: code - 30 };
  return code === 39 ? { ...style, color: null } : style;
}

function continues(run: TextRun, cell: Omit<Cell, "character">): boolean {
  const { row, column, style, sinceMs, untilMs } = cell;
  return run.row === row && run.column + run.text.length === column && run.sinceMs === sinceMs &&
    run.untilMs === untilMs && JSON.stringify(run.style) === JSON.stringify(style);
}
