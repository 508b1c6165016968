/** Locks: run a function under one, or hold one as a value; look at locks, and break them. */
import { listLocks as listLocksAt, type LockSummary } from "../coordination/admin/list_in_use.ts";
import { acquireInteropLock } from "../coordination/interop/interop_contender.ts";
import { interopLockPath, type InteropRecipe } from "../coordination/nodes/interop_node_names.ts";
import { acquireLock as acquireLockAt, type WaitingStatus } from "../coordination/lock/acquire_lock.ts";
import { breakLock as breakLockAt, type BrokenLock } from "../coordination/lock/break_lock.ts";
import { describeLockHolders, type LockStatus, lockStatus as lockStatusAt } from "../coordination/lock/lock_status.ts";
import { nameOfHolder } from "../coordination/nodes/holder_info.ts";
import { BatonError, errorMessage } from "../base/errors.ts";
import { abortable, onAbort, TaskScope } from "../base/support/abort.ts";
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
   * How long to wait, connecting included: milliseconds, "none", or "forever". When omitted: forever for the lock, and
   * 10 s for a server.
   */
  readonly wait?: "none" | "forever" | number | undefined;
  /** Ends the wait with the signal's reason. It does not end the work. */
  readonly signal?: AbortSignal | undefined;
  /** Purpose, in a few words: others read it with `baton who`. */
  readonly reason?: string | undefined;
  /** Position in the queue: "foreground" (100, the default), "background" (200), or a number from 0 (first) to 999. */
  readonly priority?: PriorityName | number | undefined;
  /** True: share the lock with other shared holders. */
  readonly shared?: boolean | undefined;
  /** Number of processes that may hold the lock at a time; all of them must give the same number. */
  readonly permits?: number | undefined;
  /** The name is the path of a lock of Curator or kazoo programs. */
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

/** How long work may continue after its lock was lost, in milliseconds. */
const stopMs = 5000;

/**
 * Runs `work` under the lock, and releases the lock when the work has ended. Returns its result, or rejects as it does.
 * The work must stop when `held.signal` aborts: `lock` rejects with LOCK_LOST if the lock was lost before the end of
 * the work, 5 s after the loss at the latest. Rejects as `acquireLock` does if the lock cannot be acquired.
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
 * Waits for the lock, and returns it as a value. Rejects LOCK_BUSY (`wait: "none"`), LOCK_TIMEOUT, UNREACHABLE (no
 * server responded in time), SESSION_EXPIRED (acquire again), REFUSED, LIMIT_MISMATCH (other processes use another
 * number of permits), CONFIG, and the signal's reason.
 */
export async function acquireLock(name: string, options: LockOptions = {}): Promise<Held> {
  return await acquire(findLockSession("acquireLock", name, options), name, options);
}

/** Throws USAGE for a mistake in the name or the options. */
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
  using ends = new TaskScope();
  const limitStop = () => ends.add(session.clock.startTimer(stopMs, () => reject(notStoppedError(held))));
  held.onLoss(limitStop);
  ends.add(onAbort(session.stopSignal(), limitStop));
  let result: T;
  try {
    result = await Promise.race([(async () => await work(held))(), tooLate]);
  } catch (thrown) {
    await held.release().catch(() => {}); // the failure of the work says more
    throw thrown;
  }
  await held.release().catch((thrown: unknown) => {
    // The work is done, and the lock is free when a server responds.
    if (!(thrown instanceof BatonError && thrown.code === "OUTCOME_UNKNOWN")) throw thrown;
  });
  return result;
}

function notStoppedError({ signal }: HeldLease): BatonError {
  const what = `its work has not ended within ${formatDuration(stopMs)}, and continues without the lock`;
  return new BatonError("LOCK_LOST", `${errorMessage(signal.reason)}; ${what}`, { cause: signal.reason });
}

/** Reads who holds the lock, and who waits for it. A lock that does not exist has neither. */
export async function lockStatus(name: string, options: RequestOptions = {}): Promise<LockStatus> {
  const session = findNamedSession("lockStatus", { kind: "a lock", name }, options, requestForms);
  return await session.call(
    `read lock "${name}"`,
    options,
    ({ zk, root, waiting }) => abortable(lockStatusAt(zk, name, { root }), waiting.signal),
  );
}

/** Lists the locks, sorted by name. An unused lock is listed until the servers remove it. */
export async function listLocks(options: RequestOptions = {}): Promise<readonly LockSummary[]> {
  checkOptions("listLocks", options, requestForms);
  return await findSession("listLocks", options).call(
    "list locks",
    options,
    ({ zk, root, waiting }) => abortable(listLocksAt(zk, { root }), waiting.signal),
  );
}

export interface LockBreakOptions extends RequestOptions {
  /** ID of the holder, or a unique beginning of it; may be omitted if there is one holder. */
  readonly holder?: string | undefined;
  /** Why: the holder's error contains it. */
  readonly reason?: string | undefined;
  /** Time to wait for the release, in milliseconds; 0 when omitted. */
  readonly wait?: number | undefined;
  /** Takes the lock away when the holder has not released it within its session timeout. Its work may still run. */
  readonly force?: boolean | undefined;
}

const breakForms: OptionForms<LockBreakOptions> = {
  ...requestForms,
  holder: textForm,
  reason: textForm,
  force: toggleForm,
};

/** Asks the holder to release the lock. Rejects NOT_FOUND if there is no such holder, and USAGE if several match. */
export async function breakLock(name: string, options: LockBreakOptions = {}): Promise<BrokenLock> {
  const session = findNamedSession("breakLock", { kind: "a lock", name }, options, breakForms);
  const { holder, signal, force = false } = options;
  return await session.call(`break lock "${name}"`, { signal }, async ({ zk, root }) => {
    const id = holder ?? onlyHolder(await lockStatusAt(zk, name, { root }));
    return await breakLockAt(zk, name, id, { root, force, ...releaseRequest(options) });
  });
}

/** Returns the options of a request to a holder, or to a leader: its wait is for the release. */
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
