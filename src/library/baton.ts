/**
 * baton as a library:
 *
 *     await lock("nightly", async (held) => {
 *       await backUp({ signal: held.signal, token: held.token });
 *     });
 *
 * Publish/subscribe is in baton_pubsub.ts, retries are in baton_retry.ts. These exports are the public interface that
 * the version number covers; everything else may change.
 */
import "./check_runtime.ts";

export { BatonError, type ErrorCode } from "../base/errors.ts";
export {
  acquireLock,
  breakLock,
  listLocks,
  lock,
  type LockBreakOptions,
  type LockOptions,
  lockStatus,
} from "./lock_functions.ts";
export type { Held } from "./held_lease.ts";
export type { LockStatus } from "../coordination/lock/lock_status.ts";
export type { LockSummary } from "../coordination/admin/list_in_use.ts";
export type { BrokenLock } from "../coordination/lock/break_lock.ts";
export type { WaitingStatus } from "../coordination/lock/acquire_lock.ts";
export { campaign, type ElectionOptions, type LeaderResignOptions, resign, watchLeader } from "./election_functions.ts";
export type { Grant, LeaderChange } from "../coordination/election/election_history.ts";
export {
  type BarrierOptions,
  enterBarrier,
  type HeldBarrier,
  liftGate,
  setGate,
  waitGate,
} from "./barrier_functions.ts";
export {
  type PoolItem,
  type PoolItems,
  type PoolLock,
  type PoolOptions,
  type PoolWork,
  runPool,
} from "./pool_functions.ts";
export type { PoolItemCounts as PoolCounts } from "../coordination/pool/work_list.ts";
export type { PoolPathTemplates as PoolTemplates } from "../coordination/pool/pool_path.ts";
export { openSession, type RequestOptions, type ServerOptions, type Session, type WaitOptions } from "./session.ts";
export type { SessionOptions, SessionTlsOptions } from "./session_servers.ts";
