/** Finds trouble before it bites: looks at everything below a root once, and says what is not as it should be. */
import type { ZooKeeper } from "../../zookeeper/zookeeper.ts";
import { messageOf } from "../../errors.ts";
import { formatDuration } from "../../support/duration.ts";
import { printable } from "../../support/text.ts";
import { nameOfHolder, type NodeInfo, parseNodeInfo } from "../holder_info.ts";
import { decodeLockName } from "../lock/lock_name.ts";
import { parseContender, parseHolder } from "../lock/lock_nodes.ts";
import { defaultRoot } from "../lock/lock_path.ts";
import { parseLockState } from "../lock/lock_state.ts";
import { nullIfNoNode } from "../request_errors.ts";
import { comesBefore, isCompatible } from "../lock/queue_position.ts";

export interface DiagnosisFinding {
  /** warning: it works, and may not for long. problem: it does not work as it should. */
  readonly kind: "warning" | "problem";
  /** `lock "nightly"`. */
  readonly where: string;
  /** A sentence without its end. */
  readonly what: string;
}

/** A lock, or an election, as it was found. */
export interface LockSnapshot {
  readonly where: string;
  readonly path: string;
  readonly data: Uint8Array;
  readonly children: readonly string[];
  readonly holders: readonly NodeSnapshot[];
  readonly queue: readonly NodeSnapshot[];
  /** Of the queue: where the server's counter stands. */
  readonly sequence: number;
}

export interface NodeSnapshot {
  readonly name: string;
  readonly isEphemeral: boolean;
  readonly info: NodeInfo;
}

export interface Diagnosis {
  readonly locks: number;
  readonly elections: number;
  readonly findings: readonly DiagnosisFinding[];
}

/** At this many a server gives everybody the same number: nobody is stuck, and the order of arrival is lost. */
export const sequenceMax = 2 ** 31 - 1;
export const sequenceWarning = sequenceMax - 100_000_000;
/** Whoever could have it and does not take it within this is not well. By two machines' wall clocks, so not too short. */
const idleMsMax = 30_000;
/** A holder that was asked so long ago should have given it back. */
const askedMsMax = 60_000;
/** How many locks are looked at at a time: a list of 100,000 must not fill anybody's buffers. */
const batchSize = 200;

export async function diagnose(
  zk: ZooKeeper,
  { root = defaultRoot, nowMs = Date.now() }: { readonly root?: string; readonly nowMs?: number } = {},
): Promise<Diagnosis> {
  const below = root === "/" ? "" : root;
  const [locks, elections] = await Promise.all([
    diagnoseFolder(zk, `${below}/locks`, { called: "lock", nowMs }),
    diagnoseFolder(zk, `${below}/elections`, { called: "election", nowMs }),
  ]);
  return { locks: locks.count, elections: elections.count, findings: [...locks.findings, ...elections.findings] };
}

async function diagnoseFolder(
  zk: ZooKeeper,
  folder: string,
  { called, nowMs }: { readonly called: string; readonly nowMs: number },
): Promise<{ count: number; findings: DiagnosisFinding[] }> {
  const names = ((await nullIfNoNode(zk.getChildren(folder)))?.children ?? []).sort();
  const findings: DiagnosisFinding[] = [];
  for (let start = 0; start < names.length; start += batchSize) {
    const batch = names.slice(start, start + batchSize);
    const found = await Promise.all(batch.map(async (name) => {
      const where = `${called} ${JSON.stringify(decodeLockName(name))}`;
      const lock = await readSnapshot(zk, `${folder}/${name}`, where);
      return lock === null ? [] : diagnoseLock(lock, nowMs);
    }));
    findings.push(...found.flat());
  }
  return { count: names.length, findings };
}

/** Null when it is gone by now. */
async function readSnapshot(zk: ZooKeeper, path: string, where: string): Promise<LockSnapshot | null> {
  const [lock, list, queue, holders] = await Promise.all([
    nullIfNoNode(zk.getData(path)),
    nullIfNoNode(zk.getChildren(path)),
    nullIfNoNode(zk.getChildren(`${path}/q`)),
    nullIfNoNode(zk.getChildren(`${path}/h`)),
  ]);
  if (lock === null || list === null) return null;
  const nodes = async (folder: string, names: readonly string[]) => {
    const found = await Promise.all(names.map(async (name): Promise<NodeSnapshot | null> => {
      const node = await nullIfNoNode(zk.getData(`${folder}/${name}`));
      if (node === null) return null;
      return { name, isEphemeral: node.stat.ephemeralOwner !== 0n, info: parseNodeInfo(node.data) };
    }));
    return found.filter((node) => node !== null);
  };
  const [held, queued] = await Promise.all([
    nodes(`${path}/h`, holders?.children ?? []),
    nodes(`${path}/q`, queue?.children ?? []),
  ]);
  return {
    where,
    path,
    data: lock.data,
    children: list.children,
    holders: held,
    queue: queued,
    sequence: queue?.stat.cversion ?? 0,
  };
}

/** What is wrong with one lock. Pure; `nowMs` is the wall clock. */
export function diagnoseLock(lock: LockSnapshot, nowMs: number): DiagnosisFinding[] {
  const { where } = lock;
  const findings: DiagnosisFinding[] = [];
  const say = (kind: DiagnosisFinding["kind"], what: string) => findings.push({ kind, where, what: printable(what) });
  let limit: number | null = null;
  try {
    limit = parseLockState(lock.data, lock.path).limit;
  } catch (thrown) {
    say("problem", messageOf(thrown));
    return findings;
  }
  for (const name of lock.children) {
    if (name !== "q" && name !== "h") {
      say(
        "problem",
        `"${lock.path}/${name}" is not baton's: another program uses the same path, and neither excludes the other`,
      );
    }
  }
  checkNodes(lock, say);
  checkCounter(lock, say);
  const permits = lock.holders.filter(({ name }) => parseHolder(name)?.mode === "permit").length;
  if (limit !== null && permits > limit) {
    say(
      "warning",
      `${permits} hold a permit and the limit is ${limit}: it was lowered, and ends to be exceeded as they end`,
    );
  }
  checkHolders(lock, nowMs, say);
  checkFirstWaiter(lock, { nowMs, limit: limit ?? 1 }, say);
  return findings;
}

type AddFinding = (kind: DiagnosisFinding["kind"], what: string) => void;

function checkNodes({ path, holders, queue }: LockSnapshot, say: AddFinding): void {
  for (const { name, isEphemeral } of holders) {
    if (parseHolder(name) === null) {
      say("problem", `"${path}/h/${name}" is no holder that baton knows: everybody waits for it`);
    } else if (!isEphemeral) {
      say("problem", `holder "${path}/h/${name}" belongs to no session, so that it never ends: delete it`);
    }
  }
  for (const { name, isEphemeral } of queue) {
    if (parseContender(name) === null) {
      say("warning", `"${path}/q/${name}" is no contender that baton knows, and is passed over`);
    } else if (!isEphemeral) {
      say(
        "problem",
        `"${path}/q/${name}" belongs to no session, so that whoever comes later waits for ever: delete it`,
      );
    }
  }
}

function checkCounter({ queue, sequence }: LockSnapshot, say: AddFinding): void {
  const last = Math.max(sequence, ...queue.map(({ name }) => parseContender(name)?.sequence ?? 0));
  if (last >= sequenceMax) {
    say(
      "warning",
      `its counter stands at its end, ${sequenceMax}: one holds at a time, and the order of arrival is lost; once nobody uses it, delete its node`,
    );
  } else if (last >= sequenceWarning) {
    say(
      "warning",
      `its counter stands at ${last}, and at ${sequenceMax} the order of arrival is lost; once nobody uses it, delete its node`,
    );
  }
}

function checkHolders({ holders }: LockSnapshot, nowMs: number, say: AddFinding): void {
  for (const { info } of holders) {
    const { revoke, sinceMs } = info;
    if (revoke === null || sinceMs === 0 || nowMs - sinceMs < askedMsMax) continue;
    const by = revoke.by === "" ? "" : ` by ${revoke.by}`;
    say(
      "warning",
      `${nameOfHolder(info)} was asked back${by} and has it still: its command may not react to being stopped`,
    );
  }
}

/** Somebody could have it, and has not taken it for longer than that takes. */
function checkFirstWaiter(
  { holders, queue }: LockSnapshot,
  { nowMs, limit }: { readonly nowMs: number; readonly limit: number },
  say: AddFinding,
): void {
  const contenders = queue.flatMap(({ name, info }) => {
    const node = parseContender(name);
    return node === null ? [] : [{ node, info }];
  }).sort((left, right) => (comesBefore(left.node, right.node) ? -1 : 1));
  const [first] = contenders;
  if (first === undefined || first.info.sinceMs === 0) return;
  const waitedMs = nowMs - first.info.sinceMs;
  if (waitedMs < idleMsMax || !isCompatible(first.node.mode, holders.map(({ name }) => name), limit)) return;
  say(
    "problem",
    `${nameOfHolder(first.info)} is the next, could have it, and has not taken it, ${
      formatDuration(waitedMs)
    } after it came: ` +
      "its session lives and it does not act, and it holds up those behind it: end it",
  );
}
