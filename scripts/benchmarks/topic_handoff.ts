/** Benchmark: how long puts pause while a topic with a backlog moves from one server to another, under load. */
import { type HandoffLoad, type HandoffOutcome, handoffs } from "../../test/support/handoff_load.ts";
import { alignedTable, formatFigure, summarizeMeasurements } from "./statistics.ts";

const loads: readonly HandoffLoad[] = [
  { backlog: 100_000, bodyBytes: 100, outstanding: 1 },
  { backlog: 100_000, bodyBytes: 100, outstanding: 64 },
  { backlog: 100_000, bodyBytes: 1024, outstanding: 64 },
];

/** Returns a table with the median and the maximum of the moves for each load. */
export async function topicHandoff(rounds: number): Promise<string> {
  const rows = [["handoff under load", "pause p50 ms", "max", "took p50 ms", "max", "puts/s"]];
  for (const load of loads) {
    const outcomes = await handoffs(load, rounds);
    const of = (name: keyof HandoffOutcome) => summarizeMeasurements(outcomes.map((outcome) => outcome[name]));
    const pause = of("pauseMs");
    const took = of("tookMs");
    const { backlog, bodyBytes, outstanding } = load;
    rows.push([
      `${backlog} × ${bodyBytes} B, ${outstanding} outstanding`,
      ...[pause.p50, pause.max, took.p50, took.max, of("putsPerSecond").p50].map(formatFigure),
    ]);
  }
  return alignedTable(rows);
}
