/** Ends the session of another process, which must be dead. The server then deletes the session's ephemeral nodes. */
import { dial } from "../sockets/dial.ts";
import { type Dial } from "../sockets/connection.ts";
import { type Resolve, resolveHost } from "../sockets/resolve_host.ts";
import { backoffMs } from "../support/backoff.ts";
import type { Clock } from "../support/clock.ts";
import { deadlineAfter, sleep } from "../support/deadline.ts";
import { closeSessionOn } from "./close_session.ts";
import { Connector } from "./connector.ts";
import { Hosts } from "./hosts.ts";
import { parseSessionHandle } from "./session_handle.ts";

export interface EndSessionOptions {
  readonly clock: Clock;
  /** The time limit in milliseconds; afterwards the session is left to expire. */
  readonly limitMs: number;
  readonly dial?: Dial;
  readonly resolve?: Resolve;
}

/** Pauses that keep one server that hangs from using all the time. */
const staggerMs = 200;
const attemptMs = 2000;
const retryWait = { firstMs: 20, maxMs: 500 };

/** Ends the session of a text made by `formatSessionHandle`. True when it has ended; false when that is unknown. Never rejects. */
export async function endSession(word: string, options: EndSessionOptions): Promise<boolean> {
  const { clock, limitMs } = options;
  const { servers, tls, auth, identity } = parseSessionHandle(word);
  const hosts = new Hosts(servers, { resolve: options.resolve ?? resolveHost, clock });
  const connector = new Connector(hosts, { dial: options.dial ?? dial, clock, tls, auth });
  // The server restarts the session's timer with the requested timeout: if closing fails, the session expires soon.
  const wanted = { identity, timeoutMs: 1, lastZxid: 0n };
  const { signal, cancel } = deadlineAfter(clock, limitMs, { reason: () => null });
  try {
    for (let failures = 0;; failures++) {
      const outcome = await connector.tryEachServer(wanted, { attemptMs, staggerMs, signal });
      if (outcome.kind === "expired") return true;
      if (outcome.kind === "refused") return false;
      const err = outcome.kind === "accepted" ? await closeSessionOn(outcome.established, signal) : null;
      if (err !== null) return err === 0; // other errors would be returned again
      await sleep(clock, backoffMs(failures, retryWait), signal);
    }
  } catch {
    return false; // the time limit is over
  } finally {
    cancel();
  }
}
