/** Counts the calls that did not get a lock. */
import type { ZooKeeper } from "../../protocols/zookeeper/zookeeper.ts";
import { resultInTimeOrNull } from "../../base/support/deadline.ts";
import { encodeJson, parseJsonFields, stringOrEmpty } from "../../base/support/json_fields.ts";
import { nullIfNoNode, nullIfRefused } from "../nodes/node_requests.ts";
import { historyNodePath } from "./history_log.ts";
import { createHistoryNode, type LockHoldRecorderOptions } from "./hold_history.ts";

export interface RefusedCalls {
  readonly count: number;
  /** When the last call was refused, on the servers' clock. */
  readonly lastMs: number;
  readonly host: string;
  readonly pid: number;
  readonly user: string;
}

const refusalMsMax = 1000;

const refusedNode = (path: string): string => `${path}/refused`;

/**
 * Counts a call that did not get the lock. The count is the version of one node, so simultaneous calls do not disturb
 * each other. Never rejects. If no server responds within a second, the call is not counted.
 */
export async function countRefusedCall(
  zk: ZooKeeper,
  name: string,
  { kind, root, info: { host, pid, user }, acl, clock }: Omit<LockHoldRecorderOptions, "limits" | "random">,
): Promise<void> {
  const path = historyNodePath(name, { kind, root });
  const data = encodeJson({ host, pid, user });
  const writing = () => nullIfNoNode(zk.setData(refusedNode(path), data, -1));
  const counting = async () => {
    if (await writing() !== null) return;
    await createHistoryNode(zk, path, acl);
    const made = await nullIfRefused(zk.create(refusedNode(path), data, { acl }), "NODEEXISTS");
    if (made === null) await writing();
  };
  await resultInTimeOrNull(clock, refusalMsMax, counting().catch(() => {}));
}

/** Returns the refused calls; null if every call got the lock. */
export async function readRefusedCalls(zk: Pick<ZooKeeper, "getData">, path: string): Promise<RefusedCalls | null> {
  const found = await nullIfNoNode(zk.getData(refusedNode(path)));
  if (found === null) return null;
  const { host, pid, user } = parseJsonFields(found.data);
  return {
    count: found.stat.version + 1,
    lastMs: Number(found.stat.mtime),
    host: stringOrEmpty(host),
    pid: typeof pid === "number" ? pid : 0,
    user: stringOrEmpty(user),
  };
}
