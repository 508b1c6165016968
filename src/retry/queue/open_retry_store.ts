/**
 * Opens a message store where it is: in a folder of this machine, or in a database. The code for a database is loaded
 * only if one is named.
 */
import { statSync } from "node:fs";
import type { DatabaseAddress } from "../../base/postgres/database_address.ts";
import { DirectStore } from "./sqlite/direct_store.ts";
import { readOnlyRules, type StoreRules } from "./store_rules.ts";
import { requireStoreIn } from "./sqlite/retry_database.ts";
import { RetryStore } from "./sqlite/retry_store.ts";
import type { CommandStore, RetryVerifyReport, ServiceStore, ServiceStoreOptions } from "./store_methods.ts";
import { verifyRetryStore } from "./sqlite/verify_retry_store.ts";
import type { WorkProgress } from "../../base/support/work_progress.ts";

export interface StoreDatabase {
  readonly address: DatabaseAddress;
  /** A database whose commits do not wait for a standby is refused. */
  readonly requiresSync: boolean;
  /** The tables are created, or brought to the format of this program, before the store is opened. */
  readonly migrates: boolean;
  /** The database may be in another cluster than the one in which its tables were made. */
  readonly wasMoved: boolean;
}

export type StoreLocation =
  & {
    readonly name: string;
    /** The folder, or the URL of the database, for people. */
    readonly where: string;
  }
  & ({ readonly folder: string; readonly database: null } | {
    readonly folder: null;
    readonly database: StoreDatabase;
  });

/** Rejects as DirectStore throws, and as PostgresRetryStore.open rejects. */
export async function openCommandStore(
  { name, folder, database }: StoreLocation,
  { rules = readOnlyRules, mustExist }: { readonly rules?: StoreRules; readonly mustExist: boolean },
): Promise<CommandStore> {
  if (database === null) return new DirectStore(folder, rules, { mustExist });
  const { PostgresRetryStore } = await import("./postgres/postgres_retry_store.ts");
  return await PostgresRetryStore.open({ ...database, name, rules, mustExist });
}

/**
 * Rejects with CONFIG if there is no such store. Of a store in a folder only its file is looked for, so that this does
 * not wait for other processes.
 */
export async function requireStoreAt(location: StoreLocation): Promise<void> {
  if (location.database === null) {
    if (canBeFolder(location.folder)) requireStoreIn(location.folder);
  } else await (await openCommandStore(location, { mustExist: true }))[Symbol.asyncDispose]();
}

/** False: a part of the path is a file, or not accessible, as the opening says better. */
function canBeFolder(path: string): boolean {
  try {
    statSync(path, { throwIfNoEntry: false });
    return true;
  } catch {
    return false;
  }
}

/** Rejects as the stores do. */
export async function openServiceStore(
  { name, folder, database }: StoreLocation,
  options: ServiceStoreOptions,
): Promise<ServiceStore> {
  if (database === null) return await RetryStore.open(folder, options);
  const { PostgresRetryStore } = await import("./postgres/postgres_retry_store.ts");
  return await PostgresRetryStore.open({ ...database, name, mustExist: false, ...options });
}

/** Opens the store when its rules are known. */
export function serviceStoreOpener(location: StoreLocation): (options: ServiceStoreOptions) => Promise<ServiceStore> {
  return (options) => openServiceStore(location, options);
}

/** Checks everything in a store. Rejects as `verifyRetryStore` throws. */
export async function verifyStoreAt(
  { name, folder, database }: StoreLocation,
  progress: WorkProgress,
): Promise<RetryVerifyReport> {
  if (database === null) return verifyRetryStore(folder, progress);
  const { PostgresRetryStore } = await import("./postgres/postgres_retry_store.ts");
  await using store = await PostgresRetryStore.open({ ...database, name, rules: readOnlyRules, mustExist: true });
  return await store.verify(progress);
}
