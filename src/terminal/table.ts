/** Tables for people; programs use --json. */
import { printable } from "../support/text.ts";
import { type Paint, painterOf, type Style } from "./color.ts";
import type { Io } from "./io.ts";

/** A cell of a table; its style shows only where stdout has colors. */
export type Cell = string | { readonly text: string; readonly style: Style };

/** The cells of a head row. */
export function headCells(names: readonly string[]): Cell[] {
  return names.map((text) => ({ text, style: "bold" }));
}

/** Prints rows in aligned columns; without rows it prints nothing. */
export function printTable(io: Io, rows: readonly (readonly Cell[])[]): void {
  for (const line of tableLines(rows, painterOf(io, "stdout"))) io.out(`${line}\n`);
}

/** The lines of a table with aligned columns. Pure. */
export function tableLines(rows: readonly (readonly Cell[])[], paint: Paint): string[] {
  const widths: number[] = [];
  const textOf = (cell: Cell) => printable(typeof cell === "string" ? cell : cell.text);
  for (const row of rows) {
    row.forEach((cell, column) => widths[column] = Math.max(widths[column] ?? 0, textOf(cell).length));
  }
  return rows.map((row) => {
    const cells = row.map((cell, column) => {
      const text = textOf(cell);
      const painted = typeof cell === "string" || text === "" ? text : paint(cell.style, text);
      return painted + " ".repeat((widths[column] ?? 0) - text.length);
    });
    return cells.join("  ").trimEnd();
  });
}
