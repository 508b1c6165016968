/** The name and the folder of a message store. */
import { join, resolve } from "node:path";
import { addOriginToErrors, type ConfigSources } from "../../src/config/resolve_settings.ts";
import { retryStoreSettings } from "../../src/config/retry_settings.ts";
import type { SettingValues } from "../../src/config/setting.ts";
import { checkStoreName } from "../../src/retry/queue/store_name.ts";
import { userStateFolder } from "../../src/support/home_folder.ts";

export interface StoreLocation {
  readonly name: string;
  readonly folder: string;
}

/** Throws USAGE or CONFIG. */
export function storeLocationOf(
  values: SettingValues<typeof retryStoreSettings>,
  sources: ConfigSources,
): StoreLocation {
  const { retryName: name, retryStore } = values;
  addOriginToErrors("retryName", retryStoreSettings.retryName, sources, () => checkStoreName(name));
  if (retryStore !== undefined) return { name, folder: resolve(retryStore) };
  return { name, folder: join(userStateFolder("retry", "name a folder with --store"), name) };
}
