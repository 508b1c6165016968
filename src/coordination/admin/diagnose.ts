/** Checks all locks and elections below a root node, and returns findings about problems. */
import type { ZooKeeper } from "../../protocols/zookeeper/zookeeper.ts";
import { errorMessage } from "../../base/errors.ts";
import { type Finding, type FindingId, makeFinding } from "../../base/rows/finding.ts";
import { coordinationFolderPath, decodeLockName } from "../nodes/node_paths.ts";
import { parseContenderNode, parseHolderNode } from "../lock/lock_nodes.ts";
import { parseLockState } from "../lock/lock_state.ts";
import { mapInBatches, nullIfNoNode, readChildNames, readExistingNodes } from "../nodes/node_requests.ts";

/** The nodes of a lock or an election, as they were read. */
export interface LockSnapshot {
  readonly where: string;
  readonly path: string;
  readonly data: Uint8Array;
  readonly children: readonly string[];
  readonly holders: readonly LockNodeSnapshot[];
  readonly queue: readonly LockNodeSnapshot[];
  /** The server's counter, from which the next contender in the queue gets its number. */
  readonly sequence: number;
}

export interface LockNodeSnapshot {
  readonly name: string;
  readonly isEphemeral: boolean;
}

export interface LockQueueDiagnosis {
  readonly locks: number;
  readonly elections: number;
  readonly findings: readonly Finding[];
}

/**
 * The last value of the server's counter. All later contenders get this same number, so their order of arrival is lost.
 */
export const lockQueueSequenceMax = 2 ** 31 - 1;
export const lockQueueSequenceWarning = lockQueueSequenceMax - 100_000_000;
const batchSize = 200;

export async function diagnoseLockQueues(
  zk: ZooKeeper,
  { root }: { readonly root?: string } = {},
): Promise<LockQueueDiagnosis> {
  const [locks, elections] = await Promise.all([
    diagnoseFolder(zk, coordinationFolderPath("locks", root), "lock"),
    diagnoseFolder(zk, coordinationFolderPath("elections", root), "election"),
  ]);
  return { locks: locks.count, elections: elections.count, findings: [...locks.findings, ...elections.findings] };
}

async function diagnoseFolder(
  zk: ZooKeeper,
  folder: string,
  called: "lock" | "election",
): Promise<{ count: number; findings: Finding[] }> {
  const names = [...await readChildNames(zk, folder)].sort();
  const findings = await mapInBatches(names, batchSize, async (name) => {
    const where = `${called} ${JSON.stringify(decodeLockName(name))}`;
    const lock = await readSnapshot(zk, `${folder}/${name}`);
    return lock === null ? [] : diagnoseLock({ ...lock, where });
  });
  return { count: names.length, findings: findings.flat() };
}

/** Returns null if the lock no longer exists. */
async function readSnapshot(
  zk: ZooKeeper,
  path: string,
): Promise<Omit<LockSnapshot, "where"> | null> {
  const [lock, list, queue, holders] = await Promise.all([
    nullIfNoNode(zk.getData(path)),
    nullIfNoNode(zk.getChildren(path)),
    nullIfNoNode(zk.getChildren(`${path}/q`)),
    readChildNames(zk, `${path}/h`),
  ]);
  if (lock === null || list === null) return null;
  const nodes = async (folder: string, names: readonly string[]): Promise<LockNodeSnapshot[]> => {
    const found = await readExistingNodes(zk, folder, names.map((name) => ({ name })));
    return found.map(({ node, stat }) => ({ ...node, isEphemeral: stat.ephemeralOwner !== 0n }));
  };
  const [held, queued] = await Promise.all([
    nodes(`${path}/h`, holders),
    nodes(`${path}/q`, queue?.children ?? []),
  ]);
  return {
    path,
    data: lock.data,
    children: list.children,
    holders: held,
    queue: queued,
    sequence: queue?.stat.cversion ?? 0,
  };
}

/** Returns the findings for one lock that its nodes show. Rows show the others. Pure. */
export function diagnoseLock(lock: LockSnapshot): Finding[] {
  const { where } = lock;
  const findings: Finding[] = [];
  const addFinding: AddFinding = (id, what, action) => findings.push(makeFinding(id, { where, what, action }));
  let limit: number | null = null;
  try {
    limit = parseLockState(lock.data, lock.path).limit;
  } catch (thrown) {
    addFinding("object-unreadable", errorMessage(thrown), "use one version of baton, and no other program, here");
    return findings;
  }
  for (const name of lock.children) {
    if (name !== "q" && name !== "h") {
      addFinding(
        "node-foreign",
        `"${lock.path}/${name}" is not baton's node: another program uses the same path, ` +
          "and the two do not exclude each other",
        "give one of the two another path: --root",
      );
    }
  }
  checkNodes(lock, addFinding);
  checkCounter(lock, addFinding);
  const permits = lock.holders.filter(({ name }) => parseHolderNode(name)?.mode === "permit").length;
  if (limit !== null && permits > limit) {
    addFinding(
      "lock-over-limit",
      `${permits} processes hold a permit, but the limit is ${limit}: it was lowered, and applies as they finish`,
      "wait until they finish",
    );
  }
  return findings;
}

type AddFinding = (id: FindingId, what: string, action: string) => void;

function checkNodes({ path, holders, queue }: LockSnapshot, addFinding: AddFinding): void {
  for (const { name, isEphemeral } of holders) {
    if (parseHolderNode(name) === null) {
      addFinding(
        "node-foreign",
        `"${path}/h/${name}" is no holder that baton knows: all contenders wait for it`,
        "stop the program that created it, and delete it",
      );
    } else if (!isEphemeral) {
      addFinding(
        "node-without-session",
        `holder "${path}/h/${name}" belongs to no session and stays forever`,
        "delete it",
      );
    }
  }
  for (const { name, isEphemeral } of queue) {
    if (parseContenderNode(name) === null) {
      addFinding("node-unknown", `"${path}/q/${name}" is no contender that baton knows, and is ignored`, "delete it");
    } else if (!isEphemeral) {
      addFinding(
        "node-without-session",
        `"${path}/q/${name}" belongs to no session, so that later contenders wait forever`,
        "delete it",
      );
    }
  }
}

function checkCounter({ queue, sequence }: LockSnapshot, addFinding: AddFinding): void {
  const last = Math.max(sequence, ...queue.map(({ name }) => parseContenderNode(name)?.sequence ?? 0));
  if (last < lockQueueSequenceWarning) return;
  const where = last >= lockQueueSequenceMax
    ? `its counter has reached its end, ${lockQueueSequenceMax}:`
    : `its counter is at ${last}, and at ${lockQueueSequenceMax}`;
  addFinding("lock-counter-ends", `${where} the order of arrival is lost`, "delete its node when it is not in use");
}
