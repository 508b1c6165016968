/** Takes every lock that is asked for, one after the other in the order of their names, and shows the wait. */
import { hostname } from "node:os";
import type { Io } from "../src/cli/io.ts";
import { WaitLine } from "../src/cli/wait_line.ts";
import type { Acl, ZooKeeper } from "../src/clients/zookeeper/zookeeper.ts";
import { BatonError } from "../src/errors.ts";
import type { HolderInfo } from "../src/recipes/holder_info.ts";
import type { Lease } from "../src/recipes/lease.ts";
import { acquireLock, type AcquireOptions, type WaitingStatus } from "../src/recipes/lock.ts";
import { describeLock } from "../src/recipes/lock_messages.ts";
import { lockStatus } from "../src/recipes/lock_status.ts";
import type { Clock } from "../src/support/clock.ts";
import { formatDuration } from "../src/support/duration.ts";
import { userName } from "../src/support/user_name.ts";
import type { LockOptions } from "./lock_options.ts";

export interface TakeLocksContext {
  readonly io: Io;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly acl: Acl[] | undefined;
  /** When the wait began, on the clock; it may have begun in another session. */
  readonly startMs: number;
}

export interface TakenLocks {
  /** In the order of the names. */
  readonly leases: readonly [Lease, ...Lease[]];
  readonly waitedMs: number;
  /** Of the last one, on the clock. */
  readonly grantedAtMs: number;
}

/**
 * Rejects as acquireLock does, and with USAGE for a lock that the job around this call holds already. What was taken by
 * then is given back by closing the session.
 */
export type TakeLocks = (zk: ZooKeeper, options: LockOptions, context: TakeLocksContext) => Promise<TakenLocks>;

export const takeLocks: TakeLocks = async (zk, options, context) => {
  const { clock, io, startMs } = context;
  using _outage = tellOutage(zk, options, context);
  const cookies = (io.env["BATON_LOCK_COOKIE"] ?? "").split(":").filter((cookie) => cookie !== "");
  if (cookies.length > 0) await refuseNested(zk, options, cookies);
  const [first = "", ...others] = options.names;
  const leases: [Lease, ...Lease[]] = [await takeOne(zk, first, { options, context })];
  for (const name of others) {
    // What is taken already can be lost, or asked back, in the wait for the next.
    const signal = AbortSignal.any([context.signal, ...leases.map((lease) => lease.lost)]);
    leases.push(await takeOne(zk, name, { options, context: { ...context, signal } }));
  }
  const grantedAtMs = clock.now();
  return { leases, waitedMs: grantedAtMs - startMs, grantedAtMs };
};

/** A job that waits for itself waits for ever: its children know the ids of what it holds. */
async function refuseNested(zk: ZooKeeper, options: LockOptions, cookies: readonly string[]): Promise<void> {
  for (const name of options.names) {
    const { holders } = await lockStatus(zk, name, { root: options.values.root });
    if (!holders.some(({ holderId }) => cookies.includes(holderId))) continue;
    throw new BatonError("USAGE", `"${name}" is already held by this job: a baton lock around this one has it`);
  }
}

async function takeOne(
  zk: ZooKeeper,
  name: string,
  { options, context }: { options: LockOptions; context: TakeLocksContext },
): Promise<Lease> {
  const { values, mode, limit, waitMs } = options;
  const { clock, signal, acl, startMs } = context;
  using progress = showProgress(name, options, context);
  return await acquireLock(zk, name, {
    mode,
    clock,
    signal,
    priority: values.priority,
    limitPolicy: values.limitPolicy,
    root: values.root,
    wait: waitMs === undefined
      ? "forever"
      : waitMs === 0
      ? "none"
      : Math.max(1, Math.round(waitMs - (clock.now() - startMs))),
    info: holderInfo(options),
    ...progress.options,
    ...(limit === undefined ? {} : { limit }),
    ...(acl === undefined ? {} : { acl }),
  });
}

/** Says once per outage that no server answers: a wait without end would look like a busy lock. */
function tellOutage(zk: ZooKeeper, options: LockOptions, { io, clock }: TakeLocksContext): Disposable {
  const { session } = zk;
  const names = options.names.map((name) => JSON.stringify(name)).join(", ");
  let cancel = () => {};
  const off = session.subscribe((change) => {
    if (change !== "state" || options.quiet) return;
    cancel();
    if (session.state !== "connecting") return;
    cancel = clock.after(session.timeoutMs, () => {
      io.err(`baton: no server has answered for ${formatDuration(session.timeoutMs)}; still waiting for ${names}\n`);
    });
  });
  return {
    [Symbol.dispose]() {
      cancel();
      off();
    },
  };
}

/** How often the line on a terminal is brought up to date, in milliseconds. */
const progressMs = 1000;

/** A line on a terminal; elsewhere one sentence at the start of the wait, when it is asked for. */
function showProgress(
  name: string,
  options: LockOptions,
  { io }: TakeLocksContext,
): Disposable & { readonly options: Pick<AcquireOptions, "onWaiting" | "progressMs"> } {
  if (options.quiet || (!WaitLine.fits(io) && !options.verbose)) return { options: {}, [Symbol.dispose]: () => {} };
  if (WaitLine.fits(io)) {
    const line = new WaitLine(io);
    const onWaiting = (waiting: WaitingStatus) => line.show(`baton: ${describeWait(name, waiting)}`);
    return { options: { onWaiting, progressMs }, [Symbol.dispose]: () => line[Symbol.dispose]() };
  }
  let said = false;
  const onWaiting = (waiting: WaitingStatus) => {
    if (!said) io.err(`baton: ${describeWait(name, waiting)}\n`);
    said = true;
  };
  return { options: { onWaiting }, [Symbol.dispose]: () => {} };
}

function describeWait(name: string, { place, waitedMs, status }: WaitingStatus): string {
  const guid = status.waiters[place - 1]?.holderId ?? "";
  const lock = describeLock(status, { guid, nowMs: Date.now() });
  return `waiting for "${name}" for ${formatDuration(waitedMs)}, place ${place} of ${status.waiters.length}: ${lock}`;
}

function holderInfo({ command, values }: LockOptions): HolderInfo {
  return {
    host: hostname(),
    pid: process.pid,
    user: userName(),
    argv0: values.publishCommand ? command.join(" ") : command[0],
    reason: values.reason ?? "",
  };
}
