/** Runs attacks and records their results: see scripts/proof. */
import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { type AttackFigures, type MutantFigures, type ProofFigures, sumSeedsFigures } from "./docs/proof_figures.ts";

const root = join(import.meta.dirname, "..");
const file = join(root, "docs/development/proof_figures.json");

/** The campaigns by name, in the order of the page, with their arguments for scripts/fault. */
const campaigns: Readonly<Record<string, string>> = {
  lock: "lock --rounds 30",
  hold: "hold --rounds 12",
  elect: "elect --rounds 12",
  barrier: "barrier --rounds 12",
  pool: "pool --rounds 12",
  cron: "cron processes --rounds 12",
  interop: "interop --rounds 16",
  znode: "znode --rounds 4",
  ensemble: "ensemble --rounds 20",
  pubsub: "pubsub --messages 5000 --faults 40",
  "pubsub-postgres": "pubsub --on keeper --store postgres --database mixed --messages 5000 --faults 40",
  retry: "retry --rounds 16",
  "retry-postgres": "retry --store postgres --rounds 8",
};
/** The figures that campaigns print about their work and that are added up. */
const amounts: Readonly<Record<string, RegExp>> = {
  "messages delivered": /, (\d+) delivered\b/g,
  tries: /^\d+ messages, (\d+) tries/gm,
  "runs of ticks": /: (\d+) runs of \d+ ticks/g,
};

const simulationCommand = "sh scripts/simulate --seeds 50 --json";
const mutantsCommand = "sh scripts/simulate --mutants";
const names = ["simulation", "mutants", ...Object.keys(campaigns)];

/** The time limit of one attack, so that a simulation that hangs does not delay the others. */
const attackMsMax = 60 * 60_000;

const git = (...args: readonly string[]) => execFileSync("git", args, { cwd: root, encoding: "utf8" }).trim();
const nothing: ProofFigures = { attacks: [], seeds: [], mutants: [] };
let figures: ProofFigures = existsSync(file) ? { ...nothing, ...JSON.parse(readFileSync(file, "utf8")) } : nothing;

const [first, ...others] = process.argv.slice(2);
if (first === "seeds") {
  const lines = others.flatMap((path) => readFileSync(path, "utf8").trim().split("\n"));
  save({ ...figures, seeds: sumSeedsFigures(lines.map((line) => JSON.parse(line)), figures.seeds) });
} else recordAll(first === "all" ? names : process.argv.slice(2));

function recordAll(wanted: readonly string[]): void {
  const unknown = wanted.filter((name) => !names.includes(name));
  if (wanted.length === 0 || unknown.length > 0) {
    console.error(`"${unknown.join(" ")}": expected all, seeds FILE…, or some of ${names.join(", ")}`);
    process.exit(64);
  }
  if (git("status", "--porcelain", "--", "src", "commands", "test") !== "") {
    console.error(
      "scripts/proof: the sources differ from the last commit, which the record would name: commit them first",
    );
    process.exit(1);
  }
  for (const name of wanted) record(name);
}

function save(next: ProofFigures): void {
  figures = next;
  writeFileSync(file, `${JSON.stringify(figures, null, 2)}\n`);
}

function record(name: string): void {
  const isSimulated = name === "simulation" || name === "mutants";
  const command = name === "simulation"
    ? simulationCommand
    : name === "mutants"
    ? mutantsCommand
    : `sh scripts/fault ${campaigns[name]}`;
  const startMs = performance.now();
  const [program = "", ...args] = command.split(" ");
  console.error(`scripts/proof: ${command}`);
  const { stdout, status } = spawnSync(program, args, {
    cwd: root,
    encoding: "utf8",
    maxBuffer: 1 << 28,
    timeout: attackMsMax,
    stdio: ["ignore", "pipe", "inherit"],
  });
  const seconds = Math.round((performance.now() - startMs) / 1000);
  if (status !== 0) console.error(stdout); // what failed
  if (status === null || stdout === "") throw new Error(`${command} did not end by itself, or printed nothing`);
  const mutants = name === "mutants" ? readMutants(stdout) : figures.mutants;
  const found = name === "simulation"
    ? readSimulation(stdout)
    : name === "mutants"
    ? { counts: { "defects found": mutants.length }, violations: status === 0 ? 0 : 1, seed: null }
    : readCampaign(stdout, status);
  const own: AttackFigures = {
    name,
    layer: name === "mutants" ? "mutants" : isSimulated ? "simulation" : "faults",
    command: command.replace(" --json", ""),
    date: new Date().toISOString().slice(0, 10),
    commit: git("rev-parse", "--short=8", "HEAD"),
    seconds,
    ...found,
  };
  const attacks = [...figures.attacks.filter((one) => one.name !== name), own];
  attacks.sort((left, right) => names.indexOf(left.name) - names.indexOf(right.name));
  save({ ...figures, attacks, mutants });
}

type Found = Pick<AttackFigures, "counts" | "violations" | "seed">;

/** Reads a simulation's output, which has one JSON object for each world. */
function readSimulation(stdout: string): Found {
  const reports = stdout.trim().split("\n").map((line) =>
    JSON.parse(line) as {
      seeds: number;
      simulatedMs: number;
      counts: Record<string, number>;
      failures: readonly unknown[];
    }
  );
  const sum = (of: (report: typeof reports[number]) => number) =>
    reports.reduce((total, report) => total + of(report), 0);
  const effects = sum(({ counts }) =>
    Object.entries(counts).reduce((total, [name, count]) => total + (name.startsWith("effect ") ? count : 0), 0)
  );
  const hours = Math.round(sum(({ simulatedMs }) => simulatedMs) / 360_000) / 10;
  return {
    counts: {
      worlds: reports.length,
      seeds: sum(({ seeds }) => seeds),
      "simulated hours": hours,
      "faults that took effect": effects,
    },
    violations: sum(({ failures }) => failures.length),
    seed: null,
  };
}

/** Reads the seed, the rounds (one line each) and the figures from a campaign's output. */
function readCampaign(stdout: string, status: number): Found {
  const rounds = stdout.match(/^(?:\w+ +)?round \d+/gm) ?? [];
  const failures = stdout.match(/^FAIL/gm) ?? [];
  const sums = Object.entries(amounts).map(([name, pattern]) =>
    [name, [...stdout.matchAll(pattern)].reduce((sum, [, figure]) => sum + Number(figure), 0)] as const
  );
  return {
    counts: { rounds: rounds.length, ...Object.fromEntries(sums.filter(([, sum]) => sum > 0)) },
    violations: status === 0 ? 0 : Math.max(1, failures.length),
    seed: /--seed (\d+)/.exec(stdout)?.[1] ?? null,
  };
}

function readMutants(stdout: string): MutantFigures[] {
  return [...stdout.matchAll(/^found +(.+): ([^:,]+), seed (\d+), ([\d.]+) s$/gm)].map((
    [, defect = "", foundAs = "", seed, seconds],
  ) => ({
    defect,
    foundAs,
    seed: Number(seed),
    seconds: Number(seconds),
  }));
}
