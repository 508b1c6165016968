/** Space that a database and its log can still take from their disk. Pure. */

export interface DiskSpace {
  /** Size of the file system, in bytes. */
  readonly bytes: number;
  /**
   * Free bytes of it for this user when everything that is in the log, or in the open transaction, is in the database,
   * too.
   */
  readonly freeBytes: number;
  /** Bytes of used and of unused pages in the database. */
  readonly usedBytes: number;
  readonly unusedBytes: number;
}

/**
 * The free bytes that are left when `bytes` more are in the log, and then in the database: each is on the disk twice.
 */
export function freeDiskBytesAfter(
  { freeBytes, unusedBytes }: Pick<DiskSpace, "freeBytes" | "unusedBytes">,
  bytes: number,
): number {
  return freeBytes - bytes - Math.max(0, bytes - unusedBytes);
}

/**
 * The most bytes that may be added so that `kept` bytes stay free. `logBytes`: space that the log has already. Negative
 * space has no room.
 */
export function diskRoomBytes(
  { freeBytes, unusedBytes }: Pick<DiskSpace, "freeBytes" | "unusedBytes">,
  kept: number,
  logBytes: number,
): number {
  const left = freeBytes - kept;
  if (left < 0) return 0;
  const one = Math.min(unusedBytes, logBytes) + left;
  return Math.min(one, (left + unusedBytes + logBytes) / 2);
}
