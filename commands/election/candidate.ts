/** A candidate's session: kept over its campaigns while it lives, and followed by another one when it has ended. */
import type { ConnectOptions } from "../../src/zookeeper/zookeeper_client.ts";
import type { ZooKeeper } from "../../src/zookeeper/zookeeper.ts";
import { BatonError, messageOf } from "../../src/errors.ts";
import { backoffMs } from "../../src/support/backoff.ts";
import type { Clock } from "../../src/support/clock.ts";
import { sleep } from "../../src/support/deadline.ts";
import { closeSession } from "../../src/coordination/connect/command_session.ts";

export interface CandidateOptions {
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

export class Candidate {
  readonly #options: CandidateOptions;
  #zk: ZooKeeper | null = null;
  #sessions = 0;

  constructor(options: CandidateOptions) {
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
