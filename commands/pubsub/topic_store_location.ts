/** Says where a server stores its topics: in a folder of this machine, or in a database. */
import { resolve } from "node:path";
import { pubsubServerSettings, pubsubStoreSettings } from "../../src/pubsub/settings/pubsub_settings.ts";
import { addOriginToErrors, type ConfigSources } from "../../src/base/config/resolve_settings.ts";
import type { SettingTable, SettingValues } from "../../src/base/config/setting.ts";
import { BatonError } from "../../src/base/errors.ts";
import {
  type DatabaseAddress,
  describeDatabase,
  isDatabaseUrl,
  parseDatabaseUrl,
} from "../../src/base/postgres/database_address.ts";

const locationSettings = {
  pubsubDataDir: pubsubServerSettings.pubsubDataDir,
  ...pubsubStoreSettings,
} satisfies SettingTable;

export interface TopicStoreDatabase {
  readonly address: DatabaseAddress;
  /** True if a database is refused when its commits do not wait for a standby. */
  readonly requiresSync: boolean;
  /** True if the tables are created, or brought to the format of this program, before the store is opened. */
  readonly migrates: boolean;
  /** True if topics that have lost messages stay closed until an operator accepts the loss. */
  readonly stopsOnLoss: boolean;
}

export type TopicStoreLocation =
  & {
    /** The folder, or the URL of the database, as messages show it. */
    readonly where: string;
  }
  & ({ readonly dataDir: string; readonly database: null } | {
    readonly dataDir: null;
    readonly database: TopicStoreDatabase;
  });

const folderFlags = { pubsubMaxDiskSize: "--max-disk-size" } as const;
const databaseFlags = {
  pubsubRequireSync: "--require-sync",
  pubsubMigrate: "--migrate",
  pubsubOnLoss: "--on-loss",
  pubsubNoBalance: "--no-balance",
} as const;

/**
 * Returns where the topics are stored; null if neither a folder nor a database is given. If both are given, a flag
 * takes precedence over a variable or a file. Throws USAGE or CONFIG.
 */
export function readTopicStoreLocation(
  values: SettingValues<typeof locationSettings>,
  sources: ConfigSources,
): TopicStoreLocation | null {
  const { pubsubDataDir: folder, pubsubStore: url } = values;
  const { flags } = sources;
  if (folder === undefined && url === undefined) return null;
  if (folder !== undefined && url !== undefined && flags.has("pubsubDataDir") === flags.has("pubsubStore")) {
    throw new BatonError(
      "USAGE",
      `baton pubsub server: the topics are either in the folder "${folder}" (--data-dir) or in a database (--store), ` +
        "not in both",
    );
  }
  const isInDatabase = url !== undefined && (folder === undefined || flags.has("pubsubStore"));
  const [others, place] = isInDatabase ? [folderFlags, "a database"] as const : [databaseFlags, "a folder"] as const;
  for (const [name, flag] of Object.entries(others)) {
    if (flags.has(name)) throw new BatonError("USAGE", `baton pubsub server: ${flag} is not for topics in ${place}`);
  }
  if (!isInDatabase) return { where: resolve(folder ?? ""), dataDir: resolve(folder ?? ""), database: null };
  const address = addOriginToErrors("pubsubStore", pubsubStoreSettings.pubsubStore, sources, () => {
    if (isDatabaseUrl(url)) return parseDatabaseUrl(url, { mayHavePassword: false });
    throw new BatonError(
      "CONFIG",
      `"${url}" is not the URL of a database: use postgres://…, or --data-dir for a folder`,
    );
  });
  const { pubsubRequireSync: requiresSync, pubsubMigrate: migrates, pubsubOnLoss } = values;
  const database = { address, requiresSync, migrates, stopsOnLoss: pubsubOnLoss === "stop" };
  return { where: describeDatabase(address), dataDir: null, database };
}
