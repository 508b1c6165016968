/** Reads the objects below a root node as rows. */
import type { CoordinationObjectRow } from "../../base/rows/object_row.ts";
import type { RowKind, RowSnapshot } from "../../base/rows/row_kinds.ts";
import type { ZooKeeper } from "../../protocols/zookeeper/zookeeper.ts";
import { type ListedObjectKind, listedObjectKinds, listObjectsInUse } from "../admin/list_in_use.ts";
import { listInteropQueues } from "../admin/list_interop.ts";
import { readDetailsOfUsedObjects } from "../admin/object_details.ts";
import { interopNodeNaming, type InteropRecipe } from "../nodes/interop_node_names.ts";
import { readPoolRows } from "./pool_rows.ts";
import { listScheduleRows } from "./schedule_rows.ts";

/** Returns true if an object is in use. Also returns true if an ACL hides the numbers. */
const isInUse = ({ holders, waiters }: CoordinationObjectRow) => holders !== 0 || waiters !== 0;

interface ReadRowsOptions {
  readonly root: string;
  readonly kinds: readonly RowKind[];
  /** True to include unused objects. */
  readonly all: boolean;
  /** True to include the holders and waiters of objects in use. */
  readonly long: boolean;
}

/** Reads rows. Ignores kinds that do not belong to coordination. */
export async function readObjectRows(zk: ZooKeeper, { root, kinds, all, long }: ReadRowsOptions): Promise<RowSnapshot> {
  const objectKinds = listedObjectKinds.filter((kind) => kinds.includes(kind));
  const [existing, schedules] = await Promise.all([
    listObjectsInUse(zk, { root, kinds: objectKinds }),
    kinds.includes("schedule") ? listScheduleRows(zk, root) : undefined,
  ]);
  const count = (of: (kind: ListedObjectKind) => readonly CoordinationObjectRow[]) => objectKinds.flatMap(of).length;
  const shown = (kind: ListedObjectKind) => existing[kind].filter((one) => all || isInUse(one));
  const found = {
    lock: shown("lock"),
    election: shown("election"),
    barrier: shown("barrier"),
    gate: shown("gate"),
    pool: shown("pool"),
  };
  const [pool, details] = await Promise.all([
    readPoolRows(zk, found.pool, root),
    long ? readDetailsOfUsedObjects(zk, found, { root, max: Infinity }) : undefined,
  ]);
  return {
    rows: {
      ...Object.fromEntries(objectKinds.map((kind) => [kind, found[kind]])),
      ...(objectKinds.includes("pool") ? { pool } : {}),
      ...(schedules === undefined ? {} : { schedule: schedules }),
    },
    unused: count((kind) => existing[kind]) - count((kind) => found[kind]),
    ...(details === undefined ? {} : { details }),
  };
}

/** Reads the locks of Curator or kazoo programs at or below a path. */
export async function readInteropLockRows(
  zk: ZooKeeper,
  { path, recipe, all }: { readonly path: string; readonly recipe: InteropRecipe; readonly all: boolean },
): Promise<RowSnapshot> {
  const found = await listInteropQueues(zk, path, recipe);
  return {
    rows: { lock: (found ?? []).filter((one) => all || isInUse(one)) },
    empty: found === null
      ? `node "${path}" does not exist`
      : `no lock of ${interopNodeNaming(recipe).title} is in use below "${path}"`,
  };
}
