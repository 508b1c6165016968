/** Folders that do not yet follow a rule of style. This list may only become shorter. */
import { checkCounted, type KnownCounts } from "./counted.ts";
import type { Finding } from "./source_file.ts";

/** The findings of each rule by folder. A number here may only decrease. */
const left: Readonly<Record<string, KnownCounts>> = {
  columns: {
    scripts: 1,
    "test/checker": 1,
    "test/coordination": 66,
    "test/operator": 9,
    "test/program": 6,
    "test/pubsub": 67,
    "test/retry": 37,
    "test/support": 1,
  },
};

/** Returns the top folder: `src/pubsub` for `src/pubsub/store/topic_store.ts`, `scripts` for a script. */
function topFolder(path: string): string {
  const [top = "", product = ""] = path.split("/");
  return top === "scripts" || product.includes(".") ? top : `${top}/${product}`;
}

/** Returns the findings of a rule, except the known ones of the listed folders. */
export function checkFoldersLeft(
  rule: string,
  findings: readonly Finding[],
  known: KnownCounts = left[rule] ?? {},
): Finding[] {
  const keyOf = ({ path }: Finding) => topFolder(path);
  return checkCounted(findings, known, { keyOf, list: "scripts/tidy/folders_left.ts", noun: "finding" });
}
