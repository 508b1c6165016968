/** What is written into a lock's container: the guarded state. Read leniently, written in one form. */
import { BatonError } from "../../errors.ts";

export interface LockState {
  /** How many permits there are; null as long as nobody has asked for a permit. */
  readonly limit: number | null;
}

/** Another shape of nodes gets another number: an old baton must not take part in a new one's lock. */
const layout = 1;
export const limitMax = 1_000_000;

const utf8 = new TextEncoder();

export const initialLockState: LockState = { limit: null };

export function formatLockState(state: LockState): Uint8Array {
  return formatState(state);
}

/** With what a recipe keeps beside the limit. */
export function formatState<S extends LockState>(state: S): Uint8Array {
  return utf8.encode(JSON.stringify({ layout, ...state }));
}

/** Throws CONFIG for data that no baton of this layout has written. A node without data is one made beforehand. */
export function parseLockState(data: Uint8Array, path: string): LockState {
  if (data.length === 0) return initialLockState;
  const refuse = (what: string, cause?: unknown) =>
    new BatonError("CONFIG", `"${path}" is not a lock that this baton can take part in: ${what}`, { cause });
  let value: unknown;
  try {
    value = JSON.parse(new TextDecoder().decode(data));
  } catch (cause) {
    throw refuse("its data is not JSON", cause);
  }
  if (typeof value !== "object" || value === null || !("layout" in value)) throw refuse("its data names no layout");
  if (value.layout !== layout) throw refuse(`its layout is ${JSON.stringify(value.layout)}, and this is ${layout}`);
  const limit = "limit" in value ? value.limit : null;
  if (limit === null) return initialLockState;
  if (!isLimit(limit)) throw refuse(`its limit is ${JSON.stringify(limit)}`);
  return { limit };
}

export function isLimit(value: unknown): value is number {
  return typeof value === "number" && Number.isInteger(value) && value >= 1 && value <= limitMax;
}
