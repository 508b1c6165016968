/** A gate: one process closes and opens it, and other processes wait while it is closed. */
import type { ZooKeeper } from "../../zookeeper/zookeeper.ts";
import { BatonError, messageOf } from "../../errors.ts";
import { abortable, throwIfAborted } from "../../support/abort.ts";
import { backoffMs } from "../../support/backoff.ts";
import { systemClock } from "../../support/clock.ts";
import { sleep, waitLimit, WaitTimeout } from "../../support/deadline.ts";
import { formatDuration } from "../../support/duration.ts";
import { printable } from "../../support/text.ts";
import { Event } from "../../support/event.ts";
import type { AcquireOptions } from "../lock/acquire_lock.ts";
import { objectPath } from "../lock/lock_path.ts";
import { createParents } from "../lock/create_nodes.ts";
import { formatNewNode, type HolderInfo, nameOfHolder, parseNodeInfo, unknownHolder } from "../holder_info.ts";
import { isRefusal, isTransient, nullIfNoNode, readAfterSync } from "../request_errors.ts";

export type GateOptions = Pick<AcquireOptions, "root" | "acl" | "clock" | "signal">;

const retryWait = { firstMs: 20, maxMs: 1000 };

/** Closes the gate. It stays closed after the end of this process, until it is opened. Returns false if it was closed already. */
export async function setGate(
  zk: ZooKeeper,
  name: string,
  options: GateOptions & { readonly info?: HolderInfo } = {},
): Promise<boolean> {
  const gate = objectPath("gates", name, options.root);
  const { info = unknownHolder, acl = zk.acl } = options;
  const data = formatNewNode(info, zk.session);
  return await repeatUntilKnown(zk, options, async () => {
    try {
      await zk.create(gate, data, { acl });
      return true;
    } catch (thrown) {
      if (isRefusal(thrown, "NODEEXISTS")) return false;
      if (!isRefusal(thrown, "NONODE")) throw thrown;
      await createParents(zk, gate, acl);
      return null;
    }
  });
}

/** Opens the gate. Returns false if it was not closed. */
export async function liftGate(zk: ZooKeeper, name: string, options: GateOptions = {}): Promise<boolean> {
  const gate = objectPath("gates", name, options.root);
  return await repeatUntilKnown(
    zk,
    options,
    async () => await nullIfNoNode(zk.delete(gate, -1).then(() => true)) ?? false,
  );
}

/**
 * Waits until the gate is open. Rejects BARRIER_TIMEOUT if it is still closed, UNREACHABLE if no server responded in time or the session
 * ended, and with the reason of the signal. A signal of `waitLimit` limits the call that this wait is part of. `waitMs` left out: no
 * limit; 0: one request, which must get a response within the session timeout.
 */
export async function waitGate(
  zk: ZooKeeper,
  name: string,
  options: GateOptions & { readonly waitMs?: number } = {},
): Promise<void> {
  const gate = objectPath("gates", name, options.root);
  const { clock = systemClock(), waitMs } = options;
  const { session } = zk;
  using limit = waitLimit(clock, waitMs === 0 ? session.timeoutMs : waitMs, { signal: options.signal });
  const { signal } = limit;
  let closer: Uint8Array | null = null;
  let event = new Event();
  const wake = () => event.set();
  const off = session.subscribe((change) => change === "state" && wake());
  try {
    for (let failures = 0;;) {
      throwIfAborted(signal);
      event = new Event();
      try {
        const looking = readAfterSync(zk, gate, () => nullIfNoNode(zk.getData(gate, { watch: wake })));
        const found = await abortable(looking, signal);
        failures = 0;
        if (found === null) return;
        closer = found.data;
      } catch (thrown) {
        throwIfAborted(signal);
        if (session.ended.aborted) throw sessionEndedError(name, session.ended.reason);
        if (!isTransient(thrown)) throw thrown;
        await sleep(clock, backoffMs(failures++, retryWait), signal);
        continue;
      }
      if (waitMs === 0) throw gateClosedError(name, 0, closer);
      await abortable(event.wait(), signal);
    }
  } catch (thrown) {
    if (!(thrown instanceof WaitTimeout)) throw thrown;
    throw closer === null ? noResponseError(name, thrown) : gateClosedError(name, thrown.waitMs, closer);
  } finally {
    off();
  }
}

function gateClosedError(name: string, waitMs: number, data: Uint8Array): BatonError {
  const within = waitMs === 0 ? "" : ` and was not opened within ${formatDuration(waitMs)}`;
  const info = parseNodeInfo(data);
  const why = info.reason === "" ? "" : `: ${printable(info.reason)}`;
  return new BatonError("BARRIER_TIMEOUT", `Gate "${name}" is closed${within}; closed by ${nameOfHolder(info)}${why}`);
}

function noResponseError(name: string, { waitMs }: WaitTimeout): BatonError {
  const message = `Cannot read gate "${name}": no server responded within ${formatDuration(waitMs)}`;
  return new BatonError("UNREACHABLE", message);
}

function sessionEndedError(name: string, reason: unknown): BatonError {
  const message = `Cannot read gate "${name}": the session ended: ${messageOf(reason)}`;
  return new BatonError("UNREACHABLE", message, { cause: reason });
}

/** Repeats `work` until its outcome is known; `null` requests another try. */
async function repeatUntilKnown<T>(zk: ZooKeeper, options: GateOptions, work: () => Promise<T | null>): Promise<T> {
  for (let failures = 0;; failures++) {
    throwIfAborted(options.signal);
    try {
      const result = await work();
      if (result !== null) return result;
    } catch (thrown) {
      if (!isTransient(thrown) || zk.session.ended.aborted) throw thrown;
      await sleep(options.clock ?? systemClock(), backoffMs(failures, retryWait), options.signal);
    }
  }
}
