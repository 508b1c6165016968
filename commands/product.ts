/**
 * The parts that a product provides to the program. A start reads only the names of its commands; every other part is
 * loaded when it is needed.
 */
import type { ConfigFile, ConfigSources } from "../src/base/config/resolve_settings.ts";
import type { SettingTable, SettingValues } from "../src/base/config/setting.ts";
import type { DatabaseAddress } from "../src/base/postgres/database_address.ts";
import type { ExitCode } from "../src/base/exit_codes.ts";
import type { PrimaryConnection } from "../src/base/postgres/primary_connection.ts";
import type { DoctorFinding } from "../src/base/rows/finding.ts";
import type { Io } from "../src/base/terminal/io.ts";
import type { CoordinationServers } from "../src/coordination/connect/coordination_servers.ts";
import type { connectionSettings } from "../src/coordination/settings/coordination_settings.ts";
import type { ZooKeeper } from "../src/protocols/zookeeper/zookeeper.ts";
import type { CommandLoaders, ServerNameKind } from "./command.ts";
import type { HelpPage } from "./help_page.ts";

export interface Product {
  readonly name: string;
  readonly commands: CommandLoaders;
  /** Commands that baton itself starts, by the first word of the command line. */
  readonly internalCommands?: ReadonlyMap<string, (io: Io) => Promise<ExitCode>>;
  settings(): Promise<ProductSettings>;
  checks(): Promise<ProductChecks>;
  completions(): Promise<ProductCompletions>;
  help(): Promise<ProductHelp>;
  doctor(): Promise<ProductDoctor>;
}

/** The settings that files and variables can set. Settings that are only flags are declared with their command. */
export interface ProductSettings {
  readonly all: SettingTable;
  /** Further settings that only a file may contain. */
  readonly fileOnly?: SettingTable;
}

/** The settings of all products. */
export interface AllProductSettings {
  /** Settings that variables and the command line of `baton config` can set. */
  readonly all: SettingTable;
  /** Settings that a file may contain. */
  readonly inFiles: SettingTable;
}

/**
 * Checks of values for `baton config check`. Other commands check a value only when they use it. Key files are not
 * checked, because they exist only on the machine that uses them.
 */
export interface ProductChecks<S extends SettingTable = SettingTable> {
  readonly settings: S;
  /** Checks of single values. Each throws for an invalid value. */
  readonly values: { readonly [Name in keyof S]?: (value: NonNullable<SettingValues<S>[Name]>) => void };
  /** Returns checks of values that belong together. Each throws USAGE or CONFIG with the place of a value. */
  together?(values: SettingValues<S>, sources: ConfigSources): readonly (() => unknown)[];
}

/** How a shell completes names of each kind. */
export type ProductCompletions = {
  readonly [Kind in ServerNameKind]?: {
    /** Returns the names in the configuration files. */
    configured?(files: readonly ConfigFile[]): readonly string[];
    list(zk: ZooKeeper, root: string): Promise<string[]>;
  };
};

export interface ProductHelp {
  /** The commands in groups by purpose, in the order of the overview. */
  readonly families: readonly CommandFamily[];
  /** Topics of `baton help`, by name. */
  readonly topics?: Readonly<Record<string, () => HelpPage>>;
}

export interface CommandFamily {
  readonly heading: string;
  /** Full names; a group of commands, such as `pubsub`, stands for all of its commands. */
  readonly names: readonly string[];
}

/** The checks of `baton doctor`. */
export interface ProductDoctor<S extends SettingTable = SettingTable> {
  /** Options of `doctor`. */
  readonly settings: S;
  /** Returns the check of this product's nodes. Throws USAGE for names that the product does not know. */
  inspection?(names: readonly string[], values: SettingValues<S & typeof connectionSettings>): InspectNodes;
  /** Returns the databases that the settings name. Throws USAGE or CONFIG. */
  databases?(values: SettingValues<S>, sources: ConfigSources): readonly CheckedDatabase[];
  /** Checks a database, which may belong to another product. */
  inspectDatabase?(connection: PrimaryConnection, database: CheckedDatabase): Promise<readonly DoctorFinding[]>;
}

export type InspectNodes = (zk: ZooKeeper, place: CoordinationServers) => Promise<NodeInspection>;

export interface NodeInspection {
  /** How many objects were checked. */
  readonly counts: { readonly locks?: number; readonly elections?: number };
  readonly findings: readonly DoctorFinding[];
}

export interface CheckedDatabase {
  /** The URL without secrets. */
  readonly where: string;
  readonly address: DatabaseAddress;
  /** If true, it is a problem when commits of the database do not wait for a standby. */
  readonly requiresSync: boolean;
}

/** Keeps the types of a product's own settings. */
export function defineDoctor<S extends SettingTable>(doctor: ProductDoctor<S>): ProductDoctor {
  return doctor as unknown as ProductDoctor;
}

/** Keeps the types of a product's own settings. */
export function defineChecks<S extends SettingTable>(checks: ProductChecks<S>): ProductChecks {
  return checks as unknown as ProductChecks;
}
