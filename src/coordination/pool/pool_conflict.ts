/** Whether a pool is run with its locks at other places than one looks at: a look, no decision. */
import type { ZooKeeper } from "../../zookeeper/zookeeper.ts";
import { nullIfNoNode } from "../request_errors.ts";
import { termsHashOfRun } from "./pool_admission.ts";
import type { PoolPath } from "./pool_path.ts";
import { type AnnouncedTerms, parseTerms, termsHash } from "./pool_terms.ts";

/** There is one at a time, and for a moment those that are being refused. */
const marksMax = 16;

/** The terms of such a run; null where there is none. */
export async function conflictingRun(zk: ZooKeeper, path: PoolPath): Promise<AnnouncedTerms | null> {
  const names = (await nullIfNoNode(zk.getChildren(path.runs)))?.children ?? [];
  const runs = new Map(names.map((name) => [termsHashOfRun(name), name]));
  for (const [mark, name] of [...runs].slice(0, marksMax)) {
    const found = mark === null ? null : await nullIfNoNode(zk.getData(`${path.runs}/${name}`));
    const terms = found === null ? null : parseTerms(found.data);
    // The mark is of the places and of --total, which is none here.
    if (terms !== null && termsHash(path, terms.total) !== mark) return terms;
  }
  return null;
}
