/**
 * Formats and judges the record of an item, which says that the item runs, or at which transaction it ended. A record
 * shows whether a list is too old for its item, and whether calls with a shared list have done the item. Pure.
 * docs/protocol/pool.md describes the protocol.
 */
import { encodeJson, parseJsonFields } from "../../base/support/json_fields.ts";

export type PoolItemRecord =
  /** The item runs, or its run ended without updating the record; then the holder's node is gone. */
  | { readonly state: "running"; readonly holder: string }
  /** The item ended at this transaction or before it. `isDone`: the command exited with 0. */
  | { readonly state: "ended"; readonly zxid: bigint; readonly isDone: boolean };

/** `holder` is the name of the node that holds the item's lock. */
export const formatRunningItemRecord = (holder: string): Uint8Array => encodeJson({ holder });

/** Formats the record of an item that ended at `zxid`. Null stands for the transaction that writes the record. */
export function formatEndedItemRecord(zxid: bigint | null, { isDone }: { readonly isDone: boolean }): Uint8Array {
  return encodeJson({ ...(zxid === null ? {} : { ended: String(zxid) }), ...(isDone ? { done: true } : {}) });
}

/**
 * Parses the record of an item. Unknown data counts as an end at `mzxid`, the last transaction that changed the node.
 */
export function parseItemRecord(data: Uint8Array, mzxid: bigint): PoolItemRecord {
  const { holder, ended, done } = parseJsonFields(data);
  if (typeof holder === "string") return { state: "running", holder };
  const zxid = typeof ended === "string" && /^\d{1,19}$/.test(ended) ? BigInt(ended) : mzxid;
  return { state: "ended", zxid, isDone: done === true };
}

/**
 * Returns whether a list that was requested at `listedAt` is valid for an item. The caller holds the item's lock. If
 * the item ended later, or at an unknown time, the list may be too old.
 */
export function isListValidForItem(record: PoolItemRecord, listedAt: bigint): boolean {
  return record.state === "ended" && record.zxid < listedAt;
}

/**
 * Returns whether an item was done since the shared list began at `startedAt`. Other calls may run an item that failed
 * or belonged to a killed run.
 */
export function isDoneInSharedList(record: PoolItemRecord, startedAt: bigint): boolean {
  return record.state === "ended" && record.isDone && record.zxid > startedAt;
}

/**
 * Returns whether a list still needs the record. `oldest` is the start of the oldest list in use; null if no list is.
 */
export function isItemRecordNeeded(record: PoolItemRecord, oldest: bigint | null): boolean {
  return record.state === "running" || (oldest !== null && !isListValidForItem(record, oldest));
}

const listPrefix = "list-";

/** Returns the name of this run's list node, which exists while the run claims items of its list. */
export const itemListNodeName = (guid: string): string => `${listPrefix}${guid}`;

/** Returns the list nodes of other runs among the names of the children of `runs`. */
export function findOtherRunsListNodes(names: readonly string[], guid: string): string[] {
  return names.filter((name) => name.startsWith(listPrefix) && name !== itemListNodeName(guid));
}
