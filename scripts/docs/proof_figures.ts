/** The results of the last attacks, from proof_figures.json in docs/development, and their tables in proof.md there. */
import { markdownTable } from "./markdown.ts";

export interface AttackFigures {
  readonly name: string;
  readonly layer: "simulation" | "faults" | "mutants";
  readonly command: string;
  /** YYYY-MM-DD */
  readonly date: string;
  /** The commit that was attacked. */
  readonly commit: string;
  readonly seed: string | null;
  readonly seconds: number;
  /** How much was done, by name: seeds, rounds, simulated hours, faults that took effect. */
  readonly counts: Readonly<Record<string, number>>;
  readonly violations: number;
}

export interface MutantFigures {
  readonly defect: string;
  /** How it was found: "two holders". */
  readonly foundAs: string;
  readonly seed: number;
  readonly seconds: number;
}

/** Long simulations of one world on one commit. */
export interface SeedsFigures {
  readonly world: string;
  readonly commit: string;
  /** YYYY-MM-DD */
  readonly date: string;
  readonly seeds: number;
  readonly failed: number;
  readonly simulatedHours: number;
  /** Faults that took effect. */
  readonly faults: number;
}

export interface ProofFigures {
  readonly attacks: readonly AttackFigures[];
  readonly seeds: readonly SeedsFigures[];
  readonly mutants: readonly MutantFigures[];
}

const number = (value: number) => value.toLocaleString("en-US", { maximumFractionDigits: 1 });
const code = (text: string) => `\`${text}\``;

/** A line of `scripts/simulate --summary`. */
export interface SeedsSummary {
  readonly world: string;
  readonly commit: string;
  readonly date: string;
  readonly seeds: number;
  readonly failed: readonly unknown[];
  readonly simulated_hours: number;
  readonly faults: Readonly<Record<string, number>>;
}

/** Adds up the lines by world and commit. The sums replace those in `known` for the same world and commit. */
export function sumSeedsFigures(lines: readonly SeedsSummary[], known: readonly SeedsFigures[]): SeedsFigures[] {
  const sums = new Map<string, SeedsFigures>();
  for (const { world, commit, date, seeds, failed, simulated_hours, faults } of lines) {
    if (!/^[0-9a-f]{8}$/.test(commit)) throw new Error(`A run of ${world} is not of a commit, but of "${commit}"`);
    const sum = sums.get(`${world} ${commit}`);
    sums.set(`${world} ${commit}`, {
      world,
      commit,
      date,
      seeds: (sum?.seeds ?? 0) + seeds,
      failed: (sum?.failed ?? 0) + failed.length,
      simulatedHours: round((sum?.simulatedHours ?? 0) + simulated_hours),
      faults: (sum?.faults ?? 0) + Object.values(faults).reduce((all, one) => all + one, 0),
    });
  }
  return [...known.filter(({ world, commit }) => !sums.has(`${world} ${commit}`)), ...sums.values()];
}

const round = (hours: number) => Math.round(hours * 100) / 100;

/** Returns one row for each world, over all commits. */
function seedsRows(figures: readonly SeedsFigures[]): string[][] {
  const worlds = [...new Set(figures.map(({ world }) => world))];
  const rows = worlds.map((world): [string, readonly SeedsFigures[]] => [
    code(world),
    figures.filter((one) => one.world === world),
  ]);
  return [...rows, ["all", figures] as const].map(([name, own]) => [
    name,
    ...(["seeds", "simulatedHours", "faults", "failed"] as const).map((key) =>
      number(own.reduce((sum, one) => sum + one[key], 0))
    ),
    name === "all" ? "" : own.map(({ commit }) => commit).join(", "),
  ]);
}

/** Returns the lines of each table, by the name in the page's marks. */
export function proofTables({ attacks, seeds, mutants }: ProofFigures): Readonly<Record<string, readonly string[]>> {
  const rows = attacks.map((one) => [
    one.layer,
    code(one.command),
    Object.entries(one.counts).map(([name, value]) => `${number(value)} ${name}`).join(", "),
    number(one.violations),
    one.seed ?? "",
    `${number(one.seconds)} s`,
    one.date,
    one.commit,
  ]);
  return {
    figures: markdownTable(["layer", "command", "amount", "violations", "seed", "time", "date", "commit"], rows),
    seeds: markdownTable(
      ["world", "seeds", "simulated hours", "faults that took effect", "failed", "commits"],
      seedsRows(seeds),
    ),
    mutants: markdownTable(
      ["defect that is put back", "found as", "seed that finds it", "time"],
      mutants.map(({ defect, foundAs, seed, seconds }) => [defect, foundAs, String(seed), `${number(seconds)} s`]),
    ),
  };
}

/**
 * Returns the page with the tables between their marks. Throws for a mark without a table, and a table without a mark.
 */
export function replaceProofTables(page: string, tables: Readonly<Record<string, readonly string[]>>): string {
  const left = new Set(Object.keys(tables));
  const text = page.replace(/<!-- (\w+): begin -->\n[\s\S]*?<!-- \1: end -->/g, (_all, name: string) => {
    const lines = tables[name];
    if (lines === undefined) throw new Error(`There is no table for the mark "${name}"`);
    left.delete(name);
    return [`<!-- ${name}: begin -->`, ...lines, `<!-- ${name}: end -->`].join("\n");
  });
  if (left.size > 0) throw new Error(`The page has no mark for: ${[...left].join(", ")}`);
  return text;
}
