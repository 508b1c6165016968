/** The session of a candidate: kept over several campaigns while it lives, replaced by a new one when it has ended. */
import type { ConnectOptions } from "../../zookeeper/zookeeper_client.ts";
import type { ZooKeeper } from "../../zookeeper/zookeeper.ts";
import { BatonError, messageOf } from "../../errors.ts";
import { backoffMs } from "../../support/backoff.ts";
import type { Clock } from "../../support/clock.ts";
import { sleep } from "../../support/deadline.ts";
import { closeSession } from "./command_session.ts";

export interface CandidateSessionOptions {
  readonly connect: (options: ConnectOptions) => Promise<ZooKeeper>;
  readonly options: ConnectOptions;
  readonly clock: Clock;
  /** Servers that answered once are waited for, however long they stay away. */
  readonly isPatient: boolean;
  /** Told of each session that is opened. */
  readonly onOpened: (zk: ZooKeeper, isFirst: boolean) => void;
  /** Told once per outage. */
  readonly onUnreachable: (why: string) => void;
}

const retryWait = { firstMs: 500, maxMs: 5000 };

export class CandidateSession {
  readonly #options: CandidateSessionOptions;
  #zk: ZooKeeper | null = null;
  #sessions = 0;

  constructor(options: CandidateSessionOptions) {
    this.#options = options;
  }

  /** The living session, or a new one. Rejects with the signal's reason, and with what connecting is refused for. */
  async session(signal: AbortSignal): Promise<ZooKeeper> {
    if (this.#zk !== null && !this.#zk.session.ended.aborted) return this.#zk;
    const { options, clock, connect, isPatient, onOpened, onUnreachable } = this.#options;
    for (let failures = 0;; failures++) {
      try {
        this.#zk = await connect({ ...options, signal });
        onOpened(this.#zk, this.#sessions++ === 0);
        return this.#zk;
      } catch (thrown) {
        const isAway = thrown instanceof BatonError && thrown.code === "UNREACHABLE";
        if (signal.aborted || !isAway || !isPatient || this.#sessions === 0) throw thrown;
        if (failures === 0) onUnreachable(messageOf(thrown));
        await sleep(clock, backoffMs(failures, retryWait), signal);
      }
    }
  }

  /** What it may still have on the server goes with it. */
  async close(stop: AbortSignal): Promise<void> {
    const zk = this.#zk;
    this.#zk = null;
    if (zk !== null) await closeSession(zk, this.#options.clock, stop);
  }

  /** Left to end by itself, after its full time. */
  abandon(): void {
    this.#zk = null;
  }
}
