/**
 * Records to which server a data directory belongs. The identity is written only once: a store is then never served
 * under another ID, and a copy never runs beside its original. The file contains its own inode number, which a copy
 * does not have.
 */
import {
  closeSync,
  fstatSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  statSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { BatonError, systemCallErrorReason } from "../../base/errors.ts";
import { refuseLinksOfOthers } from "../../base/support/open_output.ts";
import { shellQuoteIfNeeded } from "../../base/support/shell_quote.ts";
import { flushPath } from "../../base/storage/durable_file.ts";
import { hostname } from "node:os";
import { topicDatabaseName } from "../store/thread/topic_store_messages.ts";

const fileName = "server_id";

interface DataDirClaim {
  readonly id: string;
  /** The inode number of the file itself; null in a backup. */
  readonly inode: string | null;
}

export function makeServerDataDir(dataDir: string): void {
  try {
    refuseLinksOfOthers(dataDir);
    mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  } catch (thrown) {
    throw new BatonError(
      "CANNOT_CREATE",
      `Cannot create the data directory ${dataDir}: ${systemCallErrorReason(thrown)}`,
      {
        cause: thrown,
      },
    );
  }
}

/** Returns true if there is neither a store nor an identity in the directory, or no directory. */
export function isNewServerDataDir(dataDir: string): boolean {
  return [fileName, topicDatabaseName].every((name) => {
    try {
      statSync(join(dataDir, name));
      return false;
    } catch (thrown) {
      return (thrown as NodeJS.ErrnoException).code === "ENOENT"; // the opening reports any other failure
    }
  });
}

/**
 * Checks the identity of an open store, and sets it if there is none. If `wasMoved` is true, the user guarantees that
 * no other copy of this store is used. Throws CONFIG if the directory belongs to another server or is a copy, or IO if
 * the file cannot be read or written.
 */
export function claimServerDataDir(dataDir: string, id: string, options: { readonly wasMoved: boolean }): void {
  if (!checkServerDataDir(dataDir, id, options)) writeClaim(dataDir, id, { isBackup: false });
}

/**
 * Checks the identity of an open store, and changes nothing. Returns false if the identity must be written. Throws
 * CONFIG if the directory belongs to another server or is a copy, or IO if the file cannot be read.
 */
export function checkServerDataDir(dataDir: string, id: string, { wasMoved }: { readonly wasMoved: boolean }): boolean {
  const claim = readClaim(dataDir);
  if (claim !== null && claim.id !== id) {
    throw new BatonError(
      "CONFIG",
      `Cannot serve ${dataDir} as "${id}": it belongs to the server "${claim.id}"`,
    );
  }
  if (claim !== null && claim.inode === inodeOf(dataDir)) return true;
  if (claim !== null && !wasMoved) {
    throw new BatonError(
      "CONFIG",
      `Cannot serve ${dataDir}: it is a copy or a backup of the data of "${id}". ` +
        "If the original is never used again, start it once with: " +
        `baton pubsub server --id ${shellQuoteIfNeeded(id)} --data-dir ${shellQuoteIfNeeded(dataDir)} --moved`,
    );
  }
  return false;
}

/** Marks the copy `target` as a backup. Servers open it only with `--moved`. */
export function markStoreAsBackup(dataDir: string, target: string): void {
  const claim = readClaim(dataDir);
  if (claim !== null) writeClaim(target, claim.id, { isBackup: true });
}

function writeClaim(dataDir: string, id: string, { isBackup }: { readonly isBackup: boolean }): void {
  const path = join(dataDir, fileName);
  try {
    const file = openSync(`${path}.new`, "w", 0o600);
    const claim: DataDirClaim = { id, inode: isBackup ? null : String(fstatSync(file, { bigint: true }).ino) };
    writeSync(file, `${JSON.stringify(claim)}\n`);
    fsyncSync(file);
    closeSync(file);
    renameSync(`${path}.new`, path);
    flushPath(dataDir);
  } catch (thrown) {
    throw new BatonError("IO", `Cannot write ${path}: ${systemCallErrorReason(thrown)}`, { cause: thrown });
  }
}

/** Reads the identity of a directory. Returns null if the directory has none yet. */
function readClaim(dataDir: string): DataDirClaim | null {
  const path = join(dataDir, fileName);
  try {
    const { id, inode } = JSON.parse(readFileSync(path, "utf8")) as Record<string, unknown>;
    if (typeof id === "string") return { id, inode: typeof inode === "string" ? inode : null };
    throw new Error("it names no server");
  } catch (thrown) {
    if ((thrown as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw new BatonError("IO", `Cannot read ${path}: ${systemCallErrorReason(thrown)}`, { cause: thrown });
  }
}

function inodeOf(dataDir: string): string {
  const file = openSync(join(dataDir, fileName), "r");
  try {
    return String(fstatSync(file, { bigint: true }).ino);
  } finally {
    closeSync(file);
  }
}

/**
 * Returns a text that identifies an existing data directory. Two processes never have the same directory open, and a
 * copy has another text.
 */
export function identifyServerDataDir(dataDir: string): string {
  const { dev, ino } = statSync(dataDir, { bigint: true });
  return `${hostname()} ${machineId()} ${dev}:${ino}`;
}

/** Returns systemd's machine ID, if there is one; otherwise the host name. Two machines may have the same host name. */
export function machineId(): string {
  try {
    return readFileSync("/etc/machine-id", "utf8").trim();
  } catch {
    return "-";
  }
}
