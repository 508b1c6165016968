/**
 * Finds environment variables `BATON_…` that baton does not know. They are usually misspelled settings, which have no
 * effect. Pure.
 */
import { didYouMean } from "../support/did_you_mean.ts";
import { lockCommandVariables, messageCommandVariables } from "./child_variables.ts";
import { stateFolderVariables } from "../support/home_folder.ts";
import { isPerSectionKey, type SettingTable, settingVariableName } from "./setting.ts";

/** Variables that mark baton's own processes, and variables of this project's scripts and tests. */
const otherVariables = [
  "BATON_KEEPER_PROCESS",
  "BATON_HOLDER_PROCESS",
  "BATON_BINARY",
  "BATON_BUILD_COMMIT",
  "BATON_BUILD_DATE",
  "BATON_BUILD_PLATFORM",
  "BATON_DOSE",
  "BATON_PEERS_DIR",
  "BATON_REQUIRE_PEERS",
  "BATON_ZOOKEEPER",
  "BATON_SEED",
  "BATON_WRITE_GOLDEN",
];

/**
 * Returns a sentence for each unknown variable in `env`, sorted by name. The sentence never contains the value, which
 * may be a secret. If `onlySimilar` is true, reports only variables that resemble a setting, because others may belong
 * to another program.
 */
export function describeUnknownVariables(
  env: Readonly<Record<string, string | undefined>>,
  settings: SettingTable,
  { onlySimilar = false } = {},
): string[] {
  const given = Object.keys(env).filter((name) => name.startsWith("BATON_"));
  if (given.length === 0) return [];
  const settingVariables = Object.values(settings)
    .flatMap(({ key }) => key === undefined || isPerSectionKey(key) ? [] : [settingVariableName(key)]);
  const known = new Set([
    ...settingVariables,
    ...Object.keys(lockCommandVariables),
    ...Object.keys(messageCommandVariables),
    ...Object.keys(stateFolderVariables),
    ...otherVariables,
  ]);
  return given.filter((name) => !known.has(name)).sort().flatMap((name) => {
    const suggestion = didYouMean(name, settingVariables);
    return onlySimilar && suggestion === "" ? [] : `${name}: baton has no such variable${suggestion}`;
  });
}
