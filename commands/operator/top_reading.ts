/** The data of `baton top`: one reading of everything, and the rates between two readings. Pure. */
import type { UseKind } from "../../src/coordination/admin/list_in_use.ts";
import type { UseHolder, UseWaiter } from "../../src/coordination/admin/use_status.ts";
import type { PubsubServerRow, PubsubTopicRow } from "../pubsub/overview_tables.ts";

export interface TopUse {
  readonly kind: UseKind;
  readonly name: string;
  /** Null if an ACL hides the number. */
  readonly holders: number | null;
  readonly waiters: number | null;
  /** The first holder, and the first waiter; null if there is none, or if its details were not read. */
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
  /** Messages that were delivered since the store was created. */
  readonly done: number;
  /** Wall clock, in milliseconds. */
  readonly oldestMs: number | null;
  readonly nextMs: number | null;
}

export type MetricsProcessName = "keeper" | "pubsub server" | "pubsub proxy" | "retry";

/** A process whose metrics were read. */
export interface TopProcess {
  readonly address: string;
  /** Null if it could not be read. */
  readonly process: MetricsProcessName | null;
  /** Why it could not be read. */
  readonly error: string | null;
  /** Counters that only grow, by what they count: `requests`. */
  readonly counters: Readonly<Record<string, number>>;
  /** Present numbers: `requests in flight`. */
  readonly gauges: Readonly<Record<string, number>>;
}

/** Publish/subscribe, message stores and processes. */
export interface ServicesReading {
  /** Wall clock, in milliseconds. */
  readonly atMs: number;
  readonly topics: readonly PubsubTopicRow[];
  readonly pubsubServers: readonly PubsubServerRow[];
  readonly stores: readonly TopStore[];
  readonly processes: readonly TopProcess[];
  /** Sentences about parts that could not be read. */
  readonly problems: readonly string[];
}

export interface TopReading extends ServicesReading {
  /** The servers in the form of --servers. */
  readonly servers: string;
  readonly root: string;
  readonly uses: readonly TopUse[];
}

/** Rates per second between two readings, by what they belong to; empty before the second reading. */
export interface TopRates {
  /** Delivered messages of a store, by its folder. */
  readonly stores: ReadonlyMap<string, number>;
  /** Counters of a process by address, then by what they count. */
  readonly processes: ReadonlyMap<string, Readonly<Record<string, number>>>;
}

export const noTopRates: TopRates = { stores: new Map(), processes: new Map() };

/** A counter that has become lower is that of a new process or store: it has no rate yet. */
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
