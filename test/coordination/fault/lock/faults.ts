/** What can go wrong around one holder of a lock, and what must come of it. */
import type { Backend } from "../../../support/backends.ts";
import { type OutageContext, serverOutages, span } from "../../../support/server_outages.ts";
import type { Contender } from "./contender.ts";

export interface FaultContext extends OutageContext {
  /** Holds the lock when the fault begins. */
  readonly victim: Contender;
}

/**
 * - survives: the victim keeps the lock, and its child ends with 0 when it is told to
 * - loses: its child is stopped in time, and it exits with 79
 * - either: one of the two, depending on how long the fault lasted
 * - killed: it dies of SIGKILL, and all its processes with it
 */
export type Expectation = "survives" | "loses" | "either" | "killed";

export interface Fault {
  readonly name: string;
  readonly expect: Expectation;
  /** Everywhere when left out. */
  readonly where?: (backend: Backend) => boolean;
  /** Does it, and heals it where it heals by itself. */
  apply(context: FaultContext): Promise<void>;
}

/** Of the victim's own network: nobody else is touched. */
export const networkFaults: readonly Fault[] = [
  {
    name: "black hole",
    expect: "loses",
    apply: ({ victim }) => onNetwork(victim, (proxy) => proxy.blackHole()),
  },
  {
    name: "half-open: requests are lost",
    expect: "loses",
    apply: ({ victim }) => onNetwork(victim, (proxy) => proxy.blackHole("requests")),
  },
  {
    name: "half-open: replies are lost",
    expect: "loses",
    apply: ({ victim }) => onNetwork(victim, (proxy) => proxy.blackHole("replies")),
  },
  {
    name: "black hole that heals",
    expect: "either",
    async apply({ victim, random, sessionTimeoutMs, wait }) {
      await onNetwork(victim, (proxy) => proxy.blackHole());
      await wait(span(random, 0.1, 1.5) * sessionTimeoutMs);
      await onNetwork(victim, (proxy) => proxy.heal());
    },
  },
  {
    name: "cut, again and again",
    expect: "survives",
    async apply({ victim, random, wait }) {
      for (let times = 0; times < 5; times++) {
        await onNetwork(victim, (proxy) => proxy.cut());
        await wait(span(random, 0, 300));
      }
    },
  },
];

export const serverFaults: readonly Fault[] = serverOutages.map((outage) => ({ ...outage, expect: "either" }));

/** Of the wrapper itself. */
export const processFaults: readonly Fault[] = [
  {
    name: "wrapper stopped for less than the lease",
    expect: "survives",
    // TERM comes 5/8 T after the last answered request was sent (T − 0.5 s − T/4), which may be T/6 ago by now; the
    // rest, T/4, is for a machine that stands still now and then.
    apply: stopped(0.05, 0.2),
  },
  {
    name: "wrapper stopped for 0.5 to 1 T",
    expect: "either",
    apply: stopped(0.5, 1),
  },
  {
    name: "wrapper stopped for 1.05 to 3 T",
    expect: "loses",
    apply: stopped(1.05, 3),
  },
  {
    name: "wrapper killed",
    expect: "killed",
    apply({ victim }) {
      victim.signal("SIGKILL");
      return Promise.resolve();
    },
  },
];

export const faults: readonly Fault[] = [...networkFaults, ...serverFaults, ...processFaults];

/** Stops the victim for a part of the session timeout. */
function stopped(from: number, to: number): Fault["apply"] {
  return async ({ victim, random, sessionTimeoutMs, wait }) => {
    victim.signal("SIGSTOP");
    await wait(span(random, from, to) * sessionTimeoutMs);
    victim.signal("SIGCONT");
  };
}

/** All of the victim's ways to all servers. */
function onNetwork(victim: Contender, act: (proxy: Contender["proxies"][number]) => void): Promise<void> {
  victim.proxies.forEach(act);
  return Promise.resolve();
}
