/**
 * Which of several processors of one store takes messages: baton's own election, under the store's own name, so that stores that
 * are called alike on two machines never elect among each other. Owns the session and the campaign. Leading decides who begins tries,
 * nothing else: what keeps two of them from trying one message at once is the store.
 */
import { hostname } from "node:os";
import process from "node:process";
import { connect } from "../../src/zookeeper/zookeeper_client.ts";
import { isSessionEnd } from "../../src/zookeeper/zookeeper_error.ts";
import { messageOf } from "../../src/errors.ts";
import { campaign, type Leadership } from "../../src/coordination/election/campaign.ts";
import { holderInfo, nameOfHolder } from "../../src/coordination/holder_info.ts";
import type { WaitingStatus } from "../../src/coordination/lock/acquire_lock.ts";
import { onAbort } from "../../src/support/abort.ts";
import type { Clock } from "../../src/support/clock.ts";
import { sleep } from "../../src/support/deadline.ts";
import { CandidateSession } from "../../src/coordination/connect/candidate_session.ts";
import { type Coordination, reach } from "../../src/coordination/connect/coordination_servers.ts";
import type { RetryLog } from "./retry_log.ts";

/** After a leadership that was asked back: whoever waits is faster by then. Milliseconds. */
const steppedDownMs = 1000;

export interface SamplingLeaderOptions {
  /** The store's random name, which no other store has. */
  readonly storeName: string;
  readonly place: Coordination;
  readonly clock: Clock;
  readonly log: RetryLog;
  /** `leads()` may say something else now. */
  readonly onChange: () => void;
}

export class SamplingLeader {
  readonly #options: SamplingLeaderOptions;
  readonly #name: string;
  readonly #stopping = new AbortController();
  readonly #candidate: CandidateSession;
  #leadership: Leadership | null = null;

  constructor(options: SamplingLeaderOptions) {
    const { storeName, place, clock, log } = this.#options = options;
    this.#name = `retry-${storeName}`;
    this.#candidate = new CandidateSession({
      connect: (to) => connect({ ...to, clock }),
      options: place.connect,
      clock,
      isPatient: true,
      onOpened: () => {},
      onUnreachable: (why) => log("warning", "election_away", `${why}; nothing is tried until there is one`),
    });
  }

  /** As far as the clock goes: no server can have let another one lead. */
  leads(): boolean {
    return this.#leadership?.isHeld() ?? false;
  }

  /** Gives it up at once; `run` resolves then. */
  stop(): void {
    this.#stopping.abort(new Error("it was stopped"));
  }

  /**
   * Campaigns, leads, and campaigns again, until it is stopped. Rejects when no server answers at the beginning, and with what servers
   * refuse; servers that answered once are waited for.
   */
  async run(): Promise<void> {
    const { signal } = this.#stopping;
    const { clock, log, place } = this.#options;
    log("info", "campaigning", `${this.#name} is elected among ${reach[place.scope]}`, { election: this.#name });
    try {
      while (!signal.aborted) {
        const leadership = await this.#campaign();
        const isRevoked = await this.#lead(leadership);
        // A place that cannot be given back in an orderly way goes with its session.
        await leadership.release().catch(() => this.#candidate.close(signal));
        if (isRevoked) await sleep(clock, steppedDownMs, signal).catch(() => {});
      }
    } catch (error) {
      if (!signal.aborted) throw error;
    } finally {
      await this.#candidate.close(signal);
    }
  }

  async #campaign(): Promise<Leadership> {
    const { signal } = this.#stopping;
    const { clock, place, log } = this.#options;
    for (;;) {
      const zk = await this.#candidate.session(signal);
      let isSaid = false;
      try {
        return await campaign(zk, this.#name, {
          value: `${hostname()}:${process.pid}`,
          clock,
          signal,
          root: place.root,
          info: holderInfo({ command: ["baton retry-processor"], values: { publishCommand: false } }),
          onWaiting: (waiting) => {
            if (!isSaid) log("info", "waiting", this.#describe(waiting), { election: this.#name });
            isSaid = true;
          },
          ...(place.connect.acl === undefined ? {} : { acl: place.connect.acl }),
        });
      } catch (thrown) {
        if (signal.aborted || !isSessionEnd(zk.session.ended.reason)) throw thrown;
        log("warning", "session_expired", "the session that campaigned has expired; it campaigns again");
      }
    }
  }

  /** Up to its end; true when it was asked back. */
  async #lead(leadership: Leadership): Promise<boolean> {
    const { log, onChange } = this.#options;
    const { signal } = this.#stopping;
    this.#leadership = leadership;
    log("info", "leading", `this one leads ${this.#name}: it tries what is due`, { election: this.#name });
    onChange();
    const { promise, resolve } = Promise.withResolvers<void>();
    const offs = [leadership.lost, signal].map((end) => onAbort(end, () => resolve()));
    await promise;
    for (const off of offs) off();
    this.#leadership = null;
    onChange();
    if (signal.aborted) return false;
    const { code, message } = leadership.lost.reason as { code?: string; message: string };
    const why = `it leads ${this.#name} no more, and begins no tries: ${messageOf(message)}`;
    log("warning", "leading_no_more", why, { election: this.#name });
    return code === "REVOKED";
  }

  #describe({ status }: WaitingStatus): string {
    const holder = status.holders[0];
    const who = holder === undefined ? "another one" : nameOfHolder(holder);
    return `waits: ${who} leads ${this.#name} and tries what is due`;
  }
}
