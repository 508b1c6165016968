/** The data of `baton top`: one reading of everything, and the rates between two readings. Pure. */
import type { KindInUse } from "../../src/coordination/admin/list_in_use.ts";
import type { UseHolder, UseWaiter } from "../../src/coordination/admin/use_status.ts";
import type { PubsubServerRow, PubsubTopicRow } from "../pubsub/overview_tables.ts";

export interface TopUse {
  readonly kind: KindInUse;
  readonly name: string;
  /** Null if an ACL hides the number. */
  readonly holders: number | null;
  readonly waiters: number | null;
  /** The first holder and the first waiter. Null if there is none, or if the details were not read. */
  readonly holder: UseHolder | null;
  readonly next: UseWaiter | null;
}

export interface TopStore {
  readonly name: string;
  readonly folder: string;
  readonly isPaused: boolean;
  readonly waiting: number;
  readonly inFlight: number;
  readonly dead: number;
  /** Messages delivered since the store was created. */
  readonly done: number;
  /** Wall clock, in milliseconds. */
  readonly oldestMs: number | null;
  readonly nextMs: number | null;
}

export type MetricsProcessName = "keeper" | "pubsub server" | "pubsub proxy" | "retry";

/** The metrics of one baton process, or the reason why they could not be read. */
export interface TopProcess {
  readonly address: string;
  /** Null if it could not be read. */
  readonly process: MetricsProcessName | null;
  /** Why it could not be read. */
  readonly error: string | null;
  /** Counters by what they count, such as `requests`. */
  readonly counters: Readonly<Record<string, number>>;
  /** Current values by what they measure, such as `in flight`. */
  readonly gauges: Readonly<Record<string, number>>;
}

/** One reading of publish/subscribe, message stores and processes. */
export interface ServicesReading {
  /** Wall clock, in milliseconds. */
  readonly atMs: number;
  readonly topics: readonly PubsubTopicRow[];
  readonly pubsubServers: readonly PubsubServerRow[];
  readonly stores: readonly TopStore[];
  readonly processes: readonly TopProcess[];
  /** Messages about what could not be read. */
  readonly problems: readonly string[];
}

export interface TopReading extends ServicesReading {
  /** The coordination servers, written as for --servers. */
  readonly servers: string;
  readonly root: string;
  readonly uses: readonly TopUse[];
}

/** Rates per second between two readings; empty before the second reading. */
export interface TopRates {
  /** Messages delivered per second, by the folder of the store. */
  readonly stores: ReadonlyMap<string, number>;
  /** The rate of each counter, by the address of the process and then by what it counts. */
  readonly processes: ReadonlyMap<string, Readonly<Record<string, number>>>;
}

export const noTopRates: TopRates = { stores: new Map(), processes: new Map() };

/**
 * Returns the rates between two readings. A counter that has decreased belongs to a restarted process or a new store,
 * and gets no rate.
 */
export function topRatesBetween(before: ServicesReading, after: ServicesReading): TopRates {
  const seconds = (after.atMs - before.atMs) / 1000;
  if (seconds <= 0) return noTopRates;
  const rate = (old: number | undefined, now: number) => old === undefined || now < old ? null : (now - old) / seconds;
  const stores = after.stores.flatMap(({ folder, done }) => {
    const perSecond = rate(before.stores.find((store) => store.folder === folder)?.done, done);
    return perSecond === null ? [] : [[folder, perSecond] as const];
  });
  const processes = after.processes.map(({ address, counters }) => {
    const old = before.processes.find((process) => process.address === address)?.counters ?? {};
    const rates = Object.entries(counters).flatMap(([name, now]) => {
      const perSecond = rate(old[name], now);
      return perSecond === null ? [] : [[name, perSecond] as const];
    });
    return [address, Object.fromEntries(rates)] as const;
  });
  return { stores: new Map(stores), processes: new Map(processes) };
}
