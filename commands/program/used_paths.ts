/** Finds the files, folders and sockets that the commands of this user use, for `baton version --verbose`. */
import { existsSync } from "node:fs";
import process from "node:process";
import { findUserConfigFile, readConfigFiles } from "../../src/base/config/config_file.ts";
import { type ConfigSources, resolveSetting } from "../../src/base/config/resolve_settings.ts";
import type { SettingTable } from "../../src/base/config/setting.ts";
import { BatonError } from "../../src/base/errors.ts";
import { userStateFolder } from "../../src/base/support/home_folder.ts";
import { ownKeeperLocation } from "../../src/coordination/connect/coordination_servers.ts";
import type { VersionJson } from "../json_shapes/machine_shapes.ts";

type UsedPath = NonNullable<VersionJson["paths"]>[number];

/**
 * The settings that name a place where baton keeps files. `what` describes the files, and `kind` names the default
 * folder.
 */
const placeSettings: readonly (readonly [key: string, what: string, kind: string])[] = [
  ["pubsub.server.data_dir", "topics of a server", "topics"],
  ["pubsub.state_dir", "states of publish/subscribe clients", "pubsub"],
  ["retry.store", "message store", "retry"],
];

/**
 * Returns the paths that the commands of this user use. Rejects with CONFIG if the configuration cannot be read or the
 * keeper's folder is not safe.
 */
export async function findUsedPaths(
  env: Readonly<Record<string, string | undefined>>,
  settings: SettingTable,
): Promise<UsedPath[]> {
  const sources: ConfigSources = {
    flags: new Map(),
    env,
    files: await readConfigFiles(() => settings, { env }),
    section: undefined,
  };
  const paths: UsedPath[] = [];
  const add = (what: string, path: string) => paths.push({ what, path, exists: existsSync(path) });
  const valueOf = (key: string): string | undefined => {
    const [name, setting] = Object.entries(settings).find(([, one]) => one.key === key) ?? [];
    if (name === undefined || setting === undefined) return undefined;
    const { value } = resolveSetting(name, setting, sources);
    return value === undefined || value === null ? undefined : setting.type.format(value);
  };
  add("program", process.execPath);
  add("configuration of this user", await findUserConfigFile({ env }));
  add("configuration of this machine", "/etc/baton/config.toml");
  const { dir, socketPath } = ownKeeperLocation({ keeperDir: valueOf("keeper.dir") }, sources);
  if (dir !== null) add("keeper, its data and log", dir);
  add("keeper, its socket", socketPath);
  for (const [key, what, kind] of placeSettings) {
    const path = valueOf(key) ?? stateFolder(kind);
    if (path !== null && path.startsWith("/")) add(what, path);
  }
  return paths;
}

/** Returns the default folder; null for a user without a home folder, who has to name each folder. */
function stateFolder(kind: string): string | null {
  try {
    return userStateFolder(kind, "");
  } catch (thrown) {
    if (thrown instanceof BatonError) return null;
    throw thrown;
  }
}
