/**
 * Elects which of several processors of one store tries messages, by baton's own election. The election is named after
 * the random name of the store, so that stores with the same --name on two machines have separate elections. Owns the
 * session and the campaign. The election only decides which process starts tries; the store itself prevents two tries
 * of one message at the same time.
 */
import { hostname } from "node:os";
import process from "node:process";
import { connect } from "../../protocols/zookeeper/zookeeper_client.ts";
import { isSessionEndError } from "../../protocols/zookeeper/zookeeper_error.ts";
import { errorMessage } from "../../base/errors.ts";
import { campaign, type Leadership } from "../../coordination/election/campaign.ts";
import { describeThisHolder, type HolderInfo, nameOfHolder } from "../../coordination/nodes/holder_info.ts";
import type { WaitingStatus } from "../../coordination/lock/acquire_lock.ts";
import { whenAborted } from "../../base/support/abort.ts";
import type { Dial } from "../../base/sockets/connection.ts";
import type { Clock } from "../../base/support/clock.ts";
import { sleep } from "../../base/support/deadline.ts";
import { connectAndReportDelay } from "../../coordination/connect/command_session.ts";
import { CandidateSession } from "../../coordination/connect/candidate_session.ts";
import { type CoordinationServers, lockScopeTexts } from "../../coordination/connect/coordination_servers.ts";
import type { Log } from "../../base/support/log.ts";

/** Milliseconds after stepping down on request, so that a waiting candidate is elected first. */
const standAgainMs = 1000;

export interface ProcessorElectionOptions {
  /** The random name of the store, which is unique. */
  readonly storeName: string;
  readonly place: CoordinationServers;
  readonly clock: Clock;
  readonly log: Log;
  /** The description of this process for others; the real one when left out. */
  readonly candidate?: { readonly value: string; readonly info: HolderInfo };
  readonly dial?: Dial;
  /** Called when the result of `leads()` may have changed. */
  readonly onChange: () => void;
}

function ownCandidate() {
  return {
    value: `${hostname()}:${process.pid}`,
    info: describeThisHolder({ command: ["baton retry-processor"], values: { publishCommand: false } }),
  };
}

export class ProcessorElection {
  readonly #options: ProcessorElectionOptions;
  readonly #name: string;
  readonly #stopping = new AbortController();
  readonly #session: CandidateSession;
  #leadership: Leadership | null = null;

  constructor(options: ProcessorElectionOptions) {
    const { storeName, place, clock, log, dial } = this.#options = options;
    this.#name = `retry-${storeName}`;
    this.#session = new CandidateSession({
      connect: (to, isRetry) => {
        const say = (sentence: string) => isRetry || log("warning", "election_unreachable", sentence);
        return connectAndReportDelay(connect, { ...to, clock, ...(dial === undefined ? {} : { dial }) }, {
          clock,
          say,
        });
      },
      options: { ...place.connect, onSlow: (sentence) => log("warning", "election_slow", sentence) },
      clock,
      isPatient: true,
      onUnreachable: (why) =>
        log("warning", "election_unreachable", `${why}; nothing is tried until a server responds`),
    });
  }

  /** Whether this process leads, by its own clock: while true, no server can have elected another one. */
  leads(): boolean {
    return this.#leadership?.isHeld() ?? false;
  }

  /** Gives up the leadership immediately; then `run` resolves. */
  stop(): void {
    this.#stopping.abort(new Error("it was stopped"));
  }

  /**
   * Stands for election, leads, and stands again, until it is stopped. Rejects when no server responds at the start,
   * and with errors that servers report. Servers that responded once are waited for.
   */
  async run(): Promise<void> {
    const { signal } = this.#stopping;
    const { clock, log, place } = this.#options;
    log("info", "standing", `standing for election ${this.#name} among ${lockScopeTexts[place.scope]}`, {
      election: this.#name,
    });
    try {
      while (!signal.aborted) {
        const leadership = await this.#campaign();
        const isRevoked = await this.#lead(leadership);
        // If the release fails, the end of the session releases the leadership.
        await leadership.release().catch(() => this.#session.close(signal));
        if (isRevoked) await sleep(clock, standAgainMs, signal).catch(() => {});
      }
    } catch (error) {
      if (!signal.aborted) throw error;
    } finally {
      await this.#session.close(signal);
    }
  }

  async #campaign(): Promise<Leadership> {
    const { signal } = this.#stopping;
    const { clock, place, log, candidate = ownCandidate() } = this.#options;
    for (;;) {
      const zk = await this.#session.openSession(signal);
      let isLogged = false;
      try {
        return await campaign(zk, this.#name, {
          ...candidate,
          clock,
          signal,
          root: place.root,
          onWaiting: (waiting) => {
            if (!isLogged) log("info", "waiting", this.#describe(waiting), { election: this.#name });
            isLogged = true;
          },
          ...(place.connect.acl === undefined ? {} : { acl: place.connect.acl }),
        });
      } catch (thrown) {
        if (signal.aborted || !isSessionEndError(zk.session.ended.reason)) throw thrown;
        log("warning", "session_expired", "the session of the candidate expired; standing for election again");
      }
    }
  }

  /** Leads until the leadership ends; true: another process requested the end. */
  async #lead(leadership: Leadership): Promise<boolean> {
    const { log, onChange } = this.#options;
    const { signal } = this.#stopping;
    this.#leadership = leadership;
    log("info", "leading", `this process leads ${this.#name} and tries messages`, { election: this.#name });
    onChange();
    await whenAborted(AbortSignal.any([leadership.lost, signal]));
    this.#leadership = null;
    onChange();
    if (signal.aborted) return false;
    const { code, message } = leadership.lost.reason as { code?: string; message: string };
    const why = `this process no longer leads ${this.#name} and starts no tries: ${errorMessage(message)}`;
    log("warning", "leadership_ended", why, { election: this.#name });
    return code === "REVOKED";
  }

  #describe({ status }: WaitingStatus): string {
    const holder = status.holders[0];
    const leader = holder === undefined ? "another process" : nameOfHolder(holder);
    return `waiting: ${leader} leads ${this.#name} and tries messages`;
  }
}
