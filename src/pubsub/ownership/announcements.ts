/** Servers and proxies that are there: an ephemeral node each, with where it listens. */
import type { ZooKeeper } from "../../zookeeper/zookeeper.ts";
import { BatonError } from "../../errors.ts";
import { sleep } from "../../support/deadline.ts";
import type { Clock } from "../../support/clock.ts";
import { isRefusal, isTransient, nullIfNoNode } from "../../coordination/request_errors.ts";
import { makeParents } from "./topic_nodes.ts";

export interface Announcement {
  readonly id: string;
  /** As others dial it. */
  readonly endpoint: string;
  /**
   * What only one process at a time can have: a server's store, and where it is locked, for a copy of a store is another
   * store; a proxy's address.
   */
  readonly storeId: string;
  /** A server that is being emptied: it is given no new topic, and none of others. False when left out. */
  readonly isDraining?: boolean;
}

/** How long a node of the same id may stand in the way: its session is given its time and a little more. */
const sessionsWaited = 1.5;
const checkEveryMs = 500;

/**
 * Makes the node, waits while one of the same id is in the way, and resolves with its path when it belongs to this session.
 * What an earlier life of the same store has left is taken away: a store has one owner, which is this process. Rejects
 * with CONFIG when another store goes on using the id, and with the signal's reason. `onProblem` is told once what is
 * waited for, and for how long.
 */
export async function announce(
  zk: ZooKeeper,
  path: string,
  announcement: Announcement,
  { clock, signal, onProblem }: {
    readonly clock: Clock;
    readonly signal: AbortSignal;
    readonly onProblem?: (problem: BatonError) => void;
  },
): Promise<void> {
  const data = formatAnnouncement(announcement);
  const waitMs = Math.min(checkEveryMs, zk.session.timeoutMs / 20);
  const waitMsMax = zk.session.timeoutMs * sessionsWaited;
  let isTold = false;
  for (let waitedMs = 0;; waitedMs += waitMs) {
    if (await tryCreate(zk, path, data)) return;
    const other = await nullIfNoNode(zk.getData(path));
    if (other === null) continue;
    if (other.stat.ephemeralOwner === zk.session.id) return;
    const who = parseAnnouncement(other.data);
    if (who?.storeId === announcement.storeId) {
      await removeIfUnchanged(zk, path, other.stat.version);
      continue;
    }
    // An operator who gives up what the server had may take long, and goes.
    if (!isTold) onProblem?.(waitingFor(announcement.id, who, waitMsMax));
    isTold = true;
    if (who !== null && waitedMs > waitMsMax) {
      throw new BatonError(
        "CONFIG",
        `Cannot announce "${announcement.id}" as "${path}": another one of this id is there, at ${who.endpoint}, ` +
          "and has not gone for as long as a session lives",
      );
    }
    await sleep(clock, waitMs, signal);
  }
}

/** `who`: null for an operator who gives up what a server had. */
function waitingFor(id: string, who: Announcement | null, waitMsMax: number): BatonError {
  const what = who === null
    ? `an operator gives up what "${id}" had; this one waits until that is done`
    : `another one of the id "${id}" is there, at ${who.endpoint}; this one waits up to ${
      Math.ceil(waitMsMax / 1000)
    } s for it to go: that is how long one that was killed is still seen`;
  return new BatonError("LOCK_BUSY", `Cannot announce "${id}" yet: ${what}`);
}

export function formatAnnouncement({ id, endpoint, storeId, isDraining = false }: Announcement): Uint8Array {
  const draining = isDraining ? { draining: true } : {};
  return new TextEncoder().encode(JSON.stringify({ layout: 1, id, endpoint, storeId, ...draining }));
}

/** Null for what nobody of this layout has written: an operator's, while a server is being forgotten. */
export function parseAnnouncement(data: Uint8Array): Announcement | null {
  try {
    const { layout, id, endpoint, storeId, draining } = JSON.parse(new TextDecoder().decode(data)) as Record<
      string,
      unknown
    >;
    if (layout !== 1 || typeof id !== "string" || typeof endpoint !== "string" || typeof storeId !== "string") {
      return null;
    }
    return { id, endpoint, storeId, ...(draining === true ? { isDraining: true } : {}) };
  } catch {
    return null;
  }
}

/** False when a node is in the way, or may be: the answer was lost. */
async function tryCreate(zk: ZooKeeper, path: string, data: Uint8Array): Promise<boolean> {
  for (;;) {
    try {
      await zk.create(path, data, { mode: "ephemeral" });
      return true;
    } catch (thrown) {
      if (isTransient(thrown)) await zk.sync(path);
      else if (isRefusal(thrown, "NONODE")) await makeParents(zk, path);
      else if (!isRefusal(thrown, "NODEEXISTS")) throw thrown;
      if (!isRefusal(thrown, "NONODE")) return false;
    }
  }
}

async function removeIfUnchanged(zk: ZooKeeper, path: string, version: number): Promise<void> {
  try {
    await zk.delete(path, version);
  } catch (thrown) {
    if (!isRefusal(thrown, "NONODE", "BADVERSION") && !isTransient(thrown)) throw thrown;
  }
}
