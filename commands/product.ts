/**
 * The parts that a product provides to the program. A start reads only the names of its commands; every other part is
 * loaded when it is needed.
 */
import type { ConfigFile, ConfigSources } from "../src/base/config/resolve_settings.ts";
import type { Setting, SettingTable, SettingValues } from "../src/base/config/setting.ts";
import type { DatabaseAddress } from "../src/base/postgres/database_address.ts";
import type { ExitCode } from "../src/base/exit_codes.ts";
import type { PrimaryConnection } from "../src/base/postgres/primary_connection.ts";
import type { DoctorFinding } from "../src/base/rows/finding.ts";
import type { ObjectDetails, ObjectKind } from "../src/base/rows/object_row.ts";
import type { ProcessKind } from "../src/base/rows/process_row.ts";
import type { RowChanges, RowKind, RowReading } from "../src/base/rows/row_kinds.ts";
import type { Clock } from "../src/base/support/clock.ts";
import type { JsonFields } from "../src/base/support/json_fields.ts";
import type { Io } from "../src/base/terminal/io.ts";
import type { Metric } from "../src/base/terminal/metrics_text.ts";
import type { CoordinationServers } from "../src/coordination/connect/coordination_servers.ts";
import type { InteropRecipe } from "../src/coordination/nodes/interop_node_names.ts";
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
  completions?(): Promise<ProductCompletions>;
  help(): Promise<ProductHelp>;
  doctor(): Promise<ProductDoctor>;
  view(): Promise<ProductView>;
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

/** The rows of a product, as `who`, `ls`, `metrics` and `ui` show them. */
export interface ProductView<S extends SettingTable = SettingTable, P extends SettingTable = SettingTable> {
  /** The kinds of its rows. */
  readonly kinds: readonly RowKind[];
  /** Options of `ls` and `ui` that name what is read. */
  readonly settings: S;
  /** Further options of `ui`. */
  readonly pageSettings: P;
  /** The processes that serve /metrics. */
  readonly processes: readonly ProcessKind[];
  /** Returns the addresses at which the configuration lets processes serve /metrics. */
  metricsAddresses(values: SettingValues<S>): readonly (string | undefined)[];
  /** Opens the rows. Throws USAGE or CONFIG for settings that cannot be used. */
  open(call: ViewCall<S>): Promise<RowSource>;
  /** Returns what the page can ask for. `source` is the result of `open`. */
  page?(call: ViewCall<S & P>, source: RowSource): Promise<PageRequests>;
  /** Returns a function that reads the metrics of `baton metrics`. */
  metrics?(options: UseMetricsOptions): Promise<(zk: ZooKeeper) => Promise<Metric[]>>;
}

/** The part of a command call that names what to read. */
export interface ViewCall<S extends SettingTable = Record<never, never>> {
  readonly values: SettingValues<S> & SettingValues<typeof connectionSettings>;
  readonly sources: ConfigSources;
}

export interface UseMetricsOptions {
  readonly root: string;
  /** The most names of each kind that get their own label. */
  readonly namesMax: number;
  readonly clock: Clock;
}

/** Reads the rows of a product. */
export interface RowSource extends AsyncDisposable {
  /** Rejects if the coordination service fails; what else cannot be read becomes a problem of the reading. */
  read(zk: ZooKeeper, request: RowRequest): Promise<RowReading>;
  /** Yields rows as they change, until the signal aborts. Without it, `read` is called periodically. */
  follow?(zk: ZooKeeper, options: FollowRowsOptions): AsyncIterable<RowChanges>;
  /** Reads an object with its holders and waiters. */
  details?(zk: ZooKeeper, object: RequestedObject): Promise<ObjectDetails>;
  /** Returns the kinds of objects that are in use under a name. */
  find?(zk: ZooKeeper, name: string): Promise<readonly ObjectKind[]>;
}

export interface RowRequest {
  readonly kinds: readonly RowKind[];
  /** Also list unused objects. */
  readonly all: boolean;
  /** Also read holders and waiters. */
  readonly long: boolean;
  readonly signal: AbortSignal;
  /** Read the locks of another library at or below a path instead. */
  readonly interop?: { readonly recipe: InteropRecipe; readonly path: string };
}

export interface RequestedObject {
  readonly kind: ObjectKind;
  readonly name: string;
  /** The name is the path of a lock of this recipe. */
  readonly recipe?: InteropRecipe | undefined;
}

export interface FollowRowsOptions {
  readonly signal: AbortSignal;
  readonly clock: Clock;
  /** How long changes are gathered before they are read, in milliseconds. */
  readonly gatherMs: number;
}

/** Requests of the page of `ui` that a product answers. */
export interface PageRequests {
  /** Details, by the path of the request. */
  readonly answers: Readonly<Record<string, PageAnswer>>;
  /** Actions, by name. */
  readonly actions: Readonly<Record<string, PageAction>>;
}

export type PageAnswer = (query: URLSearchParams, context: PageContext) => Promise<unknown>;

/** Throws an HttpError for a request that cannot be understood. */
export type PageAction = (body: JsonFields, context: PageContext & { readonly by: string }) => RequestedAction;

export interface PageContext {
  /** Returns the session. Throws while no coordination server responds. */
  readonly zk: () => ZooKeeper;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

export interface RequestedAction {
  /** Action and target: `break lock "nightly"`. */
  readonly what: string;
  /** The name that the user must have typed to confirm the action. */
  readonly mustType?: string;
  /** Resolves with the result as a sentence. */
  readonly run: () => Promise<string>;
}

/** Removes the flag of a setting, which a view reads from files and variables only. */
export function withoutFlag<T>({ flag: _flag, ...declaration }: Setting<T>): Setting<T> {
  return declaration;
}

/** Keeps the types of a product's own settings. */
export function defineView<S extends SettingTable, P extends SettingTable>(view: ProductView<S, P>): ProductView {
  return view as unknown as ProductView;
}

/** Keeps the types of a product's own settings. */
export function defineDoctor<S extends SettingTable>(doctor: ProductDoctor<S>): ProductDoctor {
  return doctor as unknown as ProductDoctor;
}

/** Keeps the types of a product's own settings. */
export function defineChecks<S extends SettingTable>(checks: ProductChecks<S>): ProductChecks {
  return checks as unknown as ProductChecks;
}
