/** Which rows of a table a tier runs. `sh scripts/test` says the tier; without one, as by hand, all rows run. */
import process from "node:process";
import { type Backend, keeper, zooKeeper } from "./backends.ts";

const tier = process.env["TEST_TIER"];

/** True at night and by hand: false in the everyday tests only. */
export const runsNightly: boolean = tier !== "everyday";

/** Returns the rows of this tier. */
export function tierRows<T>(rows: { readonly everyday: readonly T[]; readonly nightly: readonly T[] }): readonly T[] {
  return [...(tier === "nightly" ? [] : rows.everyday), ...(runsNightly ? rows.nightly : [])];
}

/** The keeper every day, ZooKeeper at night: for tests whose other rows show that both servers behave alike. */
export const tierBackends: readonly Backend[] = tierRows({ everyday: [keeper], nightly: [zooKeeper] });
