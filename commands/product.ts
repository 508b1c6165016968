/**
 * Defines the parts that a product provides to the program. At the start baton reads only the names of the commands,
 * and loads every other part when it is needed.
 */
import type { ConfigFile, ConfigSources } from "../src/base/config/resolve_settings.ts";
import type { Setting, SettingTable, SettingValues } from "../src/base/config/setting.ts";
import type { DatabaseAddress } from "../src/base/postgres/database_address.ts";
import type { ExitCode } from "../src/base/exit_codes.ts";
import type { PrimaryConnection } from "../src/base/postgres/primary_connection.ts";
import type { Finding } from "../src/base/rows/finding.ts";
import type { CoordinationObjectDetails, CoordinationObjectKind } from "../src/base/rows/object_row.ts";
import type { MetricsProcessKind } from "../src/base/rows/process_row.ts";
import type { RowChanges, RowKind, RowSnapshot } from "../src/base/rows/row_kinds.ts";
import type { Clock } from "../src/base/support/clock.ts";
import type { JsonFields } from "../src/base/support/json_fields.ts";
import type { Io } from "../src/base/terminal/io.ts";
import type { Metric } from "../src/base/terminal/metrics_text.ts";
import type { CoordinationServers } from "../src/coordination/connect/coordination_servers.ts";
import type { InteropRecipe } from "../src/coordination/nodes/interop_node_names.ts";
import type { connectionSettings } from "../src/coordination/settings/coordination_settings.ts";
import type { ZooKeeper } from "../src/protocols/zookeeper/zookeeper.ts";
import type { CommandLoaders, CompletableNameKind } from "./command.ts";
import type { HelpPage } from "./help_page.ts";

export interface Product {
  readonly name: string;
  readonly commands: CommandLoaders;
  /** The commands that only baton itself starts, by the first word of the command line. */
  readonly internalCommands?: ReadonlyMap<string, (io: Io) => Promise<ExitCode>>;
  settings(): Promise<ProductSettings>;
  checks(): Promise<ProductChecks>;
  completions?(): Promise<ProductCompletions>;
  help(): Promise<ProductHelp>;
  doctor(): Promise<ProductDoctor>;
  view(): Promise<ProductView>;
}

/**
 * The settings of a product that files and variables can set. A setting that is only a flag is declared with its
 * command.
 */
export interface ProductSettings {
  readonly all: SettingTable;
  /** Further settings that only a file may contain. */
  readonly fileOnly?: SettingTable;
}

export interface AllProductSettings {
  /** The settings that variables and the command line of `baton config` can set. */
  readonly all: SettingTable;
  /** The settings that a file may contain. */
  readonly inFiles: SettingTable;
}

/**
 * Checks the values of settings for `baton config check`. Other commands check a value only when they use it. Key files
 * are not checked, because they exist only on the machine that uses them.
 */
export interface ProductChecks<S extends SettingTable = SettingTable> {
  readonly settings: S;
  /** Checks of single values. Each check throws if the value is invalid. */
  readonly values: { readonly [Name in keyof S]?: (value: NonNullable<SettingValues<S>[Name]>) => void };
  /**
   * Returns checks of values that depend on each other. Each check throws USAGE or CONFIG with the place of a value.
   */
  together?(values: SettingValues<S>, sources: ConfigSources): readonly (() => unknown)[];
}

/** The functions with which a shell completes names of each kind. */
export type ProductCompletions = {
  readonly [Kind in CompletableNameKind]?: {
    /** Returns the names that the configuration files contain. */
    configured?(files: readonly ConfigFile[]): readonly string[];
    list(zk: ZooKeeper, root: string): Promise<string[]>;
  };
};

export interface ProductHelp {
  /** The commands, grouped by purpose, in the order of the overview. */
  readonly families: readonly CommandFamily[];
  readonly topics?: Readonly<Record<string, () => HelpPage>>;
}

export interface CommandFamily {
  readonly heading: string;
  /** The full names of the commands. A group of commands, such as `pubsub`, stands for all of its commands. */
  readonly names: readonly string[];
}

export interface ProductDoctor<S extends SettingTable = SettingTable> {
  /** The options that this product adds to `doctor`. */
  readonly settings: S;
  /** Returns the check of this product's nodes. Throws USAGE for unknown names. */
  inspection?(names: readonly string[], values: SettingValues<S & typeof connectionSettings>): InspectProductNodes;
  /** Returns the databases that the settings name. Throws USAGE or CONFIG for invalid settings. */
  databases?(values: SettingValues<S>, sources: ConfigSources): readonly CheckedDatabase[];
  /** Checks a database, which may belong to another product. */
  inspectDatabase?(connection: PrimaryConnection, database: CheckedDatabase): Promise<readonly Finding[]>;
}

export type InspectProductNodes = (zk: ZooKeeper, place: CoordinationServers) => Promise<NodeInspection>;

export interface NodeInspection {
  readonly counts: { readonly locks?: number; readonly elections?: number };
  readonly findings: readonly Finding[];
}

export interface CheckedDatabase {
  /** The URL of the database, without secrets. */
  readonly where: string;
  readonly address: DatabaseAddress;
  /** If true, `doctor` reports a problem if commits do not wait for a standby of the database. */
  readonly requiresSync: boolean;
}

/** Gives the rows (locks, topics …) of a product to `who`, `ls`, `metrics` and `ui`. */
export interface ProductView<S extends SettingTable = SettingTable, P extends SettingTable = SettingTable> {
  /** The kinds of rows that the product has. */
  readonly kinds: readonly RowKind[];
  /** The options of `ls` and `ui` that name what to read. */
  readonly settings: S;
  readonly pageSettings: P;
  /** The kinds of the product's processes that serve /metrics. */
  readonly processes: readonly MetricsProcessKind[];
  /** Returns the addresses of /metrics in the configuration. */
  metricsAddresses(values: SettingValues<S>): readonly (string | undefined)[];
  /** Opens the source of the rows. Rejects with USAGE or CONFIG. */
  open(call: ProductViewCall<S>): Promise<RowSource>;
  /** Returns the requests of the page that the product answers. `source` is the result of `open`. */
  page?(call: ProductViewCall<S & P>, source: RowSource): Promise<UiPageRequests>;
  metrics?(options: ProductMetricsOptions): Promise<(zk: ZooKeeper) => Promise<Metric[]>>;
}

export interface ProductViewCall<S extends SettingTable = Record<never, never>> {
  readonly values: SettingValues<S> & SettingValues<typeof connectionSettings>;
  readonly sources: ConfigSources;
}

export interface ProductMetricsOptions {
  readonly root: string;
  /** How many names of each kind get a label of their own. The others are counted together. */
  readonly namesMax: number;
  readonly clock: Clock;
}

export interface RowSource extends AsyncDisposable {
  /** Reads rows. Rejects if the coordination service fails; other failures are in `problems` of the reading. */
  read(zk: ZooKeeper, request: RowRequest): Promise<RowSnapshot>;
  /** Yields changed rows until the signal aborts. If a source has no `follow`, `read` is called at intervals. */
  follow?(zk: ZooKeeper, options: FollowRowsOptions): AsyncIterable<RowChanges>;
  details?(zk: ZooKeeper, object: RequestedObject): Promise<CoordinationObjectDetails>;
  /** Returns the kinds of the objects that have this name now. */
  find?(zk: ZooKeeper, name: string): Promise<readonly CoordinationObjectKind[]>;
}

export interface RowRequest {
  readonly kinds: readonly RowKind[];
  /** If true, unused objects are listed, too. */
  readonly all: boolean;
  /** If true, holders and waiters are read, too. */
  readonly long: boolean;
  readonly signal: AbortSignal;
  /** If set, only the locks of another library at or below this path are read. */
  readonly interop?: { readonly recipe: InteropRecipe; readonly path: string };
}

export interface RequestedObject {
  readonly kind: CoordinationObjectKind;
  readonly name: string;
  /** If set, `name` is the path of a lock of this other library. */
  readonly recipe?: InteropRecipe | undefined;
}

export interface FollowRowsOptions {
  readonly signal: AbortSignal;
  readonly clock: Clock;
  /** How long changes are gathered before they are read, in milliseconds. */
  readonly gatherMs: number;
}

/** The requests of the page of `ui` that a product answers. */
export interface UiPageRequests {
  readonly answers: Readonly<Record<string, PageAnswer>>;
  /** The functions that read the request of an action, by the name of the action. */
  readonly actions: Readonly<Record<string, ReadUiActionRequest>>;
}

export type PageAnswer = (query: URLSearchParams, context: PageContext) => Promise<unknown>;

/**
 * Reads the request of an action. `by` is the user who requests the action. Throws an HttpError if the request is
 * invalid.
 */
export type ReadUiActionRequest = (
  body: JsonFields,
  context: PageContext & { readonly by: string },
) => RequestedUiAction;

export interface PageContext {
  /** Returns the session. Throws if no coordination server responds now. */
  readonly zk: () => ZooKeeper;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

export interface RequestedUiAction {
  /** The action and its target, for messages, such as `break lock "nightly"`. */
  readonly what: string;
  /** The name that the user must have typed to confirm the action. */
  readonly mustType?: string;
  /** Performs the action. Resolves with the result as a sentence. */
  readonly run: () => Promise<string>;
}

/**
 * Returns the setting without its flag. A view uses it, because a view reads the setting only from files and variables.
 */
export function withoutFlag<T>({ flag: _flag, ...declaration }: Setting<T>): Setting<T> {
  return declaration;
}

export function defineView<S extends SettingTable, P extends SettingTable>(view: ProductView<S, P>): ProductView {
  return view as unknown as ProductView;
}

export function defineDoctor<S extends SettingTable>(doctor: ProductDoctor<S>): ProductDoctor {
  return doctor as unknown as ProductDoctor;
}

export function defineProductChecks<S extends SettingTable>(checks: ProductChecks<S>): ProductChecks {
  return checks as unknown as ProductChecks;
}
