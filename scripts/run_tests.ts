/**
 * Runs tidy and the tests against the compiled binary, and prints a summary. A run that crashed, hung or found no test
 * counts as a failure. A signal ends everything that was started.
 */
import { existsSync, readFileSync, statSync } from "node:fs";
import { constants } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { findChangeBase, listChangedFiles } from "./tests/changes.ts";
import { concernedModels, isModelTest } from "./tests/models.ts";
import { runTestCommand, type TestCommand } from "./tests/run_command.ts";
import type { TestSummary } from "./tests/summary.ts";
import { listTestFiles, readTestCall } from "./tests/test_call.ts";
import { separateUnstable } from "./tests/unstable.ts";
import {
  concernedProducts,
  matchingTestFiles,
  planTestRun,
  type TestChoice,
  testedProducts,
} from "./tests/test_files.ts";
import { plainTestPath, type TestCall } from "./tests/words.ts";

const root = join(import.meta.dir, "..");

/** How long a test without its own limit may take on the reference machine, in milliseconds. */
const testMsMax = 60_000;
/** The longest limit that a test sets itself, in milliseconds. */
const longestTestMs = 600_000;
/** How many processes share the files, and the faults that mostly wait. */
const sharedProcesses = 4;
const waitingProcesses = 2;

/** Returns how many times slower than the reference this machine is at the moment, from 1 to 8. */
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

function bunTest(name: string, factor: number, ...args: string[]): TestCommand {
  return { name, command: ["bun", "test", `--timeout=${Math.round(testMsMax * factor)}`, ...args] };
}

function shareFiles(processes: number): string[] {
  return [`--parallel=${processes}`, "--preload=./test/support/no_subreaper.ts"];
}

/** Returns the environment of the tests: without the user's settings of baton, with those of scripts/test. */
function testEnvironment({ isNightly, paths, options }: TestCall): NodeJS.ProcessEnv {
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
  const env = { BATON_BINARY: join(root, "dist/baton"), ...Object.fromEntries(inherited), NO_COLOR: "1" };
  // Tests that are chosen by path or option run all of their rows.
  if (paths.length > 0 || options.length > 0) return env;
  return { ...env, TEST_TIER: isNightly ? "nightly" : "everyday" };
}

function readText(path: string): string | null {
  const place = join(root, path);
  return existsSync(place) && statSync(place).isFile() ? readFileSync(place, "utf8") : null;
}

/** Returns the tests that a call names or that a change concerns, and prints to what the change was compared. */
function chooseTests(call: TestCall, files: readonly string[]): TestChoice {
  const { named, isNightly } = call;
  const withRows = files.filter((path) => path.endsWith("_test.ts") && readText(path)?.includes("support/tier.ts"));
  const all = named.length > 0 ? named : testedProducts;
  const base = findChangeBase(root);
  if (base === null) {
    if (call.isChanged) console.log("changed: there is no git repository here: all products");
    return { chosen: call.isChanged ? testedProducts : all, isNightly, again: [], withRows };
  }
  const changed = listChangedFiles(root, base).flatMap(({ path, pathBefore }) =>
    pathBefore === null || pathBefore === path ? [path] : [path, pathBefore]
  );
  const models = concernedModels(files.filter(isModelTest), changed, readText);
  if (!call.isChanged) {
    const again = isNightly ? [] : matchingTestFiles(models, { chosen: all, parts: [] });
    return { chosen: all, isNightly, again, withRows };
  }
  const concerned = concernedProducts(changed);
  const tested = concerned.length === 0 ? "no product" : concerned.join(", ");
  const again = models.length === 0 ? "" : `; models ${models.map((path) => path.replace(/^.*\//, "")).join(", ")}`;
  console.log(`changed: ${changed.length} files differ from ${base.name}: ${tested}${again}`);
  return {
    chosen: testedProducts.filter((name) => named.includes(name) || concerned.includes(name)),
    isNightly,
    again: models,
    withRows,
  };
}

/** Returns the runs of a call, and sentences about what it leaves out. */
function planCall(call: TestCall, factor: number): { runs: readonly TestCommand[]; notRun: readonly string[] } {
  const files = listTestFiles(root);
  const { paths, options } = call;
  const hasProducts = call.named.length > 0 || call.isChanged;
  const asPaths = (found: readonly string[]) => found.map((path) => `./${path}`);
  if ((paths.length > 0 || options.length > 0) && !hasProducts && !call.isNightly) {
    return { runs: [bunTest("chosen tests", factor, ...options, ...paths)], notRun: [] };
  }
  const choice = chooseTests(call, files);
  const plan = planTestRun(files, choice);
  if (paths.length > 0 || options.length > 0) {
    const parts = paths.map(plainTestPath);
    const found = paths.length > 0 && !call.isNightly
      ? matchingTestFiles(files, { chosen: choice.chosen, parts })
      : [...plan.together, ...plan.waiting, ...plan.alone].filter((path) =>
        parts.length === 0 || parts.some((part) => path.includes(part))
      );
    if (found.length > 0) return { runs: [bunTest("chosen tests", factor, ...options, ...asPaths(found))], notRun: [] };
    return { runs: [], notRun: [`any test, because none that was chosen has ${paths.join(" or ")} in its path`] };
  }
  const tidy: TestCommand = { name: "tidy", command: ["bun", "scripts/tidy.ts"] };
  const runs = [
    ...(call.isNightly ? [] : [tidy]),
    ...(plan.together.length === 0
      ? []
      : [bunTest("tests", factor, ...shareFiles(sharedProcesses), ...asPaths(plan.together))]),
    ...(plan.waiting.length === 0
      ? []
      : [bunTest("faults, two at a time", factor, ...shareFiles(waitingProcesses), ...asPaths(plan.waiting))]),
    ...(plan.alone.length === 0 ? [] : [bunTest("faults", factor, ...asPaths(plan.alone))]),
  ];
  const others = testedProducts.filter((product) => !choice.chosen.includes(product));
  const left = [...plan.leftOut].map(([name, count]) => `${name} ${count}`).join(", ");
  const notRun = [
    ...(others.length > 0 ? [`the tests of ${others.join(", ")}`] : []),
    ...(left !== "" ? [`${call.isNightly ? "everyday" : "nightly"} (files: ${left})`] : []),
  ];
  return { runs, notRun };
}

function printSummary(
  summaries: readonly TestSummary[],
  notRun: readonly string[],
  tookMs: number,
): { failed: number } {
  const total = { passed: 0, failed: 0, skipped: 0 };
  console.log(`\n== summary, after ${Math.round(tookMs / 1000)} s`);
  for (const { name, passed, failed, skipped, failures } of summaries) {
    console.log(`${name}: ${passed} passed, ${failed} failed, ${skipped} skipped`);
    for (const failure of failures) console.log(`  ${failure}`);
    total.passed += passed;
    total.failed += failed;
    total.skipped += skipped;
  }
  const unstable = summaries.flatMap((summary) => summary.unstable);
  if (unstable.length > 0) console.log("UNSTABLE: failed beside other tests, and passed alone. Find out why:");
  for (const line of unstable) console.log(`  ${line}`);
  for (const what of notRun) console.log(`not run: ${what}`);
  const missing = new Set(summaries.flatMap((summary) => summary.missingPeers));
  for (const peer of missing) console.log(peer);
  if (missing.size > 0) {
    console.log("Their tests were skipped. `sh scripts/test --install-peers` installs them on Debian.");
  }
  const skipped = total.skipped > 0 ? `, ${total.skipped} skipped` : "";
  console.log(`\n${total.passed} passed, ${total.failed} failed${skipped}`);
  return total;
}

const stopping = new AbortController();
let stoppedBy: "SIGINT" | "SIGTERM" | "SIGHUP" | null = null;
for (const name of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
  process.on(name, () => {
    stoppedBy ??= name;
    stopping.abort(name);
  });
}

const call = readTestCall(root, process.argv.slice(2));
const factor = slowness();
console.log(`this machine: ${factor.toFixed(1)} times slower than the reference`);
const { runs, notRun } = planCall(call, factor);
const startMs = performance.now();
const summaries: TestSummary[] = [];
const left: string[] = [];
for (const run of runs) {
  if (stopping.signal.aborted) {
    left.push(`${run.name}, because of ${stopping.signal.reason}`);
    continue;
  }
  const summary = await runAndShow(run);
  const runAlone = (files: readonly string[]) =>
    runAndShow(bunTest("failed tests, alone", factor, ...files.map((path) => `./${path}`)));
  const isShared = run.command.some((word) => word.startsWith("--parallel="));
  summaries.push(isShared ? await separateUnstable(summary, runAlone) : summary);
}

async function runAndShow(run: TestCommand): Promise<TestSummary> {
  console.log(`\n== ${run.name}`);
  return await runTestCommand(run, {
    root,
    env: testEnvironment(call),
    silentMsMax: (longestTestMs + 60_000) * factor,
    signal: stopping.signal,
    show: (text) => process.stdout.write(text),
  });
}

const { failed } = printSummary(summaries, [...left, ...notRun], performance.now() - startMs);
if (stoppedBy !== null) process.exit(128 + constants.signals[stoppedBy]);
process.exitCode = failed === 0 && runs.length > 0 ? 0 : 1;
