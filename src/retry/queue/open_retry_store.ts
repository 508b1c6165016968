/**
 * Opens a message store in a folder of this machine, or in a database. Loads only the code
 * that the call needs.
 */
import { statSync } from "node:fs";
import type { DatabaseAddress } from "../../base/postgres/database_address.ts";
import { DirectStore } from "./sqlite/direct_store.ts";
import { readOnlyRules, type StoreRules } from "./store_rules.ts";
import { requireStoreIn } from "./sqlite/retry_database.ts";
import type { CommandStore, RetryVerifyReport, ServiceStore, ServiceStoreOptions } from "./store_methods.ts";
import type { WorkProgress } from "../../base/support/work_progress.ts";

export interface StoreDatabase {
  readonly address: DatabaseAddress;
  /** If true, refuses a database whose commits do not wait for a standby. */
  readonly requiresSync: boolean;
  /** If true, creates the tables, or changes them to the format of this program, before the store is opened. */
  readonly migrates: boolean;
  /** If true, the database may be in another cluster than the one where its tables were created. */
  readonly wasMoved: boolean;
}

export type StoreLocation =
  & {
    readonly name: string;
    /** The folder, or the URL of the database, for people to read. */
    readonly where: string;
  }
  & ({ readonly folder: string; readonly database: null } | {
    readonly folder: null;
    readonly database: StoreDatabase;
  });

/** Opens a store. Rejects with the errors of `DirectStore` or `PostgresRetryStore.open`. */
export async function openCommandStore(
  { name, folder, database }: StoreLocation,
  { rules = readOnlyRules, mustExist }: { readonly rules?: StoreRules; readonly mustExist: boolean },
): Promise<CommandStore> {
  if (database === null) return new DirectStore(folder, rules, { mustExist });
  const { PostgresRetryStore } = await import("./postgres/postgres_retry_store.ts");
  return await PostgresRetryStore.open({ ...database, name, rules, mustExist });
}

/**
 * Rejects with CONFIG if the store does not exist. For a folder, only checks that the file exists, so that other
 * processes cause no wait.
 */
export async function requireStoreAt(location: StoreLocation): Promise<void> {
  if (location.database === null) {
    if (canBeFolder(location.folder)) requireStoreIn(location.folder);
  } else await (await openCommandStore(location, { mustExist: true }))[Symbol.asyncDispose]();
}

/**
 * Returns false if a part of the path is a file or not accessible. Opening the store then reports a more precise error.
 */
function canBeFolder(path: string): boolean {
  try {
    statSync(path, { throwIfNoEntry: false });
    return true;
  } catch {
    return false;
  }
}

export async function openServiceStore(
  { name, folder, database }: StoreLocation,
  options: ServiceStoreOptions,
): Promise<ServiceStore> {
  if (database === null) return await (await import("./sqlite/retry_store.ts")).RetryStore.open(folder, options);
  const { PostgresRetryStore } = await import("./postgres/postgres_retry_store.ts");
  return await PostgresRetryStore.open({ ...database, name, mustExist: false, ...options });
}

/** Returns a function that opens the store, for a caller that knows the rules only later. */
export function serviceStoreOpener(location: StoreLocation): (options: ServiceStoreOptions) => Promise<ServiceStore> {
  return (options) => openServiceStore(location, options);
}

export async function verifyStoreAt(
  { name, folder, database }: StoreLocation,
  progress: WorkProgress,
): Promise<RetryVerifyReport> {
  if (database === null) return (await import("./sqlite/verify_retry_store.ts")).verifyRetryStore(folder, progress);
  const { PostgresRetryStore } = await import("./postgres/postgres_retry_store.ts");
  await using store = await PostgresRetryStore.open({ ...database, name, rules: readOnlyRules, mustExist: true });
  return await store.verify(progress);
}
