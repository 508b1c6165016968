/**
 * `baton keeper`: runs the keeper in the foreground, verifies its data, or backs up its data. Other commands can start
 * a keeper on demand.
 */
import { join, resolve } from "node:path";
import { ownSignalSource } from "../../../src/base/process/supervise/signal_source.ts";
import { createProcessLog } from "../../../src/base/terminal/process_log.ts";
import type { Log } from "../../../src/base/support/log.ts";
import type { HttpService } from "../../../src/base/http/serve_http.ts";
import { addOriginToErrors, type ConfigSources } from "../../../src/base/config/resolve_settings.ts";
import { flagSetting, type SettingTable, type SettingValues, toggleSetting } from "../../../src/base/config/setting.ts";
import { keeperSettings, logSettings } from "../../../src/coordination/settings/command_settings.ts";
import { connectionSettings } from "../../../src/coordination/settings/coordination_settings.ts";
import { textType } from "../../../src/base/config/value_types.ts";
import { BatonError } from "../../../src/base/errors.ts";
import { type Keeper, startKeeper } from "../../../src/coordination/keeper/lifecycle/start_keeper.ts";
import {
  createKeeperFolders,
  type KeeperLocation,
  machineKeeperSocketPath,
} from "../../../src/coordination/keeper/lifecycle/keeper_location.ts";
import { checkSafeFolder, foldersToCheckAbove } from "../../../src/coordination/keeper/lifecycle/safe_folder.ts";
import { type Address, formatAddress } from "../../../src/base/sockets/connection.ts";
import { TlsFiles } from "../../../src/base/sockets/tls_files.ts";
import { didYouMean } from "../../../src/base/support/did_you_mean.ts";
import { BlockingWorkProgress, type ProgressCall, progressSettings } from "../../../src/base/terminal/progress.ts";
import { defineCommand, findGivenFlag } from "../../command.ts";
import { ownKeeperLocation } from "../../../src/coordination/connect/coordination_servers.ts";
import { type ExitCode, exitCodes } from "../../../src/base/exit_codes.ts";
import {
  checkListenAddress,
  parseListenAddressFlag,
  planStatusPageSocket,
  refuseUnprotectedSockets,
} from "../../../src/base/config/listen_address.ts";
import { type KeeperLimitValues, parseKeeperLimits } from "../../../src/coordination/keeper/lifecycle/limits_flag.ts";
import type { KeeperVerifyJson } from "../../json_shapes/machine_shapes.ts";
import { type Io, printJson } from "../../../src/base/terminal/io.ts";
import type { WorkProgress } from "../../../src/base/support/work_progress.ts";
import { describeWhoReachesSockets } from "../../../src/base/sockets/socket_reach.ts";

const settings = {
  dataDir: flagSetting("--data-dir", textType("folder"), {
    help: "folder of the data; only one keeper at a time can use it",
    unset: "`keeper.dir`, or the folder of this user's keeper",
  }),
  listen: keeperSettings.keeperListen,
  insecure: keeperSettings.keeperInsecure,
  tlsCert: keeperSettings.keeperTlsCert,
  tlsKey: keeperSettings.keeperTlsKey,
  tlsCa: keeperSettings.keeperTlsCa,
  sessionTimeoutMax: keeperSettings.keeperSessionTimeoutMax,
  limit: keeperSettings.keeperLimits,
  idleExit: keeperSettings.keeperIdleExit,
  metricsListen: keeperSettings.keeperMetricsListen,
  ...logSettings,
  onDemand: toggleSetting("--on-demand", {
    basic: false,
    help: "run as a keeper that a command has started: log little, exit if another keeper serves",
  }),
  json: toggleSetting("--json", { help: "verify: print one JSON object" }),
  ...progressSettings,
  keeperDir: connectionSettings.keeperDir,
} satisfies SettingTable;

/** Settings that `verify` and `backup` reject. */
const { dataDir: _dataDir, json: _json, keeperDir: _keeperDir, progress: _progress, ...flagsOfServing } = settings;

export const keeperCommand = defineCommand({
  name: "keeper",
  summary: "serve ZooKeeper's protocol from this machine alone",
  usage: "[verify|backup FILE] [options]",
  details: [
    "Commands without --servers start this user's keeper automatically; it ends after some minutes without " +
    "sessions. Start it yourself to serve other users or other machines. Acknowledged changes are on the disk and " +
    "survive kill -9. It is one process on one machine; use a ZooKeeper ensemble if that is not enough.",
    "verify reads all data and checks it for damage (exit 74). backup writes a snapshot to " +
    "a new file; to restore it, put it into an empty data folder as keeper.sqlite. Both work while a keeper runs.",
  ],
  examples: [
    [
      "baton keeper --data-dir /var/lib/baton --listen unix:/run/baton/keeper.sock",
      "as root, for all users of the machine",
    ],
    ["baton keeper --data-dir ./data --listen 127.0.0.1:2181", "for ZooKeeper clients on this machine"],
    [
      "baton keeper --data-dir ./data --metrics-listen :9182 --log json",
      "with /healthz and /metrics for this machine's monitoring, and a log for programs",
    ],
    ["baton keeper verify --data-dir ./data", "check the data for damage; exit 74 if there is any"],
    ["baton keeper backup ./keeper.sqlite.copy", "a snapshot of this user's keeper, also while it runs"],
  ],
  settings,
  completes: ["verify", "backup"],
  forms: { verify: { refuses: flagsOfServing }, backup: { refuses: { ...flagsOfServing, json: settings.json } } },
  runsNothing: true,
  isService: true,
  run: ({ values, names, sources, io }) => {
    const location = values.dataDir === undefined
      ? ownKeeperLocation(values, sources)
      : locationOf(resolve(values.dataDir));
    if (values.json && names[0] !== "verify") throw new BatonError("USAGE", "--json is only for baton keeper verify");
    if (names.length > 0) return runDataCommand(names, location, { io, values, given: sources.flags });
    const log = keeperLog(io, { format: values.log, isOnDemand: values.onDemand });
    return serve({ ...values, ...serveOptionsOf(values, sources, log) }, location, log);
  },
});

type KeeperValues = SettingValues<typeof settings>;

/**
 * Checks options before the keeper starts. Throws USAGE for a wrong flag, or CONFIG for a wrong value from a file or
 * variable.
 */
function serveOptionsOf(values: KeeperValues, sources: ConfigSources, log: Log): CheckedServeOptions {
  const listen = addOriginToErrors(
    "listen",
    settings.listen,
    sources,
    () => values.listen?.map(parseListenAddressFlag),
  );
  const isTcp = listen?.some(({ kind }) => kind === "tcp") === true;
  const typed = (["tlsCert", "tlsKey", "tlsCa"] as const).find((name) => sources.flags.has(name));
  // TLS settings in a file apply only to keepers that listen on TCP. TLS flags always apply to this keeper.
  const tls = isTcp || typed !== undefined ? tlsOf(values, sources, log) : undefined;
  if (tls !== undefined && !isTcp) {
    throw new BatonError("USAGE", "--tls-cert is for TCP, but --listen has no host:port; unix sockets do not use TLS");
  }
  // Commands may start several keepers, so only a keeper that a user has started has a status page.
  const metricsListen = values.onDemand ? undefined : values.metricsListen;
  checkListenAddress("metricsListen", settings.metricsListen, metricsListen, sources);
  const protection = "--tls-cert and --tls-key";
  const sockets = (listen ?? []).map((address) => ({ address, protection, isProtected: tls !== undefined }));
  refuseUnprotectedSockets([...sockets, ...planStatusPageSocket(metricsListen)], values.insecure);
  const limits = addOriginToErrors("limit", settings.limit, sources, () => parseKeeperLimits(values.limit));
  return { listen, tls, limits, metricsListen };
}

interface CheckedServeOptions {
  readonly listen: readonly Address[] | undefined;
  readonly tls: TlsFiles | undefined;
  readonly limits: KeeperLimitValues;
  readonly metricsListen: string | undefined;
}

type ServeOptions = Omit<KeeperValues, keyof CheckedServeOptions> & CheckedServeOptions & { readonly quiet: boolean };

/** Serves until a signal arrives or the keeper has been idle for its idle time. Both count as success. */
async function serve(
  options: ServeOptions,
  location: KeeperLocation,
  log: Log,
): Promise<ExitCode> {
  process.umask(0o077);
  const dataDir = dataDirOf(location);
  if (options.dataDir === undefined) createKeeperFolders({ ...location, dir: dataDir });
  else {
    checkSafeFolder({ path: dataDir, rule: "home" });
    warnOfFoldersAbove(dataDir, log);
  }
  await using keeper = await startKeeper({
    dataDir,
    listen: options.listen ?? [{ kind: "unix", path: location.socketPath }],
    sessionTimeoutMaxMs: options.sessionTimeoutMax,
    ...options.limits, // the times among them are options of their own
    limits: options.limits,
    openSocketPaths: process.geteuid?.() === 0 ? [machineKeeperSocketPath] : [],
    log: (sentence) => log("warning", "problem", sentence),
    ...(options.tls === undefined ? {} : { tls: options.tls }),
    ...(options.idleExit === undefined ? {} : { idleExitMs: options.idleExit }),
  });
  const unlisten = ownSignalSource().listen(["SIGTERM", "SIGINT", "SIGHUP"], () => void keeper.close());
  await using page = options.metricsListen === undefined
    ? null
    : await openStatusPage(options.metricsListen, keeper, dataDir);
  if (!options.quiet) logAddresses(log, { keeper, page, isProtected: options.tls !== undefined });
  try {
    await keeper.ended;
  } finally {
    unlisten();
  }
  return exitCodes.SUCCESS;
}

/**
 * Opens the status page. Its code is loaded only here, because a keeper that a command starts must be ready quickly.
 */
async function openStatusPage(listen: string, keeper: Keeper, dataDir: string): Promise<HttpService> {
  const [{ serveStatusPage }, { keeperStatusSource }] = await Promise.all([
    import("../../../src/base/terminal/status_page.ts"),
    import("./keeper_metrics.ts"),
  ]);
  return serveStatusPage(listen, keeperStatusSource(keeper, dataDir));
}

function logAddresses(log: Log, { keeper, page, isProtected }: {
  readonly keeper: Keeper;
  readonly page: HttpService | null;
  readonly isProtected: boolean;
}): void {
  const listen = keeper.addresses.map(formatAddress).join(", ");
  const { pid } = process;
  log("info", "serving", `process ${pid} serves ${describeWhoReachesSockets(keeper.addresses, { isProtected })}`, {
    pid,
    listen,
  });
  if (page === null) return;
  const metrics = formatAddress(page.address);
  const where = describeWhoReachesSockets([page.address], { isProtected: false });
  log("info", "metrics", `/healthz and /metrics are at ${where}`, { metrics });
}

interface DataCall extends ProgressCall {
  readonly values: ProgressCall["values"] & { readonly json: boolean };
  readonly given: ReadonlyMap<string, string>;
}

async function runDataCommand(
  names: readonly string[],
  location: KeeperLocation,
  { io, values, given }: DataCall,
): Promise<ExitCode> {
  const [action, file, ...more] = names;
  if (action === "backup" && (file === undefined || file === "-")) {
    const what = file === undefined ? "missing file" : "a backup needs a file, and not stdout";
    throw new BatonError("USAGE", `${what}; example: baton keeper backup ./keeper.copy`);
  }
  const isKnown = action === "verify" || action === "backup";
  if (!isKnown || (action === "verify" ? file !== undefined : more.length > 0)) {
    const forms = "baton keeper, baton keeper verify, or baton keeper backup FILE";
    const hint = isKnown ? "" : didYouMean(action ?? "", ["verify", "backup"]);
    throw new BatonError("USAGE", `unexpected arguments; use ${forms}, not "${names.join(" ")}"${hint}`);
  }
  const flag = findGivenFlag(flagsOfServing, given);
  if (flag !== null) throw new BatonError("USAGE", `${flag} does not apply to baton keeper ${action}`);
  const dataDir = dataDirOf(location);
  const { backUpKeeperData, verifyKeeperData } = await import(
    "../../../src/coordination/keeper/storage/data_check_and_backup.ts"
  );
  const withProgress = <T>(work: (progress: WorkProgress) => T): T => {
    using progress = new BlockingWorkProgress({ io, values });
    return work(progress);
  };
  if (file !== undefined) {
    withProgress((progress) => backUpKeeperData(dataDir, file, progress));
    return exitCodes.SUCCESS;
  }
  const { nodes, sessions, zxid, bytes } = withProgress((progress) => verifyKeeperData(dataDir, progress));
  if (values.json) {
    const facts = { folder: dataDir, nodes, sessions, bytes, zxid: zxid.toString() };
    printJson<KeeperVerifyJson>(io, { version: 1, ...facts });
  } else {
    io.out(
      `${dataDir} has no damage: ${nodes} nodes, ${sessions} sessions, ${bytes} bytes, last transaction ${zxid}\n`,
    );
  }
  return exitCodes.SUCCESS;
}

function dataDirOf({ dir, socketPath }: KeeperLocation): string {
  if (dir !== null) return dir;
  throw new BatonError("CONFIG", `${socketPath} is the machine's keeper; give its data folder with --data-dir`);
}

/**
 * Warns if other users can write to a folder above the data. Such a folder is not an error, because all users of a
 * container often share its volume.
 */
function warnOfFoldersAbove(dataDir: string, log: Log): void {
  for (const folder of foldersToCheckAbove(dataDir)) {
    try {
      checkSafeFolder(folder);
    } catch (error) {
      if (!(error instanceof BatonError)) throw error;
      log("warning", "folder_of_others", error.message);
    }
  }
}

function locationOf(dir: string): KeeperLocation {
  return { dir, socketPath: join(dir, "keeper.sock"), scope: "user" };
}

function tlsOf({ tlsCa: ca, tlsCert: cert, tlsKey: key }: KeeperValues, sources: ConfigSources, log: Log) {
  const settingOf = { ca: "tlsCa", cert: "tlsCert", key: "tlsKey" } as const;
  const tls = new TlsFiles({ ca, cert, key }, {
    at: (name, read) => addOriginToErrors(settingOf[name], settings[settingOf[name]], sources, read),
    warn: (text) => log("warning", "tls", text),
  });
  if (ca !== undefined && cert === undefined) {
    return addOriginToErrors("tlsCa", settings.tlsCa, sources, () => {
      throw new BatonError("USAGE", "a CA for client certificates needs TLS: add --tls-cert and --tls-key");
    });
  }
  return cert === undefined ? undefined : tls;
}

const onDemandSentencesMax = 10_000;

/** Opens the keeper's log. If `isOnDemand` is true, no user watches the log, so its size is limited. */
function keeperLog(io: Io, { format, isOnDemand }: {
  readonly format: "text" | "json";
  readonly isOnDemand: boolean;
}): Log {
  const log = createProcessLog(io, { who: "baton keeper", format });
  let said = 0;
  return (...entry) => {
    if (!isOnDemand || ++said <= onDemandSentencesMax) log(...entry);
  };
}
