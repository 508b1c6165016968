/** Chooses the test files of a run. Pure. */

export const testedProducts = ["base", "coordination", "pubsub", "retry", "operator", "program"] as const;
export type TestedProduct = typeof testedProducts[number];

/** The tests that run only at night, by the name under which the summary counts them. */
const nightly: readonly { readonly name: string; readonly path: RegExp }[] = [
  { name: "known defects", path: /\/simulation\/known_defects_test\.ts$/ },
  { name: "traces of simulated worlds", path: /\/simulation\/traces_test\.ts$/ },
  { name: "models", path: /\/model\/\w+_model_test\.ts$/ },
  { name: "campaigns", path: /\/fault\/(barrier|cron|election|hold|pool|znode|pubsub_database)_fault_test\.ts$/ },
  { name: "releases", path: /\/release\/(reproducible|release)_test\.ts$/ },
  { name: "the installed library", path: /\/runtime\/installed_library_test\.ts$/ },
  { name: "libzmq in Node.js", path: /\/conformance\/zmtp_node_test\.ts$/ },
  { name: "lengths of ways", path: /\/integration\/ways_test\.ts$/ },
  { name: "Firefox", path: /\/ui_firefox_test\.ts$/ },
  { name: "old releases of PostgreSQL", path: /\/postgres_releases_test\.ts$/ },
];

/** Faults that mostly wait, or that end a program at chosen steps: two of these files run at a time. */
const waitingFaults = [
  "coordination/fault/keeper_attack_fault_test.ts",
  "coordination/fault/keeper_damage_fault_test.ts",
  "coordination/fault/keeper_storage_fault_test.ts",
  "coordination/fault/respawning_job_fault_test.ts",
  "coordination/fault/server_stall_test.ts",
  "pubsub/fault/pubsub_client_storage_fault_test.ts",
  "pubsub/fault/pubsub_refusal_fault_test.ts",
  "pubsub/fault/pubsub_storage_fault_test.ts",
  "retry/fault/retry_fault_test.ts",
  "retry/fault/retry_storage_fault_test.ts",
].map((path) => `test/${path}`);

/** The products whose tests a changed file concerns; the longest matching path counts. */
const concerned: Readonly<Record<string, "all" | readonly TestedProduct[]>> = {
  "src/": "all",
  "src/coordination/": ["coordination", "operator"],
  "src/coordination/nodes/": "all",
  "src/coordination/connect/": "all",
  "src/coordination/settings/": "all",
  "src/coordination/election/": ["coordination", "retry", "operator"],
  "src/protocols/zeromq/": ["pubsub", "retry"],
  "src/protocols/kafka/": ["retry"],
  "src/pubsub/": ["pubsub", "operator"],
  "src/pubsub/client/": ["pubsub", "retry", "operator"],
  "src/pubsub/wire/": ["pubsub", "retry", "operator"],
  "src/retry/": ["retry", "operator"],
  "src/operator/": ["operator"],
  "src/library/": ["coordination", "pubsub", "retry", "program"],
  "commands/": "all",
  "commands/coordination/": ["coordination", "operator", "program"],
  "commands/pubsub/": ["pubsub", "operator", "program"],
  "commands/retry/": ["retry", "operator", "program"],
  "commands/operator/": ["operator", "program"],
  "commands/program/": ["program"],
  "commands/json_shapes/": ["program"],
  "test/": "all",
  "test/coordination/": ["coordination"],
  "test/pubsub/": ["pubsub"],
  "test/retry/": ["retry"],
  "test/operator/": ["operator"],
  "test/base/": ["base"],
  "test/program/": ["program"],
  "scripts/": ["program"],
  "docs/": [],
};

/**
 * Returns the products whose tests these changed files concern. Files at the top level concern all, pages of text none.
 */
export function concernedProducts(changed: readonly string[]): TestedProduct[] {
  const found = new Set<TestedProduct>();
  for (const path of changed) {
    const key = Object.keys(concerned).filter((prefix) =>
      path.startsWith(prefix)
    ).sort((a, b) => b.length - a.length)[0];
    const tested = key !== undefined ? concerned[key] : path.endsWith(".md") ? [] : "all";
    for (const product of tested === "all" || tested === undefined ? testedProducts : tested) found.add(product);
  }
  return testedProducts.filter((product) => found.has(product));
}

export interface TestRun {
  /** Files that run several at a time. */
  readonly together: readonly string[];
  /** Files of faults that may run two at a time. */
  readonly waiting: readonly string[];
  /** Other files of faults: one at a time, since each runs many rounds at the same time. */
  readonly alone: readonly string[];
  /** The number of files that are left out, by name. */
  readonly leftOut: ReadonlyMap<string, number>;
}

export interface TestChoice {
  readonly chosen: readonly TestedProduct[];
  /** True for the nightly files instead of the everyday ones. */
  readonly isNightly: boolean;
  /** Files that run in any case. */
  readonly again: readonly string[];
  /** Files of which each tier runs its own rows. */
  readonly withRows: readonly string[];
}

/** Returns the files of the chosen products. `files`: all paths from the project's root. */
export function planTestRun(files: readonly string[], { chosen, isNightly, again, withRows }: TestChoice): TestRun {
  const together: string[] = [];
  const waiting: string[] = [];
  const alone: string[] = [];
  const leftOut = new Map<string, number>();
  for (const path of [...files].sort()) {
    const isAgain = again.includes(path);
    if (!path.endsWith("_test.ts") || !(isAgain || chosen.includes(productOf(path)))) continue;
    const rule = nightly.find((row) => row.path.test(path));
    const hasRows = rule === undefined && withRows.includes(path);
    const isLeftOut = (rule !== undefined) !== isNightly && !isAgain;
    if (isLeftOut || (hasRows && !isNightly)) {
      const name = rule?.name ?? (hasRows ? "some rows of" : "everyday");
      leftOut.set(name, (leftOut.get(name) ?? 0) + 1);
    }
    if (isLeftOut && !hasRows) continue;
    if (waitingFaults.includes(path)) waiting.push(path);
    else if (/\/fault\/\w+_test\.ts$/.test(path)) alone.push(path);
    else together.push(path);
  }
  return { together, waiting, alone, leftOut };
}

/** Returns the tests of these products whose paths contain one of these parts, including nightly tests. */
export function matchingTestFiles(
  files: readonly string[],
  { chosen, parts }: { readonly chosen: readonly TestedProduct[]; readonly parts: readonly string[] },
): string[] {
  return files.filter((path) =>
    path.endsWith("_test.ts") && chosen.includes(productOf(path)) &&
    (parts.length === 0 || parts.some((part) => path.includes(part)))
  ).sort();
}

/** Returns the product of a test. Tests of checkers, of the simulated world and of test supports belong to `base`. */
function productOf(path: string): TestedProduct {
  const [, name] = path.split("/");
  return testedProducts.find((product) => product === name) ?? "base";
}
