/** Which failures of an operation say nothing about the lock: it may have been done or not, and asking again is right. */
import { ZooKeeperError } from "../clients/zookeeper/zookeeper_error.ts";
import type { ZooKeeperErrorName } from "../wire/jute/error_codes.ts";

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

/** Whether the server refused with one of these reasons. */
export function isRefusal(thrown: unknown, ...reasons: ZooKeeperErrorName[]): thrown is ZooKeeperError {
  return thrown instanceof ZooKeeperError && reasons.some((reason) => reason === thrown.reason);
}
