/**
 * The session of a candidate of an election. The candidate keeps it over several campaigns, and replaces it when it has
 * ended.
 */
import type { ZooKeeperConnectOptions } from "../../protocols/zookeeper/zookeeper_client.ts";
import type { ZooKeeper } from "../../protocols/zookeeper/zookeeper.ts";
import { BatonError, errorMessage } from "../../base/errors.ts";
import { retryWithBackoff, serverBackoff } from "../../base/support/backoff.ts";
import type { Clock } from "../../base/support/clock.ts";
import { PermanentFaultsError } from "../../protocols/zookeeper/permanent_error.ts";
import { closeCoordinationSession } from "./command_session.ts";

export interface CandidateSessionOptions {
  /** Opens a session. `isRetry` is true if `onUnreachable` has already been called for this outage. */
  readonly connect: (options: ZooKeeperConnectOptions, isRetry: boolean) => Promise<ZooKeeper>;
  readonly options: ZooKeeperConnectOptions;
  readonly clock: Clock;
  /** If true, waits for the servers without a limit once the first connection has succeeded. */
  readonly isPatient: boolean;
  readonly onOpened?: (zk: ZooKeeper, isFirst: boolean) => void;
  /** Called once for each outage, with the reason. */
  readonly onUnreachable: (why: string) => unknown;
}

export class CandidateSession {
  readonly #options: CandidateSessionOptions;
  #zk: ZooKeeper | null = null;
  #sessions = 0;

  constructor(options: CandidateSessionOptions) {
    this.#options = options;
  }

  /**
   * Returns the current session, or opens a new one. Rejects with the signal's reason or a permanent connection error.
   */
  async openSession(signal: AbortSignal): Promise<ZooKeeper> {
    if (this.#zk !== null && !this.#zk.session.ended.aborted) return this.#zk;
    const { options, clock, connect, isPatient, onOpened, onUnreachable } = this.#options;
    let isRetry = false;
    const open = async () => {
      this.#zk = await connect({ ...options, signal }, isRetry);
      this.#sessions++;
      onOpened?.(this.#zk, this.#sessions === 1);
      return this.#zk;
    };
    const mayRetry = (thrown: unknown, failures: number) => {
      // Earlier sessions worked, so certificates that do not fit now may have been renewed on one side only.
      const isAway = thrown instanceof PermanentFaultsError ||
        (thrown instanceof BatonError && thrown.code === "UNREACHABLE");
      // Does not retry after the signal has aborted. The failure tells the user more than the signal's reason.
      if (signal.aborted || !isAway || !isPatient || this.#sessions === 0) return false;
      if (failures === 0) onUnreachable(errorMessage(thrown));
      isRetry = true;
      return true;
    };
    return await retryWithBackoff(open, { clock, backoff: serverBackoff, signal, mayRetry });
  }

  /** Closes the session, which also deletes its ephemeral nodes. */
  async close(stop: AbortSignal): Promise<void> {
    const zk = this.#zk;
    this.#zk = null;
    if (zk !== null) await closeCoordinationSession(zk, this.#options.clock, stop);
  }

  /** Forgets the session without closing it; the session expires after its timeout. */
  abandon(): void {
    this.#zk = null;
  }
}
