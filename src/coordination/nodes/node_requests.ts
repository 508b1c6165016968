/**
 * Requests to ZooKeeper: which failures are transient, and how to retry. After a transient failure, it is unknown
 * whether the operation was executed.
 */
import { requestBackoff, retryWithBackoff } from "../../base/support/backoff.ts";
import type { Clock } from "../../base/support/clock.ts";
import type { NodeReadOptions, Stat, ZooKeeper } from "../../protocols/zookeeper/zookeeper.ts";
import { ZooKeeperError } from "../../protocols/zookeeper/zookeeper_error.ts";
import type { ZooKeeperErrorName } from "../../protocols/zookeeper/jute/zookeeper_error_codes.ts";

const transient: readonly (ZooKeeperErrorName | number)[] = [
  "CONNECTIONLOSS",
  "OPERATIONTIMEOUT",
  "REQUESTTIMEOUT",
  "SESSIONMOVED",
  "THROTTLEDOP",
];

export function isTransientFailure(thrown: unknown): boolean {
  return thrown instanceof ZooKeeperError && transient.includes(thrown.reason);
}

/** Returns true if the server rejected the request for one of these reasons. */
export function isServerRefusal(thrown: unknown, ...reasons: ZooKeeperErrorName[]): thrown is ZooKeeperError {
  return thrown instanceof ZooKeeperError && reasons.some((reason) => reason === thrown.reason);
}

/** Reads. If the connection is lost before the response, reads once more. */
export async function readTwiceAtMost<T>({ session }: Pick<ZooKeeper, "session">, read: () => Promise<T>): Promise<T> {
  try {
    return await read();
  } catch (thrown) {
    if (!isTransientFailure(thrown) || session.ended.aborted) throw thrown;
    return await read();
  }
}

/**
 * Runs `work` for all elements, `size` of them at a time, because more requests would fill the buffers of client and
 * server.
 */
export async function mapInBatches<T, R>(
  all: readonly T[],
  size: number,
  work: (one: T) => Promise<R>,
): Promise<R[]> {
  const results: R[] = [];
  for (let start = 0; start < all.length; start += size) {
    results.push(...await Promise.all(all.slice(start, start + size).map(work)));
  }
  return results;
}

/** Returns what was read; "hidden" if the node's ACL denies this client read access. */
export async function hiddenIfNoAuth<T>(reading: Promise<T>): Promise<T | "hidden"> {
  try {
    return await reading;
  } catch (thrown) {
    if (isServerRefusal(thrown, "NOAUTH")) return "hidden";
    throw thrown;
  }
}

/** Returns the response; null if the server rejects the request for one of these reasons. */
export async function nullIfRefused<T>(request: Promise<T>, ...reasons: ZooKeeperErrorName[]): Promise<T | null> {
  try {
    return await request;
  } catch (thrown) {
    if (isServerRefusal(thrown, ...reasons)) return null;
    throw thrown;
  }
}

/** Returns the response; null if the node does not exist. */
export const nullIfNoNode = <T>(reading: Promise<T>): Promise<T | null> => nullIfRefused(reading, "NONODE");

/** Deletes a node of any version. Returns false if the node does not exist. */
export async function deleteNodeIfThere(zk: Pick<ZooKeeper, "delete">, path: string): Promise<boolean> {
  return await nullIfNoNode(zk.delete(path, -1).then(() => true)) ?? false;
}

/** Returns the names of a node's children; an empty list if the node does not exist. */
export async function readChildNames(
  zk: Pick<ZooKeeper, "getChildren">,
  path: string,
  options: NodeReadOptions = {},
): Promise<readonly string[]> {
  return (await nullIfNoNode(zk.getChildren(path, options)))?.children ?? [];
}

/** Reads the given nodes below `folder`, and skips those that no longer exist. */
export async function readExistingNodes<N extends { readonly name: string }>(
  zk: Pick<ZooKeeper, "getData">,
  folder: string,
  nodes: readonly N[],
): Promise<{ readonly node: N; readonly data: Uint8Array; readonly stat: Stat }[]> {
  const found = await Promise.all(nodes.map(async (node) => {
    const read = await nullIfNoNode(zk.getData(`${folder}/${node.name}`));
    return read === null ? null : { node, ...read };
  }));
  return found.filter((read) => read !== null);
}

/**
 * Reads the newest state; a server that lags behind could miss the newest holder. After a write of this session whose
 * response was lost, `readWriteOutcome` must be used instead.
 */
export function readAfterSync<T>(zk: ZooKeeper, path: string, read: () => Promise<T>): Promise<T> {
  return readAfter(zk.sync(path), read);
}

/**
 * Waits until each earlier write of this session has been executed or can no longer be executed. A sync is not enough:
 * a leader that was replaced and does not know it answers the sync from old data. A write needs a quorum, even if it is
 * refused, and the writes of a session are executed in order.
 */
export async function settleEarlierWrites(zk: ZooKeeper, path: string): Promise<void> {
  await nullIfRefused(zk.multi([{ type: "check", path, version: -1 }]), "NONODE", "NOAUTH");
}

/**
 * Reads the outcome of this session's own write after its response was lost. If `isThere` returns false for the first
 * read, the write may still be executed; another write then settles the outcome, and a second read follows.
 */
export async function readWriteOutcome<T>(
  zk: ZooKeeper,
  path: string,
  read: () => Promise<T>,
  isThere: (found: T) => boolean,
): Promise<T> {
  const found = await readAfterSync(zk, path, read);
  return isThere(found) ? found : await readAfterOwnWrites(zk, path, read);
}

/** Reads after every earlier write of this session has been executed or can no longer be. */
export function readAfterOwnWrites<T>(zk: ZooKeeper, path: string, read: () => Promise<T>): Promise<T> {
  return readAfter(settleEarlierWrites(zk, path), read);
}

/** Reads after the request `sent` has succeeded. Both requests go in one packet. */
async function readAfter<T>(sent: Promise<unknown>, read: () => Promise<T>): Promise<T> {
  const reading = read();
  reading.catch(() => {}); // the failure of the first request is reported
  await sent;
  return await reading;
}

export interface RetryRequestOptions {
  readonly clock: Clock;
  /**
   * How long to retry, in milliseconds. The default is the session timeout: after that, the session has lost everything
   * that it held.
   */
  readonly limitMs?: number;
  readonly signal?: AbortSignal | undefined;
  readonly isWanted?: () => boolean;
}

/**
 * Calls `send` again after a transient failure, so the requests may be executed twice. Rejects with the last failure
 * when the session has ended, `isWanted` returns false, or the limit has passed. Rejects with the signal's reason when
 * it aborts.
 */
export async function retryOnConnectionLoss<T>(
  { session }: Pick<ZooKeeper, "session">,
  send: () => Promise<T>,
  { clock, limitMs = session.timeoutMs, signal, isWanted = () => true }: RetryRequestOptions,
): Promise<T> {
  const lastMs = clock.now() + limitMs;
  const mayRetry = (thrown: unknown) =>
    isTransientFailure(thrown) && !session.ended.aborted && clock.now() < lastMs && isWanted();
  return await retryWithBackoff(send, { clock, backoff: requestBackoff, signal, mayRetry });
}
