/** Tables for people; programs use --json. */
import { printable } from "../support/text.ts";
import type { Io } from "./io.ts";

/** Prints rows in aligned columns; without rows it prints nothing. */
export function printTable(io: Io, rows: readonly (readonly string[])[]): void {
  const widths: number[] = [];
  for (const row of rows) {
    row.forEach((cell, column) => widths[column] = Math.max(widths[column] ?? 0, printable(cell).length));
  }
  for (const row of rows) {
    const cells = row.map((cell, column) => printable(cell).padEnd(widths[column] ?? 0));
    io.out(cells.join("  ").trimEnd() + "\n");
  }
}
