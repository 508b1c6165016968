/**
 * What the record of an item says: that it runs, or when it has ended, which tells whether a list that names it is older than
 * that. Pure: names, data and decisions; see docs/protocol/pool.md.
 */
import { jsonFields } from "../../support/json_fields.ts";

export type ItemRecord =
  /** Or ran, when its pool ended before it could write: then the holder's node is gone. */
  | { readonly state: "running"; readonly holder: string }
  /** At this transaction, or before it. */
  | { readonly state: "ended"; readonly zxid: bigint };

const utf8 = new TextEncoder();

/** `holder` is the name of the node that holds the item's lock. */
export const formatRunning = (holder: string): Uint8Array => utf8.encode(JSON.stringify({ holder }));

/** Null: with the transaction that writes this. */
export function formatEnded(zxid: bigint | null): Uint8Array {
  return utf8.encode(JSON.stringify(zxid === null ? {} : { ended: String(zxid) }));
}

/** `mzxid` is of the node. What is not understood has ended when it was written. */
export function parseRecord(data: Uint8Array, mzxid: bigint): ItemRecord {
  const { holder, ended } = jsonFields(data);
  if (typeof holder === "string") return { state: "running", holder };
  return { state: "ended", zxid: typeof ended === "string" && /^\d{1,19}$/.test(ended) ? BigInt(ended) : mzxid };
}

/**
 * Whether a list that was begun at `listedAt` may say that the item is still to be run, once its lock is held: not when the
 * item ended after that, as the list may be from before its end; nor when nobody knows when it ended.
 */
export function isListValid(record: ItemRecord, listedAt: bigint): boolean {
  return record.state === "ended" && record.zxid < listedAt;
}

/** Whether no list can need it: `oldest` is when the oldest was begun that items are still taken from, null for none. */
export function isRecordNeeded(record: ItemRecord, oldest: bigint | null): boolean {
  return record.state === "running" || (oldest !== null && !isListValid(record, oldest));
}

const listPrefix = "list-";

/** Of the node that is there as long as items are taken from a list of this run's. */
export const listName = (guid: string): string => `${listPrefix}${guid}`;

/** Those among the children of `runs` that are lists of others. */
export function otherLists(names: readonly string[], guid: string): string[] {
  return names.filter((name) => name.startsWith(listPrefix) && name !== listName(guid));
}
