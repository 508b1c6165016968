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
export { breakLock, type BreakLockOptions, type BrokenLock } from "./recipes/break_lock.ts";
export type { Lease, LockMode } from "./recipes/lease.ts";
export { LeaseSet } from "./recipes/lease_set.ts";
export { listLocks, type ListLocksOptions, type LockSummary } from "./recipes/list_locks.ts";
export { acquireLock, type AcquireOptions, type WaitingStatus } from "./recipes/lock.ts";
export { type LockStatus, lockStatus, type LockStatusOptions } from "./recipes/lock_status.ts";
export type { Address, TlsOptions } from "./sockets/connection.ts";
