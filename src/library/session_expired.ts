/** Error of the library objects for the end of a session. */
import type { ZooKeeper } from "../zookeeper/zookeeper.ts";
import { isSessionEnd } from "../zookeeper/zookeeper_error.ts";
import { BatonError } from "../errors.ts";

/** Returns SESSION_EXPIRED when the servers have ended the session, else null. `what` could not be done: `acquire lock "a"`. */
export function sessionExpired(what: string, { session }: ZooKeeper, cause: unknown): BatonError | null {
  if (!isSessionEnd(session.ended.reason)) return null;
  const why = "the servers have ended its session, because they received nothing from it for the session timeout";
  return new BatonError("SESSION_EXPIRED", `Cannot ${what}: ${why}`, { cause });
}
