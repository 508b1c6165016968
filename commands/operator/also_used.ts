/** When nobody has what was asked for: the name may be in use as something else, and was meant as that. */
import type { ZooKeeper } from "../../src/zookeeper/zookeeper.ts";
import { otherUses, type StatusKind } from "../../src/coordination/admin/use_status.ts";

/** The end of a sentence; empty where it is not used. */
export async function alsoUsed(
  zk: ZooKeeper,
  { kind, name, root }: { readonly kind: StatusKind; readonly name: string; readonly root: string },
): Promise<string> {
  const [other] = await otherUses(zk, { kind, name, root });
  if (other === undefined) return "";
  const article = other === "election" ? "an" : "a";
  return `; there is ${article} ${other} of this name: baton who ${other === "lock" ? "" : `--kind ${other} `}${name}`;
}
