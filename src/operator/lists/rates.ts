/** Computes the rates of message stores and processes from two readings. */
import type { RowSnapshot } from "../../base/rows/row_kinds.ts";

/** Rates per second. They are empty before the second reading. */
export interface RowRates {
  /** How many messages were delivered per second, by the folder of the store. */
  readonly stores: ReadonlyMap<string, number>;
  /** The rate of each counter, by the address of the process and then by the counter's name. */
  readonly processes: ReadonlyMap<string, Readonly<Record<string, number>>>;
}

export const noRowRates: RowRates = { stores: new Map(), processes: new Map() };

type CountedRows = Pick<RowSnapshot["rows"], "store" | "process">;

/**
 * Returns the rates between two readings. A counter that has decreased gets no rate, because it belongs to a restarted
 * process or a new store.
 */
export function rowRatesBetween(before: CountedRows, after: CountedRows, seconds: number): RowRates {
  const rate = (old: number | undefined, now: number) => old === undefined || now < old ? null : (now - old) / seconds;
  const stores = (after.store ?? []).flatMap(({ folder, states }) => {
    const perSecond = rate(before.store?.find((one) => one.folder === folder)?.states.done.count, states.done.count);
    return perSecond === null ? [] : [[folder, perSecond] as const];
  });
  const processes = (after.process ?? []).map(({ address, counters }) => {
    const old = before.process?.find((one) => one.address === address)?.counters ?? {};
    const rates = Object.entries(counters).flatMap(([name, now]) => {
      const perSecond = rate(old[name], now);
      return perSecond === null ? [] : [[name, perSecond] as const];
    });
    return [address, Object.fromEntries(rates)] as const;
  });
  return { stores: new Map(stores), processes: new Map(processes) };
}

/** The shortest time between two readings that are compared, in milliseconds. */
const spanMsMin = 1500;

export class RateMeter {
  #base: { readonly rows: CountedRows; readonly atMs: number } | null = null;
  #rates = noRowRates;

  /** Returns the rates at this reading; the previous rates if the earlier reading is more recent than `spanMsMin`. */
  measure(rows: CountedRows, atMs: number): RowRates {
    const base = this.#base;
    if (base !== null && atMs - base.atMs < spanMsMin) return this.#rates;
    if (base !== null) this.#rates = rowRatesBetween(base.rows, rows, (atMs - base.atMs) / 1000);
    this.#base = { rows, atMs };
    return this.#rates;
  }
}
