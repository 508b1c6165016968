/** Finds trouble with locks of Curator's and kazoo's: looks at those below a node once. Their own programs would not say. */
import type { ZooKeeper } from "../../zookeeper/zookeeper.ts";
import { hiddenIfNoAuth } from "../request_errors.ts";
import { printable } from "../../support/text.ts";
import { type InteropRecipe, namingOf, parseInteropNode, recipeOf } from "../interop/interop_node_names.ts";
import { type InteropNodeList, interopNodes } from "./list_interop.ts";
import { type Diagnosis, type DiagnosisFinding, sequenceMax, sequenceWarning } from "./diagnose.ts";

export interface InteropLockSnapshot {
  readonly path: string;
  readonly recipe: InteropRecipe;
  readonly children: readonly { readonly name: string; readonly isEphemeral: boolean }[];
  /** Where the server's counter stands. */
  readonly sequence: number;
}

/** How many locks are looked at at a time. */
const batchSize = 50;

/** Null when there is no such node. */
export async function diagnoseInterop(
  zk: ZooKeeper,
  folder: string,
  recipe: InteropRecipe,
): Promise<Diagnosis | null> {
  const nodes = await interopNodes(zk, folder, recipe);
  if (nodes === null) return null;
  const findings: DiagnosisFinding[] = [];
  for (let start = 0; start < nodes.length; start += batchSize) {
    const found = await Promise.all(nodes.slice(start, start + batchSize).map((node) => read(zk, node, recipe)));
    findings.push(...found.flatMap(diagnoseInteropLock));
  }
  // A node without children is looked at, for its counter, but may be anything.
  return { locks: nodes.filter(({ children }) => children.length > 0).length, elections: 0, findings };
}

async function read(
  zk: ZooKeeper,
  { path, children, sequence }: InteropNodeList,
  recipe: InteropRecipe,
): Promise<InteropLockSnapshot> {
  // A node that cannot be read is not found fault with.
  const stats = await Promise.all(children.map((name) => hiddenIfNoAuth(zk.exists(`${path}/${name}`))));
  const there = children.flatMap((name, index) => {
    const stat = stats[index] ?? null;
    return stat === null ? [] : [{ name, isEphemeral: stat === "hidden" || stat.ephemeralOwner !== 0n }];
  });
  return { path, recipe, children: there, sequence };
}

/** What is wrong with one lock. Pure. */
export function diagnoseInteropLock({ path, recipe, children, sequence }: InteropLockSnapshot): DiagnosisFinding[] {
  const findings: DiagnosisFinding[] = [];
  const say = (kind: DiagnosisFinding["kind"], what: string) =>
    findings.push({ kind, where: `lock ${JSON.stringify(path)}`, what: printable(what) });
  let last = sequence;
  for (const { name, isEphemeral } of children) {
    const node = parseInteropNode(recipe, name);
    const other = recipeOf(name);
    if (node === null) {
      const whose = other === null ? "is none of its names" : `is of ${namingOf(other).title}`;
      say(
        "problem",
        `"${name}" ${whose}, and what ${namingOf(recipe).title} makes does not wait for it, nor it for that`,
      );
      continue;
    }
    last = Math.max(last, node.sequence < 0 ? sequenceMax : node.sequence);
    if (isEphemeral) continue;
    say("problem", `"${name}" belongs to no session, so that whoever comes later waits for ever: delete it`);
  }
  const remedy = "delete the node while nobody uses it";
  if (last >= sequenceMax) say("problem", `its counter is at its end, and two may hold it at once: ${remedy}`);
  else if (last >= sequenceWarning) {
    say("warning", `its counter stands at ${last}, and from ${sequenceMax} on two may hold it at once: ${remedy}`);
  }
  return findings;
}
