/**
 * Faults around hosts that call for the same ticks. The first host is the victim; its own clock is a part of the fault.
 */
import type { Backend } from "../../../support/backends.ts";
import { type OutageContext, serverOutages, span } from "../../../support/server_outages.ts";
import type { CronHost } from "./host.ts";

export interface CronFaultContext extends OutageContext {
  /** The first one is the victim. */
  readonly hosts: readonly CronHost[];
  readonly victim: CronHost;
  /** Sets the servers' clock to this difference from the true time, in seconds. */
  stepServers(seconds: number): void;
}

export interface CronFault {
  readonly name: string;
  /**
   * The victim's clock in the whole round, as a difference from the true time in seconds; some seconds when left out.
   */
  readonly victimClock?: number;
  /** It needs a library that fakes the time. */
  readonly needsClocks?: boolean;
  /** Clocks differ by an hour for a while: calls may end with 78. */
  readonly mayDisagree?: boolean;
  readonly stepsServers?: boolean;
  /** Everywhere when left out. */
  readonly where?: (backend: Backend) => boolean;
  /** Does it, and heals it. */
  apply(context: CronFaultContext): Promise<void>;
}

const nothing = () => Promise.resolve();

export const cronFaults: readonly CronFault[] = [
  {
    name: "calls of the victim are killed",
    async apply({ victim, random, wait }) {
      for (let times = 0; times < 4; times++) {
        victim.killCalls();
        await wait(span(random, 100, 1500));
      }
    },
  },
  {
    name: "the victim dies with all of its processes, and comes back",
    async apply({ victim, random, sessionTimeoutMs, wait }) {
      victim.die();
      await wait(span(random, 0.2, 1.5) * sessionTimeoutMs);
      victim.comeBack();
    },
  },
  {
    name: "calls of the victim are stopped for 0.5 to 2 T",
    async apply({ victim, random, sessionTimeoutMs, wait }) {
      victim.signalCalls("SIGSTOP");
      await wait(span(random, 0.5, 2) * sessionTimeoutMs);
      victim.signalCalls("SIGCONT");
    },
  },
  {
    name: "the victim is cut off from the servers",
    async apply({ victim, random, sessionTimeoutMs, wait }) {
      victim.proxies.forEach((proxy) => proxy.blackHole());
      await wait(span(random, 0.3, 2) * sessionTimeoutMs);
      victim.proxies.forEach((proxy) => proxy.heal());
    },
  },
  {
    name: "replies to the victim are lost",
    async apply({ victim, random, wait }) {
      for (let times = 0; times < 4; times++) {
        victim.proxies.forEach((proxy) => proxy.blackHole("replies"));
        await wait(span(random, 50, 400));
        victim.proxies.forEach((proxy) => proxy.cut());
        victim.proxies.forEach((proxy) => proxy.heal());
        await wait(span(random, 100, 800));
      }
    },
  },
  ...serverOutages,
  {
    name: "the victim's clock is an hour ahead",
    victimClock: 3600,
    needsClocks: true,
    mayDisagree: true,
    apply: nothing,
  },
  {
    name: "the victim's clock is an hour behind",
    victimClock: -3600,
    needsClocks: true,
    mayDisagree: true,
    apply: nothing,
  },
  ...[3600, -3600].flatMap((seconds): CronFault[] => {
    const where = seconds > 0 ? "ahead" : "behind";
    return [
      {
        name: `the clocks of all hosts are an hour ${where} for a while`,
        needsClocks: true,
        mayDisagree: true,
        async apply({ hosts, random, wait }) {
          for (const host of hosts) host.setClock(seconds);
          await wait(span(random, 500, 4000));
          for (const host of hosts) host.setClock(Math.round(span(random, -8, 8)));
        },
      },
      {
        name: `the servers' clock is an hour ${where} for a while`,
        needsClocks: true,
        mayDisagree: true,
        stepsServers: true,
        // A Java machine whose time is faked waits for ever.
        where: ({ kind }) => kind === "keeper",
        async apply({ stepServers, random, wait }) {
          stepServers(seconds);
          await wait(span(random, 500, 4000));
          stepServers(0);
        },
      },
    ];
  }),
];
