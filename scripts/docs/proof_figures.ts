/** What attacks have found when they ran last, as docs/proof_figures.json records it, and its tables in docs/proof.md. */
import { table } from "./markdown.ts";

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
  /** What was done, by name: seeds, rounds, simulated hours, faults that took effect. */
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

export interface ProofFigures {
  readonly attacks: readonly AttackFigures[];
  readonly mutants: readonly MutantFigures[];
}

const number = (value: number) => value.toLocaleString("en-US", { maximumFractionDigits: 1 });
const code = (text: string) => `\`${text}\``;

/** The lines of the tables by their name, as the marks in the page have it. */
export function proofTables({ attacks, mutants }: ProofFigures): Readonly<Record<string, readonly string[]>> {
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
    figures: table(["layer", "command", "amount", "violations", "seed", "time", "date", "commit"], rows),
    mutants: table(
      ["defect that is put back", "found as", "first seed that finds it", "time"],
      mutants.map(({ defect, foundAs, seed, seconds }) => [defect, foundAs, String(seed), `${number(seconds)} s`]),
    ),
  };
}

/** The page with the tables between their marks. Throws for a mark without a table, and a table without a mark. */
export function withTables(page: string, tables: Readonly<Record<string, readonly string[]>>): string {
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
