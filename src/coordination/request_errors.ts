/** Failed requests: their kinds, and sending them again. After a transient failure the operation may have been done or not. */
import { requestBackoff, retry } from "../support/backoff.ts";
import type { Clock } from "../support/clock.ts";
import type { ReadOptions, Stat, ZooKeeper } from "../zookeeper/zookeeper.ts";
import { ZooKeeperError } from "../zookeeper/zookeeper_error.ts";
import type { ZooKeeperErrorName } from "../wire/jute/zookeeper_error_codes.ts";

const transient: readonly (ZooKeeperErrorName | number)[] = [
  "CONNECTIONLOSS",
  "OPERATIONTIMEOUT",
  "REQUESTTIMEOUT",
  "SESSIONMOVED",
  "THROTTLEDOP",
];

export function isTransient(thrown: unknown): boolean {
  return thrown instanceof ZooKeeperError && transient.includes(thrown.reason);
}

/** True when the server refused the request for one of these reasons. */
export function isRefusal(thrown: unknown, ...reasons: ZooKeeperErrorName[]): thrown is ZooKeeperError {
  return thrown instanceof ZooKeeperError && reasons.some((reason) => reason === thrown.reason);
}

/** Reads; reads once more if the connection was lost before the response. */
export async function readTwiceAtMost<T>({ session }: Pick<ZooKeeper, "session">, read: () => Promise<T>): Promise<T> {
  try {
    return await read();
  } catch (thrown) {
    if (!isTransient(thrown) || session.ended.aborted) throw thrown;
    return await read();
  }
}

/** Runs `work` for each element, for `size` of them at the same time: too many requests would fill the buffers of client and server. */
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

/** Returns "hidden" when the node's ACL does not let this client read it. */
export async function hiddenIfNoAuth<T>(reading: Promise<T>): Promise<T | "hidden"> {
  try {
    return await reading;
  } catch (thrown) {
    if (isRefusal(thrown, "NOAUTH")) return "hidden";
    throw thrown;
  }
}

/** Returns null when the node does not exist. */
export async function nullIfNoNode<T>(reading: Promise<T>): Promise<T | null> {
  try {
    return await reading;
  } catch (thrown) {
    if (isRefusal(thrown, "NONODE")) return null;
    throw thrown;
  }
}

/** Returns the names of the children; none when the node does not exist. */
export async function childNames(
  zk: Pick<ZooKeeper, "getChildren">,
  path: string,
  options: ReadOptions = {},
): Promise<readonly string[]> {
  return (await nullIfNoNode(zk.getChildren(path, options)))?.children ?? [];
}

/** Reads those of the nodes below `folder` that still exist. */
export async function readNodes<N extends { readonly name: string }>(
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
 * Reads what the leader knows now: a follower that lags could miss the newest holder, or a write whose response was lost. The sync and
 * the reads go in one packet.
 */
export async function readAfterOwnWrites<T>(zk: ZooKeeper, path: string, read: () => Promise<T>): Promise<T> {
  const syncing = zk.sync(path);
  const reading = read();
  reading.catch(() => {}); // the failure of the write is reported first
  await settling;
  return await reading;
}

export interface RetryRequestOptions {
  readonly clock: Clock;
  /** How long to repeat the request, in milliseconds. By default T: then the session has lost all that it held. */
  readonly limitMs?: number;
  readonly signal?: AbortSignal | undefined;
  readonly isWanted?: () => boolean;
}

/**
 * Sends requests that may be done twice. Rejects with the last failure when the session has ended, when the result is no
 * longer wanted, and when no response has arrived within the limit; and with the reason of the signal.
 */
export async function retryOnConnectionLoss<T>(
  { session }: Pick<ZooKeeper, "session">,
  send: () => Promise<T>,
  { clock, limitMs = session.timeoutMs, signal, isWanted = () => true }: RetryRequestOptions,
): Promise<T> {
  const lastMs = clock.now() + limitMs;
  const mayRetry = (thrown: unknown) =>
    isTransient(thrown) && !session.ended.aborted && clock.now() < lastMs && isWanted();
  return await retry(send, { clock, backoff: requestBackoff, signal, mayRetry });
}
