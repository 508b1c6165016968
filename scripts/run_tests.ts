/**
 * Runs tidy and the tests against the compiled binary, and sums them up. What the last line says is what happened: a
 * run that crashed, hung or found no test counts as a failure.
 */
import { spawn, spawnSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { readSummary, type Summary } from "./tests/summary.ts";
import { planRun, products, productsOf, type TestedProduct } from "./tests/test_files.ts";

const root = join(import.meta.dir, "..");

interface Run {
  readonly name: string;
  readonly command: readonly string[];
}

/** Milliseconds for one test that does not say how long it takes, on the reference machine. */
const testMsMax = 60_000;
/** The longest limit that a test asks for. Milliseconds. */
const longestTestMs = 600_000;

/** How many times slower this machine is at the moment than the reference: from 1 to 8. */
function slowness(): number {
  const referenceMs = 35;
  const times = Array.from({ length: 5 }, () => {
    const startMs = performance.now();
    let sum = 0;
    for (let n = 0; n < 30_000_000; n++) sum = Math.imul(sum, 31) + n | 0;
    return sum === 1 ? 0 : performance.now() - startMs;
  });
  const median = times.sort((a, b) => a - b)[2] ?? referenceMs;
  return Math.min(8, Math.max(1, median / referenceMs));
}

function bunTest(name: string, factor: number, ...args: string[]): Run {
  return { name, command: ["bun", "test", `--timeout=${Math.round(testMsMax * factor)}`, ...args] };
}

/** Settings of whoever runs the tests must not reach them; what scripts/test says must. */
function testEnvironment(): NodeJS.ProcessEnv {
  const kept = new Set([
    ...["BATON_DOSE", "BATON_REQUIRE_PEERS", "BATON_SEED", "BATON_BINARY", "BATON_PEERS_DIR"],
    ...["BATON_POSTGRES_BIN", "BATON_ZOOKEEPER"],
  ]);
  const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith("BATON_") || kept.has(name));
  return { BATON_BINARY: join(root, "dist/baton"), ...Object.fromEntries(inherited), NO_COLOR: "1" };
}

/**
 * Runs one command, shows what it says, and reads the numbers at its end. It is stopped after `silentMsMax` without a
 * word.
 */
function run({ name, command: [program = "", ...args] }: Run, silentMsMax: number): Promise<Summary> {
  console.log(`\n== ${name}`);
  return new Promise((resolve) => {
    const child = spawn(program, args, { cwd: root, env: testEnvironment(), stdio: ["ignore", "pipe", "pipe"] });
    let said = "";
    const hear = (chunk: string) => {
      timer.refresh();
      said += chunk;
      process.stdout.write(chunk);
    };
    const timer = setTimeout(() => {
      hear(`\n(fail) ${name}: no test ended for ${Math.round(silentMsMax / 60_000)} minutes: it was stopped\n`);
      child.kill("SIGKILL");
      // Something it started may hold the pipes open.
      child.stdout.destroy();
      child.stderr.destroy();
    }, silentMsMax);
    child.stdout.setEncoding("utf8").on("data", hear);
    child.stderr.setEncoding("utf8").on("data", hear);
    const stopped = () => {
      child.kill("SIGKILL");
      process.exit(143);
    };
    process.once("SIGTERM", stopped);
    child.on("error", (error) => hear(`${error.message}\n`));
    child.on("close", (code) => {
      clearTimeout(timer);
      process.off("SIGTERM", stopped);
      resolve(readSummary(name, said, code));
    });
  });
}

/** The files that differ from the branch that this one started from, and those that are not committed. */
function changedFiles(): string[] {
  const git = (...args: string[]) =>
    spawnSync("git", args, { cwd: root, encoding: "utf8" }).stdout.split("\n").filter(Boolean);
  const [base = "HEAD"] = git("merge-base", "HEAD", "origin/main");
  return [...git("diff", "--name-only", base), ...git("ls-files", "--others", "--exclude-standard")];
}

const words = process.argv.slice(2);
const isNightly = words.includes("--nightly");
const named = words.filter((word): word is TestedProduct => (products as readonly string[]).includes(word));
const others = words.filter((word) =>
  word !== "--nightly" && word !== "changed" && !named.includes(word as TestedProduct)
);
const isChanged = words.includes("changed");
const chosen = isChanged
  ? [...new Set([...named, ...productsOf(changedFiles())])]
  : named.length > 0
  ? named
  : products;

const factor = slowness();
console.log(`this machine: ${factor.toFixed(1)} times slower than the reference`);
const plan = planRun(
  readdirSync(join(root, "test"), { recursive: true, encoding: "utf8" }).map((path) => `test/${path}`),
  { chosen, isNightly },
);
const tidy: Run = { name: "tidy", command: ["bun", "scripts/tidy.ts"] };
const paths = (files: readonly string[]) => files.map((path) => `./${path}`);
const runs: readonly Run[] = others.length > 0 ? [bunTest("chosen tests", factor, ...others)] : [
  ...(isNightly ? [] : [tidy]),
  ...(plan.together.length === 0 ? [] : [bunTest("tests", factor, "--parallel=3", ...paths(plan.together))]),
  ...(plan.alone.length === 0 ? [] : [bunTest("faults", factor, ...paths(plan.alone))]),
];

const summaries: Summary[] = [];
const startMs = performance.now();
for (const one of runs) summaries.push(await run(one, (longestTestMs + 60_000) * factor));

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
if (others.length === 0) {
  const others = products.filter((product) => !chosen.includes(product));
  if (others.length > 0) console.log(`not run: the tests of ${others.join(", ")}`);
  const left = [...plan.leftOut].map(([name, count]) => `${name} ${count}`).join(", ");
  if (left !== "") console.log(`not run: ${isNightly ? "everyday" : "nightly"} (files: ${left})`);
}
const missing = new Set(summaries.flatMap((summary) => summary.missingPeers));
for (const peer of missing) console.log(peer);
if (missing.size > 0) {
  console.log("Their tests were skipped. `sh scripts/test --install-peers` installs them on Debian.");
}
console.log(`\n${total.passed} passed, ${total.failed} failed${total.skipped > 0 ? `, ${total.skipped} skipped` : ""}`);
process.exitCode = total.failed === 0 ? 0 : 1;
