/** Announces running servers and proxies: every running process has an ephemeral node with its endpoint. */
import type { ZooKeeper } from "../../protocols/zookeeper/zookeeper.ts";
import { BatonError } from "../../base/errors.ts";
import { sleep } from "../../base/support/deadline.ts";
import type { Clock } from "../../base/support/clock.ts";
import { isServerRefusal, nullIfNoNode, settleEarlierWrites } from "../../coordination/nodes/node_requests.ts";
import { attemptNodeWrite, createNodeWithParents } from "./topic_nodes.ts";
import type { PubsubPath } from "./pubsub_path.ts";
import {
  formatAnnouncement,
  parseAnnouncement,
  type ProcessAnnouncement,
  tryParseAnnouncement,
} from "./process_announcement.ts";

/** How long to wait until the old node of this ID disappears, as a number of session timeouts. */
const sessionsWaited = 1.5;
const checkEveryMs = 500;

/**
 * Announces a process. Creates the node of the process, and resolves when the node belongs to this session. If the ID
 * is in use, waits. Deletes a node that an earlier process of the same store has left, because now only this process
 * uses the store. Rejects with CONFIG if a process with another store keeps using the ID, or with the signal's reason.
 * Calls `onProblem` once, with the reason for the wait and its limit.
 */
export async function announceProcess(
  zk: ZooKeeper,
  path: string,
  announcement: ProcessAnnouncement,
  { clock, signal, onProblem }: {
    readonly clock: Clock;
    readonly signal: AbortSignal;
    readonly onProblem?: (problem: BatonError) => void;
  },
): Promise<void> {
  const data = formatAnnouncement(announcement);
  const waitMs = Math.min(checkEveryMs, zk.session.timeoutMs / 20);
  const waitMsMax = zk.session.timeoutMs * sessionsWaited;
  let isReported = false;
  for (let waitedMs = 0;; waitedMs += waitMs) {
    if (await tryCreate(zk, path, data)) return;
    const existing = await nullIfNoNode(zk.getData(path));
    if (existing === null) continue;
    if (existing.stat.ephemeralOwner === zk.session.id) return;
    const other = tryParseAnnouncement(existing.data, path);
    if (other !== null && "storeId" in other && other.storeId === announcement.storeId) {
      await attemptNodeWrite(() => zk.delete(path, existing.stat.version));
      continue;
    }
    // If an operator's command (forget, restore) holds the name, there is no limit, because that command's node will
    // disappear.
    if (!isReported) onProblem?.(waitingForName(announcement.id, other, waitMsMax));
    isReported = true;
    if (other instanceof BatonError && waitedMs > waitMsMax) throw other;
    if (other !== null && "endpoint" in other && waitedMs > waitMsMax) {
      throw new BatonError(
        "CONFIG",
        `Cannot announce "${announcement.id}": another process uses this id, at ${other.endpoint}, ` +
          `and its node "${path}" did not disappear; ` +
          "stop that process, or use another --id",
      );
    }
    await sleep(clock, waitMs, signal);
  }
}

/**
 * Returns an error that explains the wait for a server's name. `other` is null if an operator's command holds the name,
 * and an error if a later version of baton does.
 */
function waitingForName(id: string, other: ProcessAnnouncement | BatonError | null, waitMsMax: number): BatonError {
  const what = other === null
    ? "an operator's forget or restore is running for it; waiting until it ends"
    : `its id is in use, at ${"endpoint" in other ? other.endpoint : "an unknown address"}; waiting up to ${
      Math.ceil(waitMsMax / 1000)
    } s, in case that process was killed`;
  return new BatonError("LOCK_BUSY", `Cannot announce "${id}" yet: ${what}`);
}

/** Creates the node. Returns false if a node exists; also if a node may exist because the response was lost. */
async function tryCreate(zk: ZooKeeper, path: string, data: Uint8Array): Promise<boolean> {
  const outcome = await attemptNodeWrite(() => createNodeWithParents(zk, path, data, { mode: "ephemeral" }));
  if (outcome === "unknown") await settleEarlierWrites(zk, path);
  return outcome === "written";
}

/**
 * Sets or removes a server's draining mark, which is lost when the server's session ends. Returns false if the server
 * is not running.
 */
export async function setServerDraining(
  zk: ZooKeeper,
  path: PubsubPath,
  id: string,
  isDraining: boolean,
): Promise<boolean> {
  const node = path.server(id);
  for (;;) {
    const found = await nullIfNoNode(zk.getData(node));
    const announcement = found === null ? null : parseAnnouncement(found.data, node);
    if (found === null || announcement === null) return false;
    if ((announcement.isDraining ?? false) === isDraining) return true;
    try {
      await zk.setData(node, formatAnnouncement({ ...announcement, isDraining }), found.stat.version);
      return true;
    } catch (thrown) {
      // The announcement has changed, or the server has stopped.
      if (!isServerRefusal(thrown, "BADVERSION", "NONODE")) throw thrown;
    }
  }
}
