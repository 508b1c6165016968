/** Ends the session of another process, which must be dead: everything that the session has on the server goes with it. */
import { dial } from "../sockets/dial.ts";
import { type Dial } from "../sockets/connection.ts";
import { type Resolve, resolveHost } from "../sockets/resolve_host.ts";
import { backoffMs } from "../support/backoff.ts";
import type { Clock } from "../support/clock.ts";
import { deadlineAfter, sleep } from "../support/deadline.ts";
import { closeSessionOn } from "./abort_connection.ts";
import { Connector } from "./connector.ts";
import { Hosts } from "./hosts.ts";
import { parseSessionHandle } from "./session_handle.ts";

export interface EndSessionOptions {
  readonly clock: Clock;
  /** How long it is tried; after that the session is left to expire. Milliseconds. */
  readonly limitMs: number;
  readonly dial?: Dial;
  readonly resolve?: Resolve;
}

/** One server that hangs must not take up the whole time. */
const staggerMs = 200;
const attemptMs = 2000;
const retryWait = { firstMs: 20, maxMs: 500 };

/** `word` is what `formatSessionHandle` made. True when the session has ended; false when that is not known. Never rejects. */
export async function endSession(word: string, options: EndSessionOptions): Promise<boolean> {
  const { clock, limitMs } = options;
  const { servers, tls, auth, identity } = parseSessionHandle(word);
  const hosts = new Hosts(servers, { resolve: options.resolve ?? resolveHost, clock });
  const connector = new Connector(hosts, { dial: options.dial ?? dial, clock, tls, auth });
  // The server counts anew from here, by what is asked for: where closing fails, the shortest time is left to wait.
  const wanted = { identity, timeoutMs: 1, lastZxid: 0n };
  const { signal, cancel } = deadlineAfter(clock, limitMs, { reason: () => null });
  try {
    for (let failures = 0;; failures++) {
      const outcome = await connector.round(wanted, { attemptMs, staggerMs, signal });
      if (outcome.kind === "expired") return true;
      if (outcome.kind === "refused") return false;
      const err = outcome.kind === "accepted" ? await closeSessionOn(outcome.established, signal) : null;
      if (err !== null) return err === 0; // else it would be refused again
      await sleep(clock, backoffMs(failures, retryWait), signal);
    }
  } catch {
    return false; // the time is over
  } finally {
    cancel();
  }
}
