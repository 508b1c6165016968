/** Provides locks: runs a function under a lock, returns a lock as a value, reads locks, and breaks them. */
import { listLocks as listLocksAt, type LockSummary } from "../coordination/admin/list_in_use.ts";
import { acquireInteropLock } from "../coordination/interop/interop_contender.ts";
import { interopLockPath, type InteropRecipe } from "../coordination/nodes/interop_node_names.ts";
import { acquireLock as acquireLockAt, type WaitingStatus } from "../coordination/lock/acquire_lock.ts";
import { breakLock as breakLockAt, type BrokenLock } from "../coordination/lock/break_lock.ts";
import { describeLockHolders, type LockStatus, lockStatus as lockStatusAt } from "../coordination/lock/lock_status.ts";
import { nameOfHolder } from "../coordination/nodes/holder_info.ts";
import { BatonError, errorMessage } from "../base/errors.ts";
import { CleanupScope, onAbort, rejectOnAbort } from "../base/support/abort.ts";
import { formatDuration } from "../base/support/duration.ts";
import type { PriorityName } from "../base/support/priority.ts";
import {
  checkArgument,
  checkOptions,
  choiceForm,
  countForm,
  functionForm,
  type OptionForms,
  priorityForm,
  textForm,
  toggleForm,
  toPriority,
  waitForm,
} from "./check_arguments.ts";
import type { Held, HeldLease } from "./held_lease.ts";
import {
  findNamedSession,
  findSession,
  type LibrarySession,
  ownInfo,
  requestForms,
  type RequestOptions,
  type ServerOptions,
} from "./session.ts";

export interface LockOptions extends ServerOptions {
  /**
   * How long to wait, including the time to connect: milliseconds, "none", or "forever". By default, the call waits
   * forever for the lock, and 10 s for a server.
   */
  readonly wait?: "none" | "forever" | number | undefined;
  /** Ends the wait, which rejects with the signal's reason. Does not end the work. */
  readonly signal?: AbortSignal | undefined;
  /** The purpose in a few words, which `baton who` shows. */
  readonly reason?: string | undefined;
  /**
   * The position in the queue: "foreground" (100, the default), "background" (200), or a number from 0 (first) to 999.
   */
  readonly priority?: PriorityName | number | undefined;
  /** If true, other processes that also share the lock can hold it at the same time. */
  readonly shared?: boolean | undefined;
  /** How many processes may hold the lock at a time. All of them must give the same number. */
  readonly permits?: number | undefined;
  /** Uses the recipe of a lock of Curator or kazoo programs; the name is then the path of the lock. */
  readonly recipe?: InteropRecipe | undefined;
  /** Called when the wait begins, and when the place in the queue changes. */
  readonly onWaiting?: ((status: WaitingStatus) => void) | undefined;
}

export const lockForms: OptionForms<LockOptions> = {
  ...requestForms,
  wait: waitForm("none", "forever"),
  reason: textForm,
  priority: priorityForm,
  shared: toggleForm,
  permits: countForm,
  recipe: choiceForm("curator", "curator-rw", "kazoo"),
  onWaiting: functionForm,
};

/** How long work may continue when its lock was lost, in milliseconds. */
const stopMs = 5000;

/**
 * Runs `work` under the lock, and releases the lock when `work` has ended. Returns the result of `work`, or rejects
 * with its failure. `work` must stop when `held.signal` aborts. If the lock is lost before the end of `work`, rejects
 * with LOCK_LOST, at most 5 s after the loss. Rejects as `acquireLock` does if the lock cannot be acquired.
 */
export async function lock<T>(
  name: string,
  work: (held: Held) => Promise<T> | T,
  options: LockOptions = {},
): Promise<T> {
  checkArgument("lock", "the name", name, textForm);
  checkArgument("lock", "the work", work, functionForm);
  const session = findLockSession("lock", name, options);
  const held = await acquire(session, name, options);
  return await session.use(() => runWhileHeld(held, work, session));
}

/**
 * Waits for the lock, and returns it as a value. Rejects with LOCK_BUSY (`wait: "none"`), LOCK_TIMEOUT, UNREACHABLE (no
 * server responded in time), SESSION_EXPIRED (acquire again), REFUSED, LIMIT_MISMATCH (other processes use another
 * number of permits) or CONFIG, or with the signal's reason.
 */
export async function acquireLock(name: string, options: LockOptions = {}): Promise<Held> {
  return await acquire(findLockSession("acquireLock", name, options), name, options);
}

function findLockSession(call: string, name: string, options: LockOptions): LibrarySession {
  checkArgument(call, "the name", name, textForm);
  checkOptions(call, options, lockForms);
  const { recipe, permits, shared = false } = options;
  if (permits !== undefined && (shared || recipe !== undefined)) {
    throw new BatonError("USAGE", `${call}: permits cannot be combined with shared or recipe`);
  }
  if (recipe === undefined) return findNamedSession(call, { kind: "a lock", name }, options, lockForms);
  interopLockPath(name);
  return findSession(call, options);
}

function acquire(session: LibrarySession, name: string, options: LockOptions): Promise<HeldLease> {
  const { recipe, permits, shared = false, priority = "foreground" } = options;
  return session.call(`acquire lock "${name}"`, options, async ({ zk, root, clock, waiting, guard }) => {
    const mode = permits !== undefined ? "permit" : shared ? "shared" : "exclusive";
    const common = { ...waiting, ...guard(options), mode, clock, info: ownInfo(options.reason) } as const;
    const lease = recipe !== undefined
      ? await acquireInteropLock(zk, name, { ...common, recipe })
      : await acquireLockAt(zk, name, { ...common, root, limit: permits ?? 1, priority: toPriority(priority) });
    return session.hold(lease);
  });
}

async function runWhileHeld<T>(
  held: HeldLease,
  work: (held: Held) => Promise<T> | T,
  session: LibrarySession,
): Promise<T> {
  const { promise: tooLate, reject } = Promise.withResolvers<never>();
  using ends = new CleanupScope();
  const limitStop = () => ends.add(session.clock.startTimer(stopMs, () => reject(notStoppedError(held))));
  held.onLoss(limitStop);
  ends.add(onAbort(session.stopSignal(), limitStop));
  let result: T;
  try {
    result = await Promise.race([(async () => await work(held))(), tooLate]);
  } catch (thrown) {
    await held.release().catch(() => {}); // the failure of the work says more than a failed release
    throw thrown;
  }
  await held.release().catch((thrown: unknown) => {
    // The call succeeds: the work is done, and the lock becomes free when a server responds.
    if (!(thrown instanceof BatonError && thrown.code === "OUTCOME_UNKNOWN")) throw thrown;
  });
  return result;
}

function notStoppedError({ signal }: HeldLease): BatonError {
  const what = `its work has not ended within ${formatDuration(stopMs)}, and continues without the lock`;
  return new BatonError("LOCK_LOST", `${errorMessage(signal.reason)}; ${what}`, { cause: signal.reason });
}

/** Reads the holders and the waiters of the lock. A lock that does not exist has none. */
export async function lockStatus(name: string, options: RequestOptions = {}): Promise<LockStatus> {
  const session = findNamedSession("lockStatus", { kind: "a lock", name }, options, requestForms);
  return await session.call(
    `read lock "${name}"`,
    options,
    ({ zk, root, waiting }) => rejectOnAbort(lockStatusAt(zk, name, { root }), waiting.signal),
  );
}

/** Lists the locks, sorted by name. An unused lock is listed until the servers remove it. */
export async function listLocks(options: RequestOptions = {}): Promise<readonly LockSummary[]> {
  checkOptions("listLocks", options, requestForms);
  return await findSession("listLocks", options).call(
    "list locks",
    options,
    ({ zk, root, waiting }) => rejectOnAbort(listLocksAt(zk, { root }), waiting.signal),
  );
}

export interface LockBreakOptions extends RequestOptions {
  /** The ID of the holder, or a unique beginning of the ID. It is needed only if there are several holders. */
  readonly holder?: string | undefined;
  /** The reason of the request. The error of the holder contains it. */
  readonly reason?: string | undefined;
  /** How long to wait for the release, in milliseconds; by default 0. */
  readonly wait?: number | undefined;
  /**
   * If true, the lock is taken away from a holder that has not released it within the holder's session timeout. The
   * holder's work may still run.
   */
  readonly force?: boolean | undefined;
}

const breakForms: OptionForms<LockBreakOptions> = {
  ...requestForms,
  holder: textForm,
  reason: textForm,
  force: toggleForm,
};

/**
 * Asks the holder to release the lock. Rejects with NOT_FOUND if there is no such holder, or USAGE if several holders
 * match.
 */
export async function breakLock(name: string, options: LockBreakOptions = {}): Promise<BrokenLock> {
  const session = findNamedSession("breakLock", { kind: "a lock", name }, options, breakForms);
  const { holder, signal, force = false } = options;
  return await session.call(`break lock "${name}"`, { signal }, async ({ zk, root }) => {
    const id = holder ?? onlyHolder(await lockStatusAt(zk, name, { root }));
    return await breakLockAt(zk, name, id, { root, force, ...releaseRequest(options) });
  });
}

/** Returns the options of a request to a holder or a leader. `wait` is the time to wait for the release. */
export function releaseRequest({ reason = "", wait = 0, signal }: LockBreakOptions) {
  const revocation = { by: nameOfHolder(ownInfo()), reason };
  return { waitMs: wait, revocation, ...(signal === undefined ? {} : { signal }) };
}

function onlyHolder(status: LockStatus): string {
  const [first, ...others] = status.holders;
  if (first === undefined) throw new BatonError("NOT_FOUND", `Lock "${status.name}" is free: no process holds it`);
  if (others.length === 0) return first.holderId;
  const who = describeLockHolders(status, Date.now());
  throw new BatonError("USAGE", `Lock "${status.name}" has several holders; choose one with the option holder: ${who}`);
}
