/** Follows the objects below a root node as rows. Yields all rows first, then the rows that have changed. */
import type { CoordinationObjectKind, FollowedCoordinationRow, HolderRow } from "../../base/rows/object_row.ts";
import type { FollowedPoolRow, PoolItemRow } from "../../base/rows/pool_row.ts";
import type { RowChange, RowChanges } from "../../base/rows/row_kinds.ts";
import type { FollowedScheduleRow } from "../../base/rows/schedule_row.ts";
import type { Clock } from "../../base/support/clock.ts";
import { BatonError } from "../../base/errors.ts";
import type { Watcher, ZooKeeper } from "../../protocols/zookeeper/zookeeper.ts";
import { type FollowedObjectFolder, followObjectFolders, watchChildListReads } from "../admin/follow_folders.ts";
import { countHoldersAndWaiters } from "../admin/list_in_use.ts";
import { lockHolderRow, lockWaiterRow, readObjectDetails } from "../admin/object_details.ts";
import { readHistoryReport } from "../history/history_report.ts";
import { lockStatus } from "../lock/lock_status.ts";
import { coordinationFolderPath, coordinationObjectPath, electionPath, lockPath } from "../nodes/node_paths.ts";
import { hiddenIfNoAuth, nullIfNoNode, readChildNames } from "../nodes/node_requests.ts";
import { poolPath } from "../pool/pool_path.ts";
import { readTickSchedules } from "../tick/tick_report.ts";
import { tickSchedulesFolder } from "../tick/tick_state.ts";
import { countPoolResults, itemResultRow } from "./pool_rows.ts";
import { scheduleRow, scheduleRunRow } from "./schedule_rows.ts";

/** The rows of one object, by their keys. */
type ObjectRows = ReadonlyMap<string, RowChange>;

/** The most holders and waiters of an object, running items of a pool, and runs of a schedule that are shown. */
const participantsMax = 20;
const itemsMax = 100;
const runsMax = 60;

interface FollowOptions {
  readonly root: string;
  readonly signal: AbortSignal;
  readonly clock: Clock;
  /** The time for which changes are gathered before they are read, in milliseconds. */
  readonly gatherMs: number;
}

/**
 * Yields the changes of rows. Ends when the signal aborts. Throws when the session ends or the server refuses a read.
 */
export async function* followObjectRows(
  zk: ZooKeeper,
  { root, ...options }: FollowOptions,
): AsyncGenerator<RowChanges, void, void> {
  const objects = new Map<string, ObjectRows>();
  const pools = new FollowedPools();
  for await (const { changes, unread, omitted } of followObjectFolders(zk, followedFolders(root), options)) {
    const found = changes.flatMap(({ folder, name, value }): RowChange[] => {
      const object = `${folder} ${name}`;
      const gone = [...objects.get(object) ?? []].filter(([key]) => !value?.has(key));
      if (value === null) objects.delete(object);
      else objects.set(object, value);
      return [...gone.map(([, change]) => ({ ...change, row: null })), ...value?.values() ?? []];
    });
    yield {
      changes: [...found.filter((change) => !pools.take(change)), ...pools.rows()],
      isComplete: unread === 0,
      isCut: omitted > 0,
    };
  }
}

/** Remembers pools as they were read, and locks with names COMPONENT/ITEM, which may be running jobs of these pools. */
class FollowedPools {
  readonly #pools = new Map<string, FollowedPoolRow>();
  readonly #jobs = new Map<string, FollowedCoordinationRow>();
  #gone: RowChange[] = [];

  /** Returns true for the change of a pool; `rows` later returns the pool with its jobs. */
  take(change: RowChange): boolean {
    const { kind, key, row } = change;
    if (kind === "lock" && key.includes("/")) {
      if (row === null) this.#jobs.delete(key);
      else this.#jobs.set(key, row);
    }
    if (kind !== "pool") return false;
    if (row === null) {
      this.#gone.push(change);
      this.#pools.delete(key);
    } else this.#pools.set(key, row);
    return true;
  }

  rows(): RowChange[] {
    const gone = this.#gone;
    this.#gone = [];
    const jobs = [...this.#jobs].filter(([, { holders }]) => holders !== 0);
    const rows = [...this.#pools].map(([name, pool]): RowChange => {
      const prefix = `${name}/`;
      const held = jobs.filter(([key]) => key.startsWith(prefix));
      const running = held.slice(0, itemsMax).map(([key, { first_holders: [holder] }]): PoolItemRow => ({
        item: key.slice(prefix.length),
        state: "running",
        holder: holder === undefined ? null : poolHolder(holder),
        last_result: null,
      }));
      return { kind: "pool", key: name, row: { ...pool, holders: held.length, items: [...running, ...pool.items] } };
    });
    return [...gone, ...rows];
  }
}

function poolHolder({ id, host, pid, user, command, since, fencing_token }: HolderRow): PoolItemRow["holder"] {
  return id === null || fencing_token === null ? null : { id, host, pid, user, command, since, fencing_token };
}

interface ObjectRequest<Kind extends CoordinationObjectKind = CoordinationObjectKind> {
  readonly kind: Kind;
  readonly name: string;
  readonly root: string;
  readonly watch: Watcher;
}

function followedFolders(root: string): readonly FollowedObjectFolder<ObjectRows>[] {
  const folder = (
    kind: string,
    read: (zk: ZooKeeper, name: string, watch: Watcher) => Promise<readonly RowChange[]>,
  ): FollowedObjectFolder<ObjectRows> => ({
    path: coordinationFolderPath(kind, root),
    read: async (zk, name, watch) => {
      const rows = await emptyIfUnknown(read(zk, name, watch));
      return rows.length === 0 ? null : new Map(rows.map((row) => [row.key, row]));
    },
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
    folder("ticks", (zk, name, watch) => readSchedules(zk, { name, root, watch })),
  ];
}

/**
 * Returns no rows for a node with an unknown format. Other nodes are still shown, and `baton doctor` reports this one.
 */
async function emptyIfUnknown(reading: Promise<readonly RowChange[]>): Promise<readonly RowChange[]> {
  try {
    return await reading;
  } catch (thrown) {
    if (thrown instanceof BatonError && (thrown.code === "CONFIG" || thrown.code === "USAGE")) return [];
    throw thrown;
  }
}

const objectChange = (row: FollowedCoordinationRow): RowChange[] => [{ kind: row.kind, key: row.name, row }];

/** Returns no row if the lock or election is free. */
async function readQueue(
  zk: ZooKeeper,
  { kind, name, root }: Omit<ObjectRequest<"lock" | "election">, "watch">,
): Promise<readonly RowChange[]> {
  const path = kind === "election" ? electionPath(name, root) : lockPath(name, root);
  // Reads the children of the lock's node, because they change when the child `h` or `q` is created.
  const read = Promise.all([path.lock, path.holders, path.queue].map((node) => readChildNames(zk, node)));
  const found = await hiddenIfNoAuth(read);
  const empty = { kind, name, limit: null, first_holders: [], first_waiters: [], problem: null };
  if (found === "hidden") return objectChange({ ...empty, holders: null, waiters: null });
  const [, granted = [], queue = []] = found;
  const { holders, waiters } = countHoldersAndWaiters(granted, queue);
  if (holders === 0 && waiters === 0) return [];
  return await rowOrProblem({ ...empty, holders, waiters }, async () => {
    const status = await lockStatus(zk, name, { path, detailsMax: participantsMax });
    return {
      ...empty,
      holders,
      waiters,
      limit: status.limit,
      first_holders: status.holders.map(lockHolderRow).map(withoutSecrets),
      first_waiters: status.waiters.map(lockWaiterRow).map(withoutSecrets),
    };
  });
}

/** Returns no row if the barrier or gate is empty. */
async function readNode(zk: ZooKeeper, request: ObjectRequest<"barrier" | "gate">): Promise<readonly RowChange[]> {
  const { kind, name, root, watch } = request;
  const path = coordinationObjectPath(kind === "gate" ? "gates" : "barriers", name, root);
  const found = await nullIfNoNode(zk.getData(path, { watch }));
  if (found === null) return [];
  const empty = { kind, name, limit: null, first_holders: [], first_waiters: [], problem: null };
  const rows = await rowOrProblem({ ...empty, holders: 0, waiters: 0 }, async () => {
    const { limit, holders, waiters } = await readObjectDetails(watchChildListReads(zk, watch), { kind, name, root });
    return {
      ...empty,
      limit,
      holders: holders.length,
      waiters: waiters.length,
      first_holders: holders.slice(0, participantsMax).map(withoutSecrets),
      first_waiters: waiters.slice(0, participantsMax).map(withoutSecrets),
    };
  });
  const isEmpty = ({ problem, holders, waiters }: FollowedCoordinationRow) =>
    problem === null && holders === 0 && waiters === 0;
  return rows.filter(({ row }) => row === null || !isEmpty(row as FollowedCoordinationRow));
}

/** Returns the row. If the node has an unknown layout or belongs to another program, the row contains this problem. */
async function rowOrProblem(
  row: FollowedCoordinationRow,
  read: () => Promise<FollowedCoordinationRow>,
): Promise<readonly RowChange[]> {
  try {
    return objectChange(await read());
  } catch (thrown) {
    if (thrown instanceof BatonError && thrown.code === "CONFIG") {
      return objectChange({ ...row, problem: thrown.message });
    }
    throw thrown;
  }
}

/** Returns the row without the session ID and the command's arguments, which may contain secrets. */
function withoutSecrets<Row extends Pick<HolderRow, "command" | "session_id">>(row: Row): Row {
  return { ...row, session_id: null, command: row.command.trim().split(/\s/)[0] ?? "" };
}

type FolderRequest = Omit<ObjectRequest, "kind">;

async function readPool(zk: ZooKeeper, { name, root, watch }: FolderRequest): Promise<readonly RowChange[]> {
  const lists = watchChildListReads(zk, watch);
  await readChildNames(lists, poolPath(name, { root }).own);
  const { done, failed, failures } = await countPoolResults(lists, name, root);
  const items = failures.map(({ item, failure }): PoolItemRow => {
    return { item, state: "failed", holder: null, last_result: itemResultRow(failure) };
  });
  return [{ kind: "pool", key: name, row: { name, holders: 0, waiters: null, done, failed, items } }];
}

async function readSchedules(zk: ZooKeeper, { name, root, watch }: FolderRequest): Promise<readonly RowChange[]> {
  const folder = tickSchedulesFolder(name, root);
  const ids = await readChildNames(zk, folder, { watch });
  await Promise.all([
    ...ids.map((id) => nullIfNoNode(zk.getData(`${folder}/${id}`, { watch }))),
    // Watches the holders, because the host that runs a tick may be lost.
    readChildNames(zk, lockPath(name, root).holders, { watch }),
  ]);
  const schedules = await readTickSchedules(zk, name, root);
  const { records } = await readHistoryReport(zk, name, { kind: "lock", root });
  return schedules.map((report): RowChange => {
    const runs = records.filter(({ schedule, tickMs }) => schedule === report.id && tickMs !== null);
    const row: FollowedScheduleRow = {
      ...scheduleRow(name, report, Date.now()),
      runs: runs.slice(-runsMax).map(scheduleRunRow),
    };
    return { kind: "schedule", key: `${name} ${report.id}`, row };
  });
}
