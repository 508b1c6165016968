/** Which files of tests a run consists of. Pure. */

export const products = ["base", "coordination", "pubsub", "retry", "operator", "program"] as const;
export type TestedProduct = typeof products[number];

/** What leaves the everyday gate, and under which name the summary counts it. */
const nightly: readonly { readonly name: string; readonly path: RegExp }[] = [
  { name: "known defects", path: /\/simulation\/known_defects_test\.ts$/ },
  { name: "models", path: /\/model\/(lock|barrier|pool_list|pool_settings|tick|guard)_model_test\.ts$/ },
  { name: "campaigns", path: /\/fault\/(barrier|pool|znode|cron)_fault_test\.ts$/ },
  { name: "reproducible builds", path: /\/release\/reproducible_test\.ts$/ },
  { name: "old releases of PostgreSQL", path: /\/postgres_releases_test\.ts$/ },
];

/** Whose tests see a change of a file, by the longest path that fits; "all" for every product. */
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
 * The products whose tests a change of these files concerns. Files at the top level concern all, pages of text none.
 */
export function productsOf(changed: readonly string[]): TestedProduct[] {
  const found = new Set<TestedProduct>();
  for (const path of changed) {
    const key = Object.keys(concerned).filter((prefix) =>
      path.startsWith(prefix)
    ).sort((a, b) => b.length - a.length)[0];
    const tested = key !== undefined ? concerned[key] : path.endsWith(".md") ? [] : "all";
    for (const product of tested === "all" || tested === undefined ? products : tested) found.add(product);
  }
  return products.filter((product) => found.has(product));
}

export interface TestRun {
  /** Files that run several at a time. */
  readonly together: readonly string[];
  /** Files of faults: one at a time, since each runs many rounds at the same time. */
  readonly alone: readonly string[];
  /** What is left out, with the number of files of each name. */
  readonly leftOut: ReadonlyMap<string, number>;
}

/**
 * The files of these products. `files`: all paths from the project's root; `isNightly`: the nightly ones in place of
 * the everyday ones.
 */
export function planRun(
  files: readonly string[],
  { chosen, isNightly }: { readonly chosen: readonly TestedProduct[]; readonly isNightly: boolean },
): TestRun {
  const together: string[] = [];
  const alone: string[] = [];
  const leftOut = new Map<string, number>();
  for (const path of [...files].sort()) {
    if (!path.endsWith("_test.ts") || !chosen.includes(productOf(path))) continue;
    const rule = nightly.find((row) => row.path.test(path));
    if ((rule !== undefined) !== isNightly) {
      const name = rule?.name ?? "everyday";
      leftOut.set(name, (leftOut.get(name) ?? 0) + 1);
    } else if (path.includes("/fault/")) alone.push(path);
    else together.push(path);
  }
  return { together, alone, leftOut };
}

/** What the tests of checkers, of the simulated world, and of test supports belong to. */
function productOf(path: string): TestedProduct {
  const [, name] = path.split("/");
  return products.find((product) => product === name) ?? "base";
}
