/** A pool's place in the tree as the configuration has it; a template that cannot be is told with where it stands. Pure. */
import { atOrigin, type ConfigSources } from "../../src/config/resolve_settings.ts";
import type { SettingValues } from "../../src/config/setting.ts";
import { connectionSettings, poolSettings } from "../../src/config/settings.ts";
import { defaultPoolTemplates, type PoolPath, poolPath } from "../../src/coordination/pool/pool_path.ts";

type PathValues = SettingValues<typeof poolSettings & Pick<typeof connectionSettings, "root">>;

/** With every word that a template may ask for. */
const wordyItem = "1 2 3 4 5 6 7 8 9";

/** Throws USAGE for a component that cannot be one, CONFIG for a template that cannot, with the place where it stands. */
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
  // The component's first, so that the item's is not blamed for it.
  atOrigin("poolComponentPath", poolSettings.poolComponentPath, sources, withItem(defaultPoolTemplates.item));
  return atOrigin("poolItemPath", poolSettings.poolItemPath, sources, withItem(poolItemPath));
}

/** Throws CONFIG for templates that can be no component's, without any component at hand. */
export function checkPoolTemplates(values: PathValues, sources: ConfigSources): void {
  configuredPoolPath("component", values, sources);
}
