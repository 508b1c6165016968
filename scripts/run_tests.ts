/**
 * Runs the gate and the tiers of tests one after the other, against the compiled binary, and sums them up. What the
 * last line says is what happened: a tier that crashed, hung or found no test counts as a failure.
 */
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { readSummary, type Summary } from "./tests/summary.ts";

const root = join(import.meta.dir, "..");

interface Tier {
  readonly name: string;
  readonly command: readonly string[];
  /** After so many minutes it is killed, and has failed. */
  readonly minutesMax: number;
}

/** Milliseconds for one test that does not say how long it takes; a shared machine may stand still for seconds. */
const testMsMax = 60_000;

function bunTest(name: string, minutesMax: number, ...args: string[]): Tier {
  return { name, minutesMax, command: ["bun", "test", `--timeout=${testMsMax}`, ...args] };
}

/**
 * Most tiers run two or three files at a time, because their tests mostly wait. The tier of faults runs one file at a time: each file runs
 * many rounds at the same time.
 */
const tiers: readonly Tier[] = [
  { name: "gate", command: ["bun", "scripts/tidy.ts"], minutesMax: 2 },
  bunTest("unit", 5, "--parallel=2", "./test/unit", "./test/support", "./test/checker"),
  bunTest("model", 10, "--parallel=2", "./test/model"),
  bunTest("conformance", 8, "--parallel=2", "./test/conformance"),
  bunTest("integration", 20, "--parallel=3", "./test/integration"),
  bunTest("cli", 20, "--parallel=3", "./test/cli"),
  bunTest("runtime", 8, "--parallel=2", "./test/runtime"),
  bunTest("release", 8, "--parallel=2", "./test/release"),
  bunTest("simulation", 15, "--parallel=2", "./test/simulation"),
  bunTest("fault", 20, "./test/fault"),
];

/** Settings of whoever runs the tests must not reach them; what scripts/test says must. */
function testEnvironment(): NodeJS.ProcessEnv {
  const kept = new Set([
    "BATON_DOSE",
    "BATON_REQUIRE_PEERS",
    "BATON_SEED",
    "BATON_BINARY",
    "BATON_PEERS_DIR",
    "BATON_POSTGRES_BIN",
    "BATON_ZOOKEEPER",
  ]);
  const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith("BATON_") || kept.has(name));
  return { BATON_BINARY: join(root, "dist/baton"), ...Object.fromEntries(inherited), NO_COLOR: "1" };
}

/** Runs one tier, shows what it says, and reads the numbers at its end. */
function run({ name, command: [program = "", ...args], minutesMax }: Tier): Promise<Summary> {
  console.log(`\n== ${name}`);
  return new Promise((resolve) => {
    const child = spawn(program, args, { cwd: root, env: testEnvironment(), stdio: ["ignore", "pipe", "pipe"] });
    let said = "";
    const hear = (chunk: string) => {
      said += chunk;
      process.stdout.write(chunk);
    };
    child.stdout.setEncoding("utf8").on("data", hear);
    child.stderr.setEncoding("utf8").on("data", hear);
    const stopped = () => {
      child.kill("SIGKILL");
      process.exit(143);
    };
    process.once("SIGTERM", stopped);
    const timer = setTimeout(() => {
      hear(`\n(fail) ${name} ran longer than ${minutesMax} minutes and was stopped\n`);
      child.kill("SIGKILL");
      // Something it started may hold the pipes open.
      child.stdout.destroy();
      child.stderr.destroy();
    }, minutesMax * 60_000);
    child.on("error", (error) => hear(`${error.message}\n`));
    child.on("close", (code) => {
      clearTimeout(timer);
      process.off("SIGTERM", stopped);
      resolve(readSummary(name, said, code));
    });
  });
}

const args = process.argv.slice(2);
const chosen = args.length > 0 ? [bunTest("chosen tests", 15, ...args)] : tiers;
const summaries: Summary[] = [];
const startMs = performance.now();
for (const tier of chosen) {
  const folders = tier.command.filter((word) => word.startsWith("./test/"));
  if (args.length > 0 || folders.length === 0 || folders.some((folder) => existsSync(join(root, folder)))) {
    summaries.push(await run(tier));
  }
}

const total = { passed: 0, failed: 0, skipped: 0 };
console.log(`\n== summary, after ${Math.round((performance.now() - startMs) / 1000)} s`);
for (const summary of summaries) {
  const { name, passed, failed, skipped, failures } = summary;
  console.log(`${name}: ${passed} passed, ${failed} failed, ${skipped} skipped`);
  for (const failure of failures) console.log(`  ${failure}`);
  total.passed += passed;
  total.failed += failed;
  total.skipped += skipped;
}
const missing = new Set(summaries.flatMap((summary) => summary.missingPeers));
for (const peer of missing) console.log(peer);
if (missing.size > 0) {
  console.log("Their tests were skipped. `sh scripts/test --install-peers` installs them on Debian.");
}
console.log(`\n${total.passed} passed, ${total.failed} failed${total.skipped > 0 ? `, ${total.skipped} skipped` : ""}`);
process.exitCode = total.failed === 0 ? 0 : 1;
