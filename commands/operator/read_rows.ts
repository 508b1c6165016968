/** Reads the objects below the root as rows of the page of `baton ui`. Owns no connection. */
import { countHoldersAndWaiters } from "../../src/coordination/admin/list_in_use.ts";
import { type FollowedObjectFolder, watchListsOfNodes } from "../../src/coordination/admin/follow_folders.ts";
import {
  readUseStatus,
  type UseHolder,
  type UseStatus,
  type UseWaiter,
} from "../../src/coordination/admin/use_status.ts";
import type { HolderNodeInfo } from "../../src/coordination/nodes/holder_info.ts";
import { readHistoryReport } from "../../src/coordination/history/history_report.ts";
import {
  coordinationFolderPath,
  coordinationObjectPath,
  electionPath,
  lockPath,
} from "../../src/coordination/nodes/node_paths.ts";
import { lockStatus } from "../../src/coordination/lock/lock_status.ts";
import { ItemResultStore } from "../../src/coordination/pool/item_result_store.ts";
import { poolPath } from "../../src/coordination/pool/pool_path.ts";
import { hiddenIfNoAuth, nullIfNoNode, readChildNames } from "../../src/coordination/nodes/node_requests.ts";
import { readTickSchedules } from "../../src/coordination/tick/tick_report.ts";
import { tickSchedulesFolder } from "../../src/coordination/tick/tick_state.ts";
import { BatonError } from "../../src/base/errors.ts";
import type { PersonRow, PoolRow, TickRow, UseRow } from "../../src/operator/ui/ui_rows.ts";
import type { Watcher, ZooKeeper } from "../../src/protocols/zookeeper/zookeeper.ts";

/** The rows of one object on the page, by key, and the table they belong to. */
export type UiObjectRows =
  | { readonly table: "locks" | "elections" | "barriers"; readonly rows: ReadonlyMap<string, UseRow> }
  | { readonly table: "pools"; readonly rows: ReadonlyMap<string, PoolRow> }
  | { readonly table: "ticks"; readonly rows: ReadonlyMap<string, TickRow> };

/** Maximum number of holders, waiters, failed items and runs in a row. */
const peopleMax = 20;
const failuresMax = 100;
const runsMax = 60;

/** Returns the folders that the page follows, with a function that reads each object as rows. */
export function uiFollowedFolders(root: string): readonly FollowedObjectFolder<UiObjectRows>[] {
  const folder = (
    kind: string,
    read: (zk: ZooKeeper, name: string, watch: Watcher) => Promise<UiObjectRows | null>,
  ): FollowedObjectFolder<UiObjectRows> => ({
    path: coordinationFolderPath(kind, root),
    read: (zk, name, watch) => nullIfUnknown(read(zk, name, watch)),
  });
  const queues = (kind: "lock" | "election") => ({
    ...folder(`${kind}s`, (zk, name) => readQueue(zk, { kind, name, root })),
    keepsReads: true,
  });
  return [
    queues("lock"),
    queues("election"),
    folder("barriers", (zk, name, watch) => readNode(zk, { kind: "barrier", name, root, watch })),
    folder("gates", (zk, name, watch) => readNode(zk, { kind: "gate", name, root, watch })),
    folder("pools", (zk, name, watch) => readPool(zk, { name, root, watch })),
    folder("ticks", (zk, name, watch) => readTicks(zk, { name, root, watch })),
  ];
}

/**
 * Returns null for a node whose format this version does not know, so that it does not hide the others. `baton doctor`
 * reports such nodes.
 */
async function nullIfUnknown<T>(reading: Promise<T>): Promise<T | null> {
  try {
    return await reading;
  } catch (thrown) {
    if (thrown instanceof BatonError && (thrown.code === "CONFIG" || thrown.code === "USAGE")) return null;
    throw thrown;
  }
}

interface RowRequest<Kind extends UseRow["kind"] = UseRow["kind"]> {
  readonly kind: Kind;
  readonly name: string;
  readonly root: string;
  readonly watch: Watcher;
}

const tables = { lock: "locks", election: "elections", barrier: "barriers", gate: "barriers" } as const;

/** Barriers and gates share a table, so a gate's key needs a prefix. */
const keyOf = (kind: UseRow["kind"], name: string) => kind === "gate" ? `gate ${name}` : name;

const useRows = (row: UseRow): UiObjectRows => ({
  table: tables[row.kind],
  rows: new Map([[keyOf(row.kind, row.name), row]]),
});

/** Reads a lock or an election; returns null if it is free. */
async function readQueue(
  zk: ZooKeeper,
  { kind, name, root }: Omit<RowRequest<"lock" | "election">, "watch">,
): Promise<UiObjectRows | null> {
  const path = kind === "election" ? electionPath(name, root) : lockPath(name, root);
  // The lock's own list is read because it changes when its child `h` or `q` is created.
  const read = Promise.all([path.lock, path.holders, path.queue].map((node) => readChildNames(zk, node)));
  const found = await hiddenIfNoAuth(read);
  const empty = { kind, name, limit: null, holders: [], waiters: [], problem: null };
  if (found === "hidden") return useRows({ ...empty, holding: null, waiting: null });
  const [, granted = [], queue = []] = found;
  const { holders: holding, waiters: waiting } = countHoldersAndWaiters(granted, queue);
  if (holding === 0 && waiting === 0) return null;
  return await rowOrProblem({ ...empty, holding, waiting }, async () => {
    const status = await lockStatus(zk, name, { path, detailsMax: peopleMax });
    return {
      ...empty,
      holding,
      waiting,
      limit: status.limit,
      holders: status.holders.map((one) => personRow(one, { id: one.holderId, token: one.fencingToken, place: null })),
      waiters: status.waiters.map((one) => personRow(one, { id: one.holderId, token: null, place: one.place })),
    };
  });
}

/** Reads a barrier or a gate; returns null if it is empty. */
async function readNode(zk: ZooKeeper, request: RowRequest<"barrier" | "gate">): Promise<UiObjectRows | null> {
  const { kind, name, root, watch } = request;
  const path = coordinationObjectPath(kind === "gate" ? "gates" : "barriers", name, root);
  const found = await nullIfNoNode(zk.getData(path, { watch }));
  if (found === null) return null;
  const empty = { kind, name, limit: null, holders: [], waiters: [], problem: null };
  const rows = await rowOrProblem({ ...empty, holding: 0, waiting: 0 }, async () => {
    const status = await readUseStatus(watchListsOfNodes(zk, watch), { kind, name, root });
    const person = (one: UseHolder | UseWaiter, token: bigint | null, place: number | null) =>
      personRow(one, { id: one.id, token, place });
    return {
      ...empty,
      limit: status.limit,
      holding: status.holders.length,
      waiting: status.waiters.length,
      holders: status.holders.slice(0, peopleMax).map((one) => person(one, one.fencingToken, one.rank)),
      waiters: status.waiters.slice(0, peopleMax).map((one) => person(one, null, one.place)),
    };
  });
  const row = rows.rows.get(keyOf(kind, name)) as UseRow | undefined;
  return row !== undefined && row.problem === null && row.holding === 0 && row.waiting === 0 ? null : rows;
}

/** Turns an unknown node layout, or another program's node, into a problem of this row only. */
async function rowOrProblem(row: UseRow, read: () => Promise<UseRow>): Promise<UiObjectRows> {
  try {
    return useRows(await read());
  } catch (thrown) {
    if (thrown instanceof BatonError && thrown.code === "CONFIG") return useRows({ ...row, problem: thrown.message });
    throw thrown;
  }
}

/** Leaves out the session and the command's arguments, which may contain secrets. */
function personRow(
  info: HolderNodeInfo & { readonly mode: UseStatus["holders"][number]["mode"] },
  { id, token, place }: Pick<PersonRow, "id" | "place"> & { readonly token: bigint | null },
): PersonRow {
  const { user, host, pid, argv0, sinceMs, mode, reason, value = "", revoke } = info;
  const command = argv0.trim().split(/\s/)[0] ?? "";
  return {
    id,
    user,
    host,
    pid,
    command,
    sinceMs,
    mode,
    reason,
    value,
    place,
    token: token === null ? null : String(token),
    askedBy: revoke?.by ?? null,
  };
}

type FolderRequest = Omit<RowRequest, "kind">;

async function readPool(zk: ZooKeeper, { name, root, watch }: FolderRequest): Promise<UiObjectRows> {
  const path = poolPath(name, { root });
  const lists = watchListsOfNodes(zk, watch);
  await readChildNames(lists, path.own);
  const { done, failed, failures } = await new ItemResultStore(lists, path, []).countResults(failuresMax);
  const items = failures.map(({ item, failure: { by, atMs, what } }) => {
    return { item, state: "failed" as const, by, sinceMs: atMs, what };
  });
  return { table: "pools", rows: new Map([[name, { name, running: 0, done, failed, items }]]) };
}

async function readTicks(zk: ZooKeeper, { name, root, watch }: FolderRequest): Promise<UiObjectRows> {
  const folder = tickSchedulesFolder(name, root);
  const ids = await readChildNames(zk, folder, { watch });
  await Promise.all([
    ...ids.map((id) => nullIfNoNode(zk.getData(`${folder}/${id}`, { watch }))),
    // Watched because the host that runs a tick may be lost.
    readChildNames(zk, lockPath(name, root).holders, { watch }),
  ]);
  const schedules = await readTickSchedules(zk, name, root);
  const { records } = await readHistoryReport(zk, name, { kind: "lock", root });
  const rows = schedules.map(({ id, schedule, zone, nextMs, open }): [string, TickRow] => {
    const runs = records.flatMap((record) => {
      const { result, tickMs, untilMs, count, attempt, host, beganMs, endedMs, exitCode, signal, why } = record;
      if (record.schedule !== id || tickMs === null) return [];
      const times = { tickMs, untilMs: untilMs ?? tickMs, beganMs, endedMs };
      return [{ ...times, result, count, attempt, host, exitCode, signal, why }];
    });
    return [`${name} ${id}`, {
      name,
      schedule,
      zone,
      nextMs,
      open: open === null ? null : {
        tickMs: open.tickMs,
        host: open.host,
        beganMs: open.beganMs,
        isHeld: open.isHeld,
      },
      runs: runs.slice(-runsMax),
    }];
  });
  return { table: "ticks", rows: new Map(rows) };
}
