/** Folders that do not yet keep a rule of style. This list only becomes shorter, and goes when it is empty. */
import { checkCounted, type KnownCounts } from "./counted.ts";
import type { Finding } from "./source_file.ts";

/** Findings of each rule by folder. A number here may only become smaller. */
const left: Readonly<Record<string, KnownCounts>> = {
  columns: {
    scripts: 1,
    "test/checker": 1,
    "test/coordination": 72,
    "test/operator": 16,
    "test/program": 6,
    "test/pubsub": 67,
    "test/retry": 37,
    "test/support": 1,
  },
  "line savers": {
    "src/coordination": 1,
  },
};

/** `src/pubsub` of `src/pubsub/store/topic_store.ts`; `scripts` of a script. */
function topFolder(path: string): string {
  const [top = "", product = ""] = path.split("/");
  return top === "scripts" || product.includes(".") ? top : `${top}/${product}`;
}

/** The findings of a rule without those of the folders that are known. */
export function checkFoldersLeft(
  rule: string,
  findings: readonly Finding[],
  known: KnownCounts = left[rule] ?? {},
): Finding[] {
  const keyOf = ({ path }: Finding) => topFolder(path);
  return checkCounted(findings, known, { keyOf, list: "scripts/tidy/folders_left.ts", noun: "finding" });
}
