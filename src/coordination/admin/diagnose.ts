/** Checks all locks and elections below a root node and reports problems. */
import type { ZooKeeper } from "../../protocols/zookeeper/zookeeper.ts";
import { errorMessage } from "../../base/errors.ts";
import { type Finding, type FindingId, makeFinding } from "../../base/rows/finding.ts";
import { acquireMsMax, releaseMsMax } from "../../base/rows/row_findings.ts";
import { formatDuration } from "../../base/support/duration.ts";
import { printable } from "../../base/support/text.ts";
import { type HolderNodeInfo, nameOfHolder, parseHolderNodeInfo } from "../nodes/holder_info.ts";
import { coordinationFolderPath, decodeLockName } from "../nodes/node_paths.ts";
import { parseContenderNode, parseHolderNode } from "../lock/lock_nodes.ts";
import { parseLockState } from "../lock/lock_state.ts";
import { mapInBatches, nullIfNoNode, readChildNames, readExistingNodes } from "../nodes/node_requests.ts";
import { contenderComesBefore, isCompatibleLockMode } from "../lock/queue_position.ts";

/** A lock or an election as it was read. */
export interface LockSnapshot {
  readonly where: string;
  readonly isElection: boolean;
  readonly path: string;
  readonly data: Uint8Array;
  readonly children: readonly string[];
  readonly holders: readonly LockNodeSnapshot[];
  readonly queue: readonly LockNodeSnapshot[];
  /** The server's counter for sequences in the queue. */
  readonly sequence: number;
}

export interface LockNodeSnapshot {
  readonly name: string;
  readonly isEphemeral: boolean;
  readonly info: HolderNodeInfo;
}

export interface LockQueueDiagnosis {
  readonly locks: number;
  readonly elections: number;
  readonly findings: readonly Finding[];
}

/** Last value of the server's counter. All later contenders get this number, so their order of arrival is lost. */
export const lockQueueSequenceMax = 2 ** 31 - 1;
export const lockQueueSequenceWarning = lockQueueSequenceMax - 100_000_000;
const batchSize = 200;

export async function diagnoseLockQueues(
  zk: ZooKeeper,
  { root, nowMs = Date.now() }: { readonly root?: string; readonly nowMs?: number } = {},
): Promise<LockQueueDiagnosis> {
  const [locks, elections] = await Promise.all([
    diagnoseFolder(zk, coordinationFolderPath("locks", root), { called: "lock", nowMs }),
    diagnoseFolder(zk, coordinationFolderPath("elections", root), { called: "election", nowMs }),
  ]);
  return { locks: locks.count, elections: elections.count, findings: [...locks.findings, ...elections.findings] };
}

async function diagnoseFolder(
  zk: ZooKeeper,
  folder: string,
  { called, nowMs }: { readonly called: string; readonly nowMs: number },
): Promise<{ count: number; findings: Finding[] }> {
  const names = [...await readChildNames(zk, folder)].sort();
  const findings = await mapInBatches(names, batchSize, async (name) => {
    const where = `${called} ${JSON.stringify(decodeLockName(name))}`;
    const lock = await readSnapshot(zk, `${folder}/${name}`);
    return lock === null ? [] : diagnoseLock({ ...lock, where, isElection: called === "election" }, nowMs);
  });
  return { count: names.length, findings: findings.flat() };
}

/** Returns null if the lock no longer exists. */
async function readSnapshot(
  zk: ZooKeeper,
  path: string,
): Promise<Omit<LockSnapshot, "where" | "isElection"> | null> {
  const [lock, list, queue, holders] = await Promise.all([
    nullIfNoNode(zk.getData(path)),
    nullIfNoNode(zk.getChildren(path)),
    nullIfNoNode(zk.getChildren(`${path}/q`)),
    readChildNames(zk, `${path}/h`),
  ]);
  if (lock === null || list === null) return null;
  const nodes = async (folder: string, names: readonly string[]): Promise<LockNodeSnapshot[]> => {
    const found = await readExistingNodes(zk, folder, names.map((name) => ({ name })));
    return found.map(({ node, data, stat }) => {
      return { ...node, isEphemeral: stat.ephemeralOwner !== 0n, info: parseHolderNodeInfo(data) };
    });
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

/** Returns the findings for one lock. `nowMs` is in Unix milliseconds. Pure. */
export function diagnoseLock(lock: LockSnapshot, nowMs: number): Finding[] {
  const { where } = lock;
  const findings: Finding[] = [];
  const addFinding: AddFinding = (id, what, action) =>
    findings.push(makeFinding(id, { where, what: printable(what), action: printable(action) }));
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
  checkHolders(lock, nowMs, addFinding);
  checkFirstWaiter(lock, { nowMs, limit: limit ?? 1 }, addFinding);
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

function checkHolders({ holders }: LockSnapshot, nowMs: number, addFinding: AddFinding): void {
  for (const { info } of holders) {
    const { revoke, sinceMs } = info;
    if (revoke === null || sinceMs === 0 || nowMs - sinceMs < releaseMsMax) continue;
    const by = revoke.by === "" ? "" : ` by ${revoke.by}`;
    addFinding(
      "holder-asked-to-release",
      `${nameOfHolder(info)} was asked to release it${by} and still holds it: its command may ignore the stop signal`,
      `stop its command, or use baton break --force`,
    );
  }
}

/** Reports the first waiter if it has not acquired a free lock in time. */
function checkFirstWaiter(
  { holders, queue, isElection }: LockSnapshot,
  { nowMs, limit }: { readonly nowMs: number; readonly limit: number },
  addFinding: AddFinding,
): void {
  const granted = holders.map(({ name }) => parseHolderNode(name)?.guid);
  const contenders = queue.flatMap(({ name, info }) => {
    const node = parseContenderNode(name);
    return node === null || granted.includes(node.guid) ? [] : [{ node, info }];
  }).sort((left, right) => (contenderComesBefore(left.node, right.node) ? -1 : 1));
  const [first] = contenders;
  if (first === undefined || first.info.sinceMs === 0) return;
  const waitedMs = nowMs - first.info.sinceMs;
  if (waitedMs < acquireMsMax || !isCompatibleLockMode(first.node.mode, holders.map(({ name }) => name), limit)) return;
  const waited = formatDuration(waitedMs);
  addFinding(
    isElection ? "election-without-leader" : "lock-not-taken",
    `${nameOfHolder(first.info)} has waited for ${waited} and does not acquire it, although it is free: ` +
      "its session is alive, but it does not act, and blocks the others",
    "stop that process",
  );
}
