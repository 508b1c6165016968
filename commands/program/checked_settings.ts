/** Runs the checks of all products for `baton config check`. */
import { addOriginToErrors, type ConfigSources } from "../../src/base/config/resolve_settings.ts";
import type { SettingTable, SettingValues } from "../../src/base/config/setting.ts";
import type { Product } from "../product.ts";

/**
 * Passes each check to `collect`, which calls the check. A check throws USAGE or CONFIG with the place of the wrong
 * value.
 */
export async function checkProductSettings(
  products: readonly Product[],
  { values, sources }: { readonly values: SettingValues<SettingTable>; readonly sources: ConfigSources },
  collect: (check: () => void) => void,
): Promise<void> {
  for (const product of products) {
    const checks = await product.checks();
    for (const check of checks.together?.(values, sources) ?? []) collect(check);
    for (const [name, setting] of Object.entries<SettingTable[string]>(checks.settings)) {
      const check = checks.values[name];
      const value = values[name];
      if (check !== undefined && value !== undefined && value !== null) {
        collect(() => addOriginToErrors(name, setting, sources, () => check(value)));
      }
    }
  }
}
