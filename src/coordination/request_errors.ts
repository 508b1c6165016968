/** Kinds of failed requests. After a transient failure the operation may have been done or not, and the caller tries again. */
import type { ZooKeeper } from "../zookeeper/zookeeper.ts";
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
