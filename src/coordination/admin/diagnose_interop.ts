/** Checks the locks of Curator or kazoo programs below a node once and reports problems. */
import type { ZooKeeper } from "../../zookeeper/zookeeper.ts";
import { hiddenIfNoAuth, mapInBatches } from "../request_errors.ts";
import { printable } from "../../support/text.ts";
import { type InteropRecipe, namingOf, parseInteropNode, recipeOf } from "../interop/interop_node_names.ts";
import { type InteropNodeList, interopNodes } from "./list_interop.ts";
import { type Diagnosis, type DiagnosisFinding, sequenceMax, sequenceWarning } from "./diagnose.ts";

export interface InteropLockSnapshot {
  readonly path: string;
  readonly recipe: InteropRecipe;
  readonly children: readonly { readonly name: string; readonly isEphemeral: boolean }[];
  /** Value of the server's counter. */
  readonly sequence: number;
}

/** Number of locks that are read at the same time. */
const batchSize = 50;

/** Returns null when the node does not exist. */
export async function diagnoseInterop(
  zk: ZooKeeper,
  folder: string,
  recipe: InteropRecipe,
): Promise<Diagnosis | null> {
  const nodes = await interopNodes(zk, folder, recipe);
  if (nodes === null) return null;
  const found = await mapInBatches(nodes, batchSize, (node) => readSnapshot(zk, node, recipe));
  // A node without children may be anything; only its counter is checked, and it is not counted as a lock.
  return {
    locks: nodes.filter(({ children }) => children.length > 0).length,
    elections: 0,
    findings: found.flatMap(diagnoseInteropLock),
  };
}

async function readSnapshot(
  zk: ZooKeeper,
  { path, children, sequence }: InteropNodeList,
  recipe: InteropRecipe,
): Promise<InteropLockSnapshot> {
  // A node that cannot be read is not reported.
  const stats = await Promise.all(children.map((name) => hiddenIfNoAuth(zk.exists(`${path}/${name}`))));
  const there = children.flatMap((name, index) => {
    const stat = stats[index] ?? null;
    return stat === null ? [] : [{ name, isEphemeral: stat === "hidden" || stat.ephemeralOwner !== 0n }];
  });
  return { path, recipe, children: there, sequence };
}

/** Returns the findings for one lock. Pure. */
export function diagnoseInteropLock({ path, recipe, children, sequence }: InteropLockSnapshot): DiagnosisFinding[] {
  const findings: DiagnosisFinding[] = [];
  const addFinding = (kind: DiagnosisFinding["kind"], what: string) =>
    findings.push({ kind, where: `lock ${JSON.stringify(path)}`, what: printable(what) });
  let last = sequence;
  for (const { name, isEphemeral } of children) {
    const node = parseInteropNode(recipe, name);
    const other = recipeOf(name);
    if (node === null) {
      const kind = other === null ? "has no name of this recipe" : `belongs to ${namingOf(other).title}`;
      addFinding(
        "problem",
        `"${name}" ${kind}: it and the contenders of ${namingOf(recipe).title} do not wait for each other`,
      );
      continue;
    }
    last = Math.max(last, node.sequence < 0 ? sequenceMax : node.sequence);
    if (isEphemeral) continue;
    addFinding("problem", `"${name}" belongs to no session, so that later contenders wait forever: delete it`);
  }
  const result = "two processes may hold it at the same time; delete the node when it is not in use";
  if (last >= sequenceMax) addFinding("problem", `its counter has reached its end: ${result}`);
  else if (last >= sequenceWarning) {
    addFinding("warning", `its counter is at ${last}: from ${sequenceMax} on ${result}`);
  }
  return findings;
}
