/**
 * Keeps the session of a dead baton alive while its guard process cannot stop the command's processes. The session's
 * locks thus stay held. Shows the reason in the holders' records. Stops when the session has ended, or when an operator
 * has broken the locks (`baton break --force`).
 */
import type { GuardKeptJob, GuardKeptSession, GuardSessionActions } from "../../base/process/guard/guard_main.ts";
import type { Clock } from "../../base/support/clock.ts";
import { decodeSessionHandle, endSessionOfDeadProcess } from "../../protocols/zookeeper/end_session.ts";
import { isSessionResumable } from "../../protocols/zookeeper/handshake.ts";
import { connectToZooKeeper, type ZooKeeperConnectOptions } from "../../protocols/zookeeper/zookeeper_client.ts";
import type { ZooKeeper } from "../../protocols/zookeeper/zookeeper.ts";
import { formatHolderNodeInfo, parseHolderNodeInfo } from "../nodes/holder_info.ts";
import { nullIfNoNode } from "../nodes/node_requests.ts";

/** The time between two reads of the records, in milliseconds. */
const showEveryMs = 1000;

/** The time limit for ending the session if no server has resumed it, in milliseconds. */
const endMsMax = 5000;

type KeepOptions = Pick<ZooKeeperConnectOptions, "dial" | "resolve"> & { readonly clock: Clock };

/** Resumes the session of a dead baton. `handle` is as in `GuardSessionActions`. */
export function keepDeadBatonSession(
  handle: Parameters<GuardSessionActions["keep"]>[0],
  options: KeepOptions,
): GuardKeptSession {
  return new ResumedSession(handle, options);
}

class ResumedSession implements GuardKeptSession {
  readonly #handle: string;
  readonly #options: KeepOptions;
  #zk: ZooKeeper | null = null;
  readonly #stop = new AbortController();
  #isGone = false;
  #isTaken = false;
  #isShowing = false;
  #shownAtMs = -Infinity;

  constructor(handle: string, options: KeepOptions) {
    this.#handle = handle;
    this.#options = options;
    this.#open().catch(() => this.#isGone = true);
  }

  async #open(): Promise<void> {
    const { timeoutMs: sessionTimeoutMs, tls, ...session } = await decodeSessionHandle(this.#handle);
    if (!isSessionResumable(session.identity)) throw new Error("these servers cannot resume a session");
    const zk = await connectToZooKeeper({
      ...this.#options,
      ...session,
      ...(tls === undefined ? {} : { tls }),
      sessionTimeoutMs,
      connectTimeoutMs: Number.MAX_SAFE_INTEGER,
      signal: this.#stop.signal,
    });
    this.#zk = zk;
    if (this.#isGone) zk.leave?.();
  }

  get isLost(): boolean {
    return this.#isGone || this.#isTaken || this.#zk?.session.ended.aborted === true;
  }

  show(jobs: readonly GuardKeptJob[]): void {
    const nowMs = this.#options.clock.now();
    if (this.#zk === null || this.#isShowing || nowMs < this.#shownAtMs + showEveryMs) return;
    this.#shownAtMs = nowMs;
    this.#isShowing = true;
    // Ignores a failure, because the session detects it, too.
    void this.#show(this.#zk, jobs).catch(() => {}).finally(() => this.#isShowing = false);
  }

  async #show(zk: ZooKeeper, jobs: readonly GuardKeptJob[]): Promise<void> {
    const alive = jobs.filter(({ nodes, what }) => nodes.length > 0 && what !== "");
    const found = await Promise.all(
      alive.flatMap(({ nodes, what }) => nodes.map((node) => this.#showIn(zk, node, what))),
    );
    this.#isTaken = found.length > 0 && !found.includes(true);
  }

  /** Shows the warning in a holder's node. Returns false if this session does not own the node. */
  async #showIn(zk: ZooKeeper, node: string, warning: string): Promise<boolean> {
    const found = await nullIfNoNode(zk.getData(node));
    if (found === null || found.stat.ephemeralOwner !== zk.session.id) return false;
    const info = parseHolderNodeInfo(found.data);
    if (info.sessionTimeoutMs === 0 || info.warning === warning) return true; // 0: another library's format
    await zk.setData(node, formatHolderNodeInfo({ ...info, warning }), found.stat.version);
    return true;
  }

  leave(): void {
    this.#isGone = true;
    this.#stop.abort();
    this.#zk?.leave?.();
  }

  end(): Promise<unknown> {
    return this.#zk?.close() ?? endSessionOfDeadProcess(this.#handle, { ...this.#options, limitMs: endMsMax });
  }
}
