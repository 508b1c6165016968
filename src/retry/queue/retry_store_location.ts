/** Reads the name of a message store, and its folder or database. */
import { join, resolve } from "node:path";
import { addOriginToErrors, type ConfigSources } from "../../base/config/resolve_settings.ts";
import { retryLimitSettings, retryStoreSettings } from "../settings/retry_settings.ts";
import type { SettingValues } from "../../base/config/setting.ts";
import { BatonError } from "../../base/errors.ts";
import { describeDatabase, isDatabaseUrl, parseDatabaseUrl } from "../../base/postgres/database_address.ts";
import type { StoreLocation } from "./open_retry_store.ts";
import { postgresBodyBytesMax } from "./retry_store_limits.ts";
import { checkStoreName } from "./store_name.ts";
import { userStateFolder } from "../../base/support/home_folder.ts";

export function readStoreLocation(
  values: SettingValues<Pick<typeof retryStoreSettings, "retryName" | "retryStore">> & {
    readonly retryRequireSync?: boolean;
    readonly retryMigrate?: boolean;
    readonly retryMoved?: boolean;
    readonly retryMaxBody?: number;
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
    checkBodyLimit(values.retryMaxBody ?? 0, sources);
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

/** Throws USAGE or CONFIG if bodies may be too large for a store in a database. */
function checkBodyLimit(bytes: number, sources: ConfigSources): void {
  if (bytes <= postgresBodyBytesMax) return;
  const { retryMaxBody } = retryLimitSettings;
  addOriginToErrors("retryMaxBody", retryMaxBody, sources, () => {
    const [written, most] = [bytes, postgresBodyBytesMax].map(retryMaxBody.type.format);
    throw new BatonError("USAGE", `"${written}" is more than ${most}, the most in a database`);
  });
}
