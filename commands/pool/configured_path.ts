/** The path of a pool from the configuration. Errors name the place of an invalid template. Pure. */
import { atOrigin, type ConfigSources } from "../../src/config/resolve_settings.ts";
import type { SettingValues } from "../../src/config/setting.ts";
import { connectionSettings, poolSettings } from "../../src/config/settings.ts";
import { defaultPoolTemplates, type PoolPath, poolPath } from "../../src/coordination/pool/pool_path.ts";

type PathValues = SettingValues<typeof poolSettings & Pick<typeof connectionSettings, "root">>;

/** An item with all words that a template can use. */
const wordyItem = "1 2 3 4 5 6 7 8 9";

/** Throws USAGE for an invalid component, and CONFIG for an invalid template with its place. */
export function configuredPoolPath(
  component: string,
  { poolComponentPath, poolItemPath, root }: PathValues,
  sources: ConfigSources,
): PoolPath {
  poolPath(component);
  const withItem = (item: string) => () => {
    const path = poolPath(component, { root, templates: { component: poolComponentPath, item } });
    path.item(wordyItem);
    return path;
  };
  // The component template is checked first, with the default item template, so that an error names the right setting.
  atOrigin("poolComponentPath", poolSettings.poolComponentPath, sources, withItem(defaultPoolTemplates.item));
  return atOrigin("poolItemPath", poolSettings.poolItemPath, sources, withItem(poolItemPath));
}

/** Checks the templates without a component. Throws CONFIG. */
export function checkPoolTemplates(values: PathValues, sources: ConfigSources): void {
  configuredPoolPath("component", values, sources);
}
