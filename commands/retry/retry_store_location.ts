/** The name and the folder of a message store. */
import { join, resolve } from "node:path";
import { addOriginToErrors, type ConfigSources } from "../../src/config/resolve_settings.ts";
import { retryStoreSettings } from "../../src/config/retry_settings.ts";
import type { SettingValues } from "../../src/config/setting.ts";
import { BatonError } from "../../src/errors.ts";
import { homeInDatabase } from "../../src/keeper/lifecycle/keeper_location.ts";
import { userId } from "../../src/keeper/lifecycle/safe_folder.ts";

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
  if (!/^[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}$/.test(name)) {
    return addOriginToErrors("retryName", retryStoreSettings.retryName, sources, () => {
      const wanted = "1 to 64 letters, digits, dots, dashes and underscores, not starting with a dot";
      throw new BatonError("USAGE", `"${name}" is not a valid name of a message store: use ${wanted}`);
    });
  }
  if (retryStore !== undefined) return { name, folder: resolve(retryStore) };
  const home = homeInDatabase(userId(), "/etc/passwd");
  if (home?.startsWith("/") && home !== "/") return { name, folder: join(home, ".local/state/baton/retry", name) };
  throw new BatonError("CONFIG", "This user has no home directory in the user database: name a folder with --store");
}
