/** The name of a message store, and its folder or database. */
import { join, resolve } from "node:path";
import { addOriginToErrors, type ConfigSources } from "../../src/config/resolve_settings.ts";
import { retryStoreSettings } from "../../src/config/retry_settings.ts";
import type { SettingValues } from "../../src/config/setting.ts";
import { BatonError } from "../../src/errors.ts";
import { describeDatabase, isDatabaseUrl, parseDatabaseUrl } from "../../src/postgres/database_address.ts";
import type { StoreLocation } from "../../src/retry/queue/open_retry_store.ts";
import { checkStoreName } from "../../src/retry/queue/store_name.ts";
import { userStateFolder } from "../../src/support/home_folder.ts";

/** Throws USAGE or CONFIG. */
export function storeLocationOf(
  values: SettingValues<Pick<typeof retryStoreSettings, "retryName" | "retryStore">> & {
    readonly retryRequireSync?: boolean;
    readonly retryMigrate?: boolean;
    readonly retryMoved?: boolean;
  },
  sources: ConfigSources,
): StoreLocation {
  const { retryName: name, retryStore } = values;
  addOriginToErrors("retryName", retryStoreSettings.retryName, sources, () => checkStoreName(name));
  if (retryStore !== undefined && isDatabaseUrl(retryStore)) {
    const address = addOriginToErrors(
      "retryStore",
      retryStoreSettings.retryStore,
      sources,
      () => parseDatabaseUrl(retryStore, { mayHavePassword: false }),
    );
    const { retryRequireSync: requiresSync = false, retryMigrate: migrates = false, retryMoved: wasMoved = false } =
      values;
    const database = { address, requiresSync, migrates, wasMoved };
    return { name, where: describeDatabase(address), folder: null, database };
  }
  if (values.retryMoved === true) {
    throw new BatonError("USAGE", "--moved is for a store in a database, and --store names none");
  }
  const folder = retryStore === undefined
    ? join(userStateFolder("retry", "name a folder with --store"), name)
    : resolve(retryStore);
  return { name, where: folder, folder, database: null };
}
