/**
 * Decides whether a list of items may be too old for an item, and whether calls that share a list have done it. The
 * record of an item says that it runs, or at which transaction it ended. Pure. docs/protocol/pool.md has the protocol.
 */
import { encodeJson, parseJsonFields } from "../../base/support/json_fields.ts";

export type PoolItemRecord =
  /** The item runs; or it ran, and its run ended before it could update the record. Then the holder's node is gone. */
  | { readonly state: "running"; readonly holder: string }
  /** The item ended at this transaction or before it. `isDone`: it exited with 0. */
  | { readonly state: "ended"; readonly zxid: bigint; readonly isDone: boolean };

/** Formats the record of an item that runs. `holder` is the name of the node that holds the item's lock. */
export const formatRunningItemRecord = (holder: string): Uint8Array => encodeJson({ holder });

/** Formats the record of an item that ended at `zxid`. Null stands for the transaction that writes the record. */
export function formatEndedItemRecord(zxid: bigint | null, { isDone }: { readonly isDone: boolean }): Uint8Array {
  return encodeJson({ ...(zxid === null ? {} : { ended: String(zxid) }), ...(isDone ? { done: true } : {}) });
}

/** Parses the record of an item. Unknown data counts as an end at `mzxid`, the node's last transaction. */
export function parseItemRecord(data: Uint8Array, mzxid: bigint): PoolItemRecord {
  const { holder, ended, done } = parseJsonFields(data);
  if (typeof holder === "string") return { state: "running", holder };
  const zxid = typeof ended === "string" && /^\d{1,19}$/.test(ended) ? BigInt(ended) : mzxid;
  return { state: "ended", zxid, isDone: done === true };
}

/**
 * Whether a list that was requested at `listedAt` is valid for the item, while the item's lock is held. If the item
 * ended later, or at an unknown time, the list may name it only because it is older than the end.
 */
export function isItemListValid(record: PoolItemRecord, listedAt: bigint): boolean {
  return record.state === "ended" && record.zxid < listedAt;
}

/**
 * Whether an item was done since the shared list began at `startedAt`. An item that failed was not, nor one whose run
 * was killed: they may run in other calls.
 */
export function isDoneInSharedList(record: PoolItemRecord, startedAt: bigint): boolean {
  return record.state === "ended" && record.isDone && record.zxid > startedAt;
}

/** Whether a list still needs the record. `oldest` is the start of the oldest list in use; null if there is none. */
export function isItemRecordNeeded(record: PoolItemRecord, oldest: bigint | null): boolean {
  return record.state === "running" || (oldest !== null && !isItemListValid(record, oldest));
}

const listPrefix = "list-";

/** The name of the node that exists while this run claims items of its list. */
export const itemListNodeName = (guid: string): string => `${listPrefix}${guid}`;

/** The children of `runs` that are lists of other runs. */
export function findOtherItemLists(names: readonly string[], guid: string): string[] {
  return names.filter((name) => name.startsWith(listPrefix) && name !== itemListNodeName(guid));
}
