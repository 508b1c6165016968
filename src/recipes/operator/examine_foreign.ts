/** Finds trouble with locks of Curator's and kazoo's: looks at those below a node once. Their own programs would not say. */
import type { ZooKeeper } from "../../clients/zookeeper/zookeeper.ts";
import { printable } from "../../support/printable.ts";
import { type ForeignRecipe, namingOf, parseForeign, recipeOf } from "../foreign/foreign_names.ts";
import { listForeign } from "../foreign/list_foreign.ts";
import { orNull } from "../lock/lock_view.ts";
import { type Examination, type Finding, sequenceMax, sequenceWarning } from "./examine.ts";

export interface ForeignLockFound {
  readonly path: string;
  readonly recipe: ForeignRecipe;
  readonly children: readonly { readonly name: string; readonly isEphemeral: boolean }[];
  /** Where the server's counter stands. */
  readonly sequence: number;
}

/** How many locks are looked at at a time. */
const batchSize = 50;

/** Null when there is no such node. */
export async function examineForeign(
  zk: ZooKeeper,
  folder: string,
  recipe: ForeignRecipe,
): Promise<Examination | null> {
  const locks = await listForeign(zk, folder, recipe);
  if (locks === null) return null;
  const findings: Finding[] = [];
  for (let start = 0; start < locks.length; start += batchSize) {
    const found = await Promise.all(locks.slice(start, start + batchSize).map(({ name }) => read(zk, name, recipe)));
    findings.push(...found.flatMap((lock) => lock === null ? [] : examineForeignLock(lock)));
  }
  return { locks: locks.length, elections: 0, findings };
}

/** Null when it is gone by now. */
async function read(zk: ZooKeeper, path: string, recipe: ForeignRecipe): Promise<ForeignLockFound | null> {
  const list = await orNull(zk.getChildren(path));
  if (list === null) return null;
  const stats = await Promise.all(list.children.map((name) => zk.exists(`${path}/${name}`)));
  const children = list.children.flatMap((name, index) => {
    const stat = stats[index] ?? null;
    return stat === null ? [] : [{ name, isEphemeral: stat.ephemeralOwner !== 0n }];
  });
  return { path, recipe, children, sequence: list.stat.cversion };
}

/** What is wrong with one lock. Pure. */
export function examineForeignLock({ path, recipe, children, sequence }: ForeignLockFound): Finding[] {
  const findings: Finding[] = [];
  const say = (kind: Finding["kind"], what: string) =>
    findings.push({ kind, where: `lock ${JSON.stringify(path)}`, what: printable(what) });
  let last = sequence;
  for (const { name, isEphemeral } of children) {
    const node = parseForeign(recipe, name);
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
