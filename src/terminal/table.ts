/** Tables for people; programs use --json. */
import { printable } from "../support/text.ts";
import { painterOf, type Style } from "./color.ts";
import type { Io } from "./io.ts";

/** A cell of a table; its style shows only where stdout has colors. */
export type Cell = string | { readonly text: string; readonly style: Style };

/** The cells of a head row. */
export function headCells(names: readonly string[]): Cell[] {
  return names.map((text) => ({ text, style: "bold" }));
}

/** Prints rows in aligned columns; without rows it prints nothing. */
export function printTable(io: Io, rows: readonly (readonly Cell[])[]): void {
  const widths: number[] = [];
  const textOf = (cell: Cell) => printable(typeof cell === "string" ? cell : cell.text);
  for (const row of rows) {
    row.forEach((cell, column) => widths[column] = Math.max(widths[column] ?? 0, textOf(cell).length));
  }
  const paint = painterOf(io, "stdout");
  for (const row of rows) {
    const cells = row.map((cell, column) => {
      const text = textOf(cell);
      const painted = typeof cell === "string" || text === "" ? text : paint(cell.style, text);
      return painted + " ".repeat((widths[column] ?? 0) - text.length);
    });
    io.out(cells.join("  ").trimEnd() + "\n");
  }
}
