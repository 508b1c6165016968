/** What a campaign showed, as a table for people. Pure. */
import type { CampaignResult } from "./campaign.ts";
import type { RoundResult } from "./judge.ts";

/** One line about one round. */
export function roundLine({ plan, outcome, overlapMs, failures }: RoundResult): string {
  const head =
    `${failures.length === 0 ? "ok  " : "FAIL"} round ${plan.number}: ${plan.backend.name}, ${plan.fault.name}, ` +
    `${plan.childKind} child: ${outcome}, overlap ${Math.ceil(overlapMs)} ms`;
  return [head, ...failures.map((failure) => `       ${failure}`)].join("\n");
}

/**
 * Per fault: rounds, outcomes, the worst overlap, the least margin, the longest time to be gone, the typical take-over.
 */
export function figures({ results, longestGapMs }: CampaignResult): string {
  const names = [...new Set(results.map(({ plan }) => plan.fault.name))].sort();
  const rows = [...names, "all"].map((name) => {
    const rounds = name === "all" ? results : results.filter(({ plan }) => plan.fault.name === name);
    const count = (outcome: RoundResult["outcome"]) =>
      String(rounds.filter((round) => round.outcome === outcome).length);
    const known = (value: (round: RoundResult) => number | null) =>
      rounds.map(value).filter((each) => each !== null).sort((a, b) => a - b);
    const [margins, gone, takeovers] = [known((r) => r.marginMs), known((r) => r.goneMs), known((r) => r.takeoverMs)];
    return [
      name,
      String(rounds.length),
      ...(["kept", "lost", "killed", "broken"] as const).map(count),
      milliseconds(Math.max(...rounds.map((round) => round.overlapMs))),
      milliseconds(margins[0]),
      milliseconds(gone.at(-1)),
      milliseconds(takeovers[Math.floor(takeovers.length / 2)]),
      milliseconds(takeovers.at(-1)),
      String(rounds.filter((round) => round.failures.length > 0).length),
    ];
  });
  const header = [
    "fault",
    "rounds",
    "kept",
    "lost",
    "killed",
    "broken",
    "overlap max",
    "margin min",
    "gone max",
    "take-over p50",
    "max",
    "failed",
  ];
  const table = [header, ...rows];
  const widths = header.map((_, column) => Math.max(...table.map((row) => row[column]?.length ?? 0)));
  const lines = table.map((row) =>
    row.map((cell, column) => column === 0 ? cell.padEnd(widths[0] ?? 0) : cell.padStart(widths[column] ?? 0)).join(
      "  ",
    )
  );
  return [...lines, `Times in ms. The observer looked every 1 ms, at worst ${Math.ceil(longestGapMs)} ms apart.`].join(
    "\n",
  );
}

const milliseconds = (value: number | undefined) => value === undefined ? "-" : String(Math.ceil(value));
