/** Space that a database and its log can still take from their disk. Pure. */

export interface DiskSpace {
  /** Size of the file system, in bytes. */
  readonly bytes: number;
  /** Free bytes of it for this user when everything that is in the log, or in the open transaction, is in the database, too. */
  readonly freeBytes: number;
  /** Bytes of used and of unused pages in the database. */
  readonly usedBytes: number;
  readonly unusedBytes: number;
}

/** The free bytes that are left when `bytes` more are in the log, and then in the database: each is on the disk twice. */
export function freeBytesAfter(
  { freeBytes, unusedBytes }: Pick<DiskSpace, "freeBytes" | "unusedBytes">,
  bytes: number,
): number {
  return freeBytes - bytes - Math.max(0, bytes - unusedBytes);
}
