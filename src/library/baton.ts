/**
 * baton as a library:
 *
 *     await using zk = await connect({ servers: parseServers("zk1,zk2,zk3/app") });
 *     await using lease = await acquireLock(zk, "nightly");
 *     await work({ signal: lease.lost, fencingToken: lease.fencingToken });
 *
 * Publish/subscribe is in baton_pubsub.ts, retries are in baton_retry.ts. These exports are the public interface that
 * the version number covers; everything else may change.
 */
export { connect, type ZooKeeperConnectOptions } from "../protocols/zookeeper/zookeeper_client.ts";
export { parseServers, type ZooKeeperServerList } from "../protocols/zookeeper/hosts.ts";
export type {
  Acl,
  NodeCreateMode,
  Stat,
  WatchEvent,
  ZooKeeper,
  ZooKeeperSession,
  ZooKeeperSessionState,
} from "../protocols/zookeeper/zookeeper.ts";
export { ZooKeeperError } from "../protocols/zookeeper/zookeeper_error.ts";
export { BatonError, type ErrorCode } from "../base/errors.ts";
export type { KeeperOptions } from "../coordination/keeper/lifecycle/keeper_server.ts";
export { type Keeper, startKeeper } from "../coordination/keeper/lifecycle/start_keeper.ts";
export { Barrier, type BarrierEnterOptions, type BarrierOptions } from "./barrier_object.ts";
export { Election, type ElectionCampaignOptions, type ElectionOptions } from "./election_object.ts";
export { Lock, type LockAcquireOptions, type LockOptions, Semaphore, type SemaphoreOptions } from "./lock_object.ts";
export { Pool, type PoolItemContext, type PoolItems, type PoolOptions, type PoolWork } from "./pool_object.ts";
export type { SessionPlace } from "./session_source.ts";
export { enterBarrier, type EnterBarrierOptions } from "../coordination/barrier/enter_barrier.ts";
export { type GateOptions, liftGate, setGate, waitGate } from "../coordination/barrier/barrier_gate.ts";
export type { BarrierMembership } from "../coordination/barrier/barrier_membership.ts";
export { breakLock, type BreakLockOptions, type BrokenLock } from "../coordination/lock/break_lock.ts";
export { campaign, type CampaignOptions, type Leadership } from "../coordination/election/campaign.ts";
export type { Grant, LeaderChange } from "../coordination/election/election_history.ts";
export { type LeaderStatus, leaderStatus } from "../coordination/election/leader_status.ts";
export type { Lease, LockMode } from "../base/process/lease.ts";
export { LeaseSet } from "../base/process/lease_set.ts";
export { listLocks, type ListLocksOptions, type LockSummary } from "../coordination/admin/list_in_use.ts";
export { acquireLock, type AcquireOptions, type WaitingStatus } from "../coordination/lock/acquire_lock.ts";
export { acquireInteropLock, type AcquireInteropOptions } from "../coordination/interop/interop_contender.ts";
export { type LockStatus, lockStatus, type LockStatusOptions } from "../coordination/lock/lock_status.ts";
export type { PoolCounts } from "../coordination/pool/work_list.ts";
export type { ItemResult } from "../coordination/pool/item_result_store.ts";
export type { PoolTemplates } from "../coordination/pool/pool_path.ts";
export type { PoolItemStatus, PoolStatus } from "../coordination/pool/read_pool_status.ts";
export type { PoolRunInfo, SharedPoolSettings } from "../coordination/pool/shared_pool_settings.ts";
export { resign, type ResignOptions } from "../coordination/election/campaign.ts";
export { watchLeader, type WatchLeaderOptions } from "../coordination/election/leader_status.ts";
export type { Address, TlsOptions } from "../base/sockets/connection.ts";
