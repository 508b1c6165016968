/**
 * baton as a library:
 *
 *     await using zk = await connect({ servers: parseServers("zk1,zk2,zk3/app") });
 *     await using lease = await acquireLock(zk, "nightly");
 *     await work({ signal: lease.lost, fencingToken: lease.fencingToken });
 *
 * What is exported here is what a version number promises; everything else may change.
 */
export { connect, type ConnectOptions } from "./clients/zookeeper/client.ts";
export { parseServers, type ServerList } from "./clients/zookeeper/hosts.ts";
export type {
  Acl,
  CreateMode,
  Session,
  SessionState,
  Stat,
  WatchEvent,
  ZooKeeper,
} from "./clients/zookeeper/zookeeper.ts";
export { ZooKeeperError } from "./clients/zookeeper/zookeeper_error.ts";
export { BatonError, type ErrorCode } from "./errors.ts";
export { type Keeper, type KeeperOptions, startKeeper } from "./keeper/keeper.ts";
export { Barrier, type BarrierEnterOptions, type BarrierOptions } from "./library/barrier.ts";
export { Election, type ElectionCampaignOptions, type ElectionOptions } from "./library/election.ts";
export { Lock, type LockAcquireOptions, type LockOptions } from "./library/lock.ts";
export { Pool, type PoolItems, type PoolOptions, type PoolWork, type PoolWorkJob } from "./library/pool.ts";
export { Semaphore, type SemaphoreOptions } from "./library/semaphore.ts";
export type { SessionPlace } from "./library/session_source.ts";
export { enterBarrier, type EnterOptions } from "./recipes/barrier/barrier.ts";
export { type GateOptions, liftGate, setGate, waitGate } from "./recipes/barrier/barrier_gate.ts";
export type { BarrierMembership } from "./recipes/barrier/barrier_membership.ts";
export { breakLock, type BreakLockOptions, type BrokenLock } from "./recipes/lock/break_lock.ts";
export { campaign, type CampaignOptions, type Leadership } from "./recipes/election/campaign.ts";
export type { Grant } from "./recipes/election/election_history.ts";
export type { LeaderChange } from "./recipes/election/leader_changes.ts";
export { type LeaderStatus, leaderStatus } from "./recipes/election/leader_status.ts";
export type { Lease, LockMode } from "./recipes/lease.ts";
export { LeaseSet } from "./recipes/lock/lease_set.ts";
export { listLocks, type ListLocksOptions, type LockSummary } from "./recipes/lock/list_locks.ts";
export { acquireLock, type AcquireOptions, type WaitingStatus } from "./recipes/lock/lock.ts";
export { type LockStatus, lockStatus, type LockStatusOptions } from "./recipes/lock/lock_status.ts";
export type { PoolCounts } from "./recipes/pool/pool_book.ts";
export type { EndedItem } from "./recipes/pool/pool_memory.ts";
export type { PoolTemplates } from "./recipes/pool/pool_path.ts";
export type { PoolItemStatus, PoolStatus } from "./recipes/pool/pool_status.ts";
export type { PoolTerms, ShownTerms } from "./recipes/pool/pool_terms.ts";
export { resign, type ResignOptions } from "./recipes/election/resign.ts";
export { watchLeader, type WatchLeaderOptions } from "./recipes/election/watch_leader.ts";
export type { Address, TlsOptions } from "./sockets/connection.ts";
