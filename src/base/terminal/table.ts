/** Formats tables for people; programs use --json instead. */
import { printable } from "../support/text.ts";
import { chooseTextPainter, type TextPainter, type TextStyle } from "./color.ts";
import type { Io } from "./io.ts";
import { shortenTextToWidth, textWidth } from "./text_width.ts";

/** A cell of a table. The style is visible only where stdout has colors. */
export type TableCell = string | { readonly text: string; readonly style: TextStyle };

export function tableHeadCells(names: readonly string[]): TableCell[] {
  return names.map((text) => ({ text, style: "bold" }));
}

/** Prints rows in aligned columns. Prints nothing if there are no rows. */
export function printTable(io: Io, rows: readonly (readonly TableCell[])[]): void {
  if (rows.length > 0) {
    io.out(formatTableLines(rows, chooseTextPainter(io, "stdout")).map((line) => `${line}\n`).join(""));
  }
}

/**
 * Returns the lines of a table with aligned columns. If the lines are wider than `columnsMax`, shortens the longest
 * texts: one long name then hides no other column. Pure.
 */
export function formatTableLines(
  rows: readonly (readonly TableCell[])[],
  paint: TextPainter,
  columnsMax = Number.POSITIVE_INFINITY,
): string[] {
  const textOf = (cell: TableCell) => printable(typeof cell === "string" ? cell : cell.text);
  const widths: number[] = [];
  for (const row of rows) {
    row.forEach((cell, column) => widths[column] = Math.max(widths[column] ?? 0, textWidth(textOf(cell))));
  }
  const cellMax = cellWidthMax(widths, columnsMax);
  return rows.map((row) => {
    const cells = row.map((cell, column) => {
      const text = shortenTextToWidth(textOf(cell), cellMax);
      const painted = typeof cell === "string" || text === "" ? text : paint(cell.style, text);
      return painted + " ".repeat(Math.max(0, Math.min(widths[column] ?? 0, cellMax) - textWidth(text)));
    });
    return cells.join(gap).trimEnd();
  });
}

const gap = "  ";
/**
 * The smallest width to which cells are shortened. Tokens and pids stay whole at this width. On a narrow terminal, the
 * last columns are cut off instead.
 */
const shortenedMin = 20;

/** Returns the greatest width for cells at which columns of these widths fit into a line. */
function cellWidthMax(widths: readonly number[], columnsMax: number): number {
  let left = columnsMax - gap.length * (widths.length - 1);
  let others = widths.length;
  for (const width of [...widths].sort((a, b) => a - b)) {
    if (width * others > left) return Math.max(shortenedMin, Math.floor(left / others));
    left -= width;
    others--;
  }
  return columnsMax;
}
