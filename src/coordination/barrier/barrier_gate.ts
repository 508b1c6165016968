/** A gate: one process closes and opens it, and other processes wait while it is closed. */
import type { ZooKeeper } from "../../protocols/zookeeper/zookeeper.ts";
import { BatonError, errorMessage } from "../../base/errors.ts";
import { systemClock } from "../../base/support/clock.ts";
import { startCallDeadline, WaitTimeout } from "../../base/support/deadline.ts";
import { formatDuration } from "../../base/support/duration.ts";
import { printable } from "../../base/support/text.ts";
import type { AcquireLockOptions } from "../lock/acquire_lock.ts";
import { coordinationObjectPath } from "../nodes/node_paths.ts";
import { createParentNodes } from "../nodes/create_nodes.ts";
import {
  formatNewHolderNodeInfo,
  type HolderInfo,
  nameOfHolder,
  parseHolderNodeInfo,
  unknownHolder,
} from "../nodes/holder_info.ts";
import { readNodesOnChange } from "../nodes/read_nodes_on_change.ts";
import {
  deleteNodeIfThere,
  isServerRefusal,
  nullIfNoNode,
  readAfterSync,
  retryOnConnectionLoss,
  type RetryRequestOptions,
} from "../nodes/node_requests.ts";

export type GateOptions = Pick<AcquireLockOptions, "root" | "acl" | "clock" | "signal">;

/** Closes the gate, which stays closed after the end of this process. Returns false if the gate was closed already. */
export async function setGate(
  zk: ZooKeeper,
  name: string,
  options: GateOptions & { readonly info?: HolderInfo } = {},
): Promise<boolean> {
  const gate = coordinationObjectPath("gates", name, options.root);
  const { info = unknownHolder, acl = zk.acl } = options;
  const data = formatNewHolderNodeInfo(info, zk.session);
  return await retryOnConnectionLoss(zk, async () => {
    for (;;) {
      try {
        await zk.create(gate, data, { acl });
        return true;
      } catch (thrown) {
        if (isServerRefusal(thrown, "NODEEXISTS")) return false;
        if (!isServerRefusal(thrown, "NONODE")) throw thrown;
      }
      await createParentNodes(zk, gate, acl);
    }
  }, retriesOf(options));
}

/** Opens the gate. Returns false if the gate was open already. */
export async function liftGate(zk: ZooKeeper, name: string, options: GateOptions = {}): Promise<boolean> {
  const gate = coordinationObjectPath("gates", name, options.root);
  const open = () => deleteNodeIfThere(zk, gate);
  return await retryOnConnectionLoss(zk, open, retriesOf(options));
}

/**
 * Waits until the gate is open. If `waitMs` is undefined, there is no limit. If it is 0, sends one request, which must
 * get a response within the session timeout. Rejects with BARRIER_TIMEOUT if the gate is still closed, with UNREACHABLE
 * if no server responded in time or the session ended, or with the signal's reason. A signal of `startCallDeadline`
 * limits the larger call that contains this wait.
 */
export async function waitGate(
  zk: ZooKeeper,
  name: string,
  options: GateOptions & { readonly waitMs?: number } = {},
): Promise<void> {
  const gate = coordinationObjectPath("gates", name, options.root);
  const { clock = systemClock(), waitMs } = options;
  const { session } = zk;
  using limit = startCallDeadline(clock, waitMs === 0 ? session.timeoutMs : waitMs, { signal: options.signal });
  const { signal } = limit;
  let closer: Uint8Array | null = null;
  const read = (wake: () => void) => readAfterSync(zk, gate, () => nullIfNoNode(zk.getData(gate, { watch: wake })));
  try {
    for await (const found of readNodesOnChange(zk, read, { signal, clock, pause: (event) => event.wait() })) {
      if (found === null) return;
      closer = found.data;
      if (waitMs === 0) throw gateClosedError(name, 0, closer);
    }
    throw signal.reason;
  } catch (thrown) {
    if (session.ended.aborted && thrown === session.ended.reason) throw sessionEndedError(name, thrown);
    if (!(thrown instanceof WaitTimeout)) throw thrown;
    throw closer === null ? noResponseError(name, thrown) : gateClosedError(name, thrown.waitMs, closer);
  }
}

function gateClosedError(name: string, waitMs: number, data: Uint8Array): BatonError {
  const within = waitMs === 0 ? "" : ` and was not opened within ${formatDuration(waitMs)}`;
  const info = parseHolderNodeInfo(data);
  const why = info.reason === "" ? "" : `: ${printable(info.reason)}`;
  return new BatonError("BARRIER_TIMEOUT", `Gate "${name}" is closed${within}; closed by ${nameOfHolder(info)}${why}`);
}

function noResponseError(name: string, { waitMs }: WaitTimeout): BatonError {
  const message = `Cannot read gate "${name}": no server responded within ${formatDuration(waitMs)}`;
  return new BatonError("UNREACHABLE", message);
}

function sessionEndedError(name: string, reason: unknown): BatonError {
  const message = `Cannot read gate "${name}": the session ended: ${errorMessage(reason)}`;
  return new BatonError("UNREACHABLE", message, { cause: reason });
}

/** Returns options to retry a change without a limit, because the outcome of the change must be known. */
function retriesOf({ clock = systemClock(), signal }: GateOptions): RetryRequestOptions {
  return { clock, signal, limitMs: Infinity };
}
