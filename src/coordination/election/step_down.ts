/** Asks leaders of worse priority to step down while a better candidate waits. */
import type { ZooKeeper } from "../../zookeeper/zookeeper.ts";
import { onAbort } from "../../support/abort.ts";
import { Event } from "../../support/event.ts";
import { revoke } from "../lock/break_lock.ts";
import { parseNodeInfo, type Revocation } from "../holder_info.ts";
import type { LockPath } from "../lock/lock_path.ts";
import { nullIfNoNode } from "../request_errors.ts";

export interface StepDownOptions {
  /** Priority of the waiting candidate. */
  readonly priority: number;
  readonly revocation: Revocation;
  /** Aborts when the candidate no longer waits. */
  readonly signal: AbortSignal;
}

/** Asks each new leader of worse priority. Never rejects: if the request fails, the candidate waits as usual. */
export async function requestStepDown(zk: ZooKeeper, path: LockPath, options: StepDownOptions): Promise<void> {
  const { session } = zk;
  while (!options.signal.aborted && !session.ended.aborted) {
    const event = new Event();
    const offs = [
      onAbort(options.signal, event.set),
      onAbort(session.ended, event.set),
      // A watch that the client has armed again after a reconnect is not reliable.
      session.subscribe((change) => change === "state" && session.state === "connected" && event.set()),
    ];
    try {
      const list = await nullIfNoNode(zk.getChildren(path.holders, { watch: event.set }));
      for (const child of list?.children ?? []) await requestIfWorse(zk, `${path.holders}/${child}`, options);
    } catch {
      // A reconnect starts the next read. The wait itself reports an ACL error and the end of the session.
    }
    await event.wait();
    for (const off of offs) off();
  }
}

async function requestIfWorse(zk: ZooKeeper, node: string, { priority, revocation }: StepDownOptions): Promise<void> {
  const found = await nullIfNoNode(zk.getData(node));
  if (found === null) return;
  const leader = parseNodeInfo(found.data);
  if (leader.priority === undefined || leader.priority <= priority || leader.revoke !== null) return;
  await revoke(zk, node, revocation);
}
