/** Statistics and tables of benchmarks. Compute ratios only between medians of one run, never across runs. */

export interface MeasurementSummary {
  readonly count: number;
  readonly min: number;
  readonly p50: number;
  readonly p90: number;
  readonly max: number;
}

/** Returns order statistics of at least one value, by the nearest-rank method. */
export function summarizeMeasurements(values: readonly number[]): MeasurementSummary {
  if (values.length === 0) throw new RangeError("Cannot summarize an empty list of measurements");
  const sorted = values.toSorted((a, b) => a - b);
  const rank = (share: number) => sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] as number;
  return { count: sorted.length, min: rank(0), p50: rank(0.5), p90: rank(0.9), max: rank(1) };
}

/** Formats a number with three significant digits, without an exponent. */
export function formatFigure(value: number): string {
  if (!Number.isFinite(value)) return String(value);
  return Math.abs(value) >= 100 ? value.toFixed(0) : value.toPrecision(3);
}

/** Formats a table with aligned columns; the first row is the head. */
export function alignedTable(rows: readonly (readonly string[])[]): string {
  const widths = rows[0]?.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0))) ?? [];
  return rows
    .map((row) =>
      row.map((cell, column) => column === 0 ? cell.padEnd(widths[0] ?? 0) : cell.padStart(widths[column] ?? 0)).join(
        "  ",
      )
    )
    .join("\n");
}
