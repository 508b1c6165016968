/** Announces running servers and proxies: every running process has an ephemeral node with its endpoint. */
import type { ZooKeeper } from "../../protocols/zookeeper/zookeeper.ts";
import { BatonError } from "../../base/errors.ts";
import { sleep } from "../../base/support/deadline.ts";
import { encodeJson, parseJsonFields } from "../../base/support/json_fields.ts";
import type { Clock } from "../../base/support/clock.ts";
import { isServerRefusal, nullIfNoNode, settleEarlierWrites } from "../../coordination/nodes/node_requests.ts";
import { attemptNodeWrite, createNodeWithParents } from "./topic_nodes.ts";
import type { PubsubPath } from "./pubsub_path.ts";

export interface ProcessAnnouncement {
  readonly id: string;
  readonly endpoint: string;
  /**
   * Identifies a resource that only one process can use at a time. For a server, it is its store at its location, so
   * that a copied store has another ID. For a proxy, it is the proxy's address.
   */
  readonly storeId: string;
  /** True while the server is being drained. It then gets no topics. False by default. */
  readonly isDraining?: boolean;
  /** The ID of the store that this server shares with other servers; undefined if only this server uses its store. */
  readonly store?: string;
}

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
    const other = parseAnnouncement(existing.data);
    if (other?.storeId === announcement.storeId) {
      await attemptNodeWrite(() => zk.delete(path, existing.stat.version));
      continue;
    }
    // If an operator's command (forget, restore) holds the name, there is no limit, because that command's node will
    // disappear.
    if (!isReported) onProblem?.(waitingForName(announcement.id, other, waitMsMax));
    isReported = true;
    if (other !== null && waitedMs > waitMsMax) {
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
 * Returns an error that explains the wait for a server's name. `other` is null if an operator's command holds the name.
 */
function waitingForName(id: string, other: ProcessAnnouncement | null, waitMsMax: number): BatonError {
  const what = other === null
    ? "an operator's forget or restore is running for it; waiting until it ends"
    : `its id is in use, at ${other.endpoint}; waiting up to ${
      Math.ceil(waitMsMax / 1000)
    } s, in case that process was killed`;
  return new BatonError("LOCK_BUSY", `Cannot announce "${id}" yet: ${what}`);
}

export function formatAnnouncement(
  { id, endpoint, storeId, isDraining = false, store }: ProcessAnnouncement,
): Uint8Array {
  const draining = isDraining ? { draining: true } : {};
  return encodeJson({ layout: 1, id, endpoint, storeId, ...draining, store });
}

/**
 * Parses an announcement. Returns null for data in another format, for example while an operator's command holds the
 * server's name.
 */
export function parseAnnouncement(data: Uint8Array): ProcessAnnouncement | null {
  const { layout, id, endpoint, storeId, draining, store } = parseJsonFields(data);
  if (layout !== 1 || typeof id !== "string" || typeof endpoint !== "string" || typeof storeId !== "string") {
    return null;
  }
  return {
    id,
    endpoint,
    storeId,
    ...(draining === true ? { isDraining: true } : {}),
    ...(typeof store === "string" ? { store } : {}),
  };
}

/** Reads the announcement at this path. Returns null if there is no node or the node has an unknown format. */
export async function readAnnouncement(zk: ZooKeeper, path: string): Promise<ProcessAnnouncement | null> {
  const found = await nullIfNoNode(zk.getData(path));
  return found === null ? null : parseAnnouncement(found.data);
}

/** Reads the announcements of all running servers, or of all proxies, below this node. */
export async function readAnnouncements(zk: ZooKeeper, parent: string): Promise<ProcessAnnouncement[]> {
  const names = (await nullIfNoNode(zk.getChildren(parent)))?.children ?? [];
  const found = await Promise.all(names.map((name) => readAnnouncement(zk, `${parent}/${name}`)));
  return found.filter((announcement) => announcement !== null);
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
    const announcement = found === null ? null : parseAnnouncement(found.data);
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
