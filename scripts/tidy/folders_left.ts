/** Folders that do not yet keep a rule of style. This list only becomes shorter, and goes when it is empty. */
import { checkCounted, type KnownCounts } from "./counted.ts";
import type { Finding } from "./source_file.ts";

/** Findings of each rule by folder. A number here may only become smaller. */
const left: Readonly<Record<string, KnownCounts>> = {
  columns: {
    "commands/coordination": 121,
    "commands/json_shapes": 1,
    "commands/operator": 24,
    "commands/program": 11,
    "commands/pubsub": 71,
    "commands/retry": 45,
    scripts: 47,
    "src/base": 30,
    "src/coordination": 42,
    "src/operator": 4,
    "src/protocols": 5,
    "src/pubsub": 32,
    "src/retry": 60,
    "test/base": 51,
    "test/checker": 1,
    "test/coordination": 127,
    "test/operator": 19,
    "test/program": 9,
    "test/pubsub": 101,
    "test/retry": 38,
    "test/support": 1,
  },
  "line savers": {
    "commands/coordination": 61,
    "commands/json_shapes": 1,
    "commands/operator": 29,
    "commands/program": 1,
    "commands/pubsub": 11,
    "commands/retry": 9,
    scripts: 66,
    "src/base": 32,
    "src/coordination": 45,
    "src/library": 3,
    "src/operator": 6,
    "src/protocols": 5,
    "src/pubsub": 42,
    "src/retry": 22,
  },
};

/** `src/pubsub` of `src/pubsub/store/topic_store.ts`; `scripts` of a script. */
function topFolder(path: string): string {
  const [top = "", product = ""] = path.split("/");
  return top === "scripts" || product.includes(".") ? top : `${top}/${product}`;
}

/** The findings of a rule without those of the folders that are known. */
export function checkLeft(
  rule: string,
  findings: readonly Finding[],
  known: KnownCounts = left[rule] ?? {},
): Finding[] {
  const keyOf = ({ path }: Finding) => topFolder(path);
  return checkCounted(findings, known, { keyOf, list: "scripts/tidy/folders_left.ts", noun: "finding" });
}
