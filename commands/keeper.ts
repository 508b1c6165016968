/** `baton keeper`: the single-node coordination server, in the foreground. Commands that need one start it by themselves. */
import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import type { Io } from "../src/cli/io.ts";
import { setting, type SettingTable } from "../src/config/setting.ts";
import { duration, list, text, toggle } from "../src/config/value_types.ts";
import { BatonError, messageOf } from "../src/errors.ts";
import { keeperTimes, startKeeper } from "../src/keeper/keeper.ts";
import { keeperPlace, machineSocketPath, makePlace } from "../src/keeper/place.ts";
import { type Address, formatAddress, type TlsOptions } from "../src/sockets/connection.ts";
import { defineCommand } from "./command.ts";
import { type ExitCode, exitCodes } from "./exit_codes.ts";

const settings = {
  dataDir: setting(text("folder"), {
    flag: "--data-dir",
    help: "where the data is kept; it belongs to one keeper at a time",
    unset: "the place of this user's keeper",
  }),
  listen: setting(list("unix:PATH|host:port,…"), {
    flag: "--listen",
    help: "where to listen; over TCP everybody who reaches the port may use it",
    unset: "a unix socket in the data folder",
  }),
  tlsCert: setting(text("file"), {
    flag: "--tls-cert",
    help: "PEM file with the server's certificate: TCP is TLS then",
  }),
  tlsKey: setting(text("file"), { flag: "--tls-key", help: "PEM file with its private key" }),
  tlsCa: setting(text("file"), {
    flag: "--tls-ca",
    help: "PEM file with the authorities that clients' certificates must come from",
    unset: "clients need no certificate",
  }),
  tickTime: setting(duration({ minMs: 10 }), {
    flag: "--tick-time",
    help: "the grain of session timeouts",
    default: keeperTimes.tickTimeMs,
  }),
  sessionTimeoutMin: setting(duration({ minMs: 10 }), {
    flag: "--session-timeout-min",
    help: "the shortest session timeout a client gets",
    default: keeperTimes.sessionTimeoutMinMs,
  }),
  sessionTimeoutMax: setting(duration({ minMs: 10 }), {
    flag: "--session-timeout-max",
    help: "the longest session timeout a client gets",
    default: keeperTimes.sessionTimeoutMaxMs,
  }),
  containerCheck: setting(duration({ minMs: 10 }), {
    flag: "--container-check",
    help: "how often empty containers are looked for",
    default: keeperTimes.containerCheckMs,
  }),
  idleExit: setting(duration(), {
    flag: "--idle-exit",
    help: "end after so long without a session",
    unset: "stay",
  }),
  onDemand: setting(toggle(), {
    flag: "--on-demand",
    help: "be the keeper that a command starts when it needs one: say little, leave when another one is there",
    default: false,
  }),
} satisfies SettingTable;

export const keeperCommand = defineCommand({
  name: "keeper",
  summary: "serve ZooKeeper's protocol from this machine alone",
  usage: "[verify|backup FILE] [options]",
  details: [
    "Commands without --servers start this user's keeper by themselves, and it ends when nobody has used it for a while. " +
    "Run it yourself to serve other users or other machines. Everything acknowledged is on the disk and survives kill -9; " +
    "it is one process on one machine, and when that is not enough, there is ZooKeeper.",
    "verify reads all of the data and says whether it is whole, 74 when it is not. backup writes a copy as of one moment into " +
    "a new file; a keeper starts from it when it is put into an empty data folder as keeper.sqlite. Both may be done while a keeper runs.",
  ],
  examples: [
    [
      "baton keeper --data-dir /var/lib/baton --listen unix:/run/baton/keeper.sock",
      "as root, for all users of the machine",
    ],
    ["baton keeper --data-dir ./data --listen 127.0.0.1:2181", "for ZooKeeper clients on this machine"],
  ],
  settings,
  run: ({ values, names, io }) => {
    if (names.length > 0) return runDataCommand(names, values.dataDir, io);
    return runKeeperCommand({ ...values, listen: values.listen?.map(parseListen), tls: tlsOf(values) }, io);
  },
});

export interface KeeperCommandOptions {
  /** This user's own place when left out. */
  readonly dataDir?: string | undefined;
  readonly listen?: readonly Address[] | undefined;
  readonly tls?: TlsOptions | undefined;
  readonly tickTime: number;
  readonly sessionTimeoutMin: number;
  readonly sessionTimeoutMax: number;
  readonly containerCheck: number;
  readonly idleExit?: number | undefined;
  readonly onDemand: boolean;
  readonly quiet: boolean;
}

/** Serves until a signal, or until it has been idle for long enough. Both are success. */
export async function runKeeperCommand(options: KeeperCommandOptions, io: Io): Promise<ExitCode> {
  process.umask(0o077);
  const place = options.dataDir === undefined ? ownPlace(io) : namedPlace(resolve(options.dataDir));
  const say = bounded(options.onDemand, (sentence) => io.err(`baton keeper: ${sentence}\n`));
  await using keeper = await startKeeper({
    dataDir: place.dir,
    listen: options.listen ?? [{ kind: "unix", path: place.socketPath }],
    tickTimeMs: options.tickTime,
    sessionTimeoutMinMs: options.sessionTimeoutMin,
    sessionTimeoutMaxMs: options.sessionTimeoutMax,
    containerCheckMs: options.containerCheck,
    openSocketPaths: process.geteuid?.() === 0 ? [machineSocketPath] : [],
    log: say,
    ...(options.tls === undefined ? {} : { tls: options.tls }),
    ...(options.idleExit === undefined ? {} : { idleExitMs: options.idleExit }),
  });
  const stop = () => void keeper.close();
  for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"] as const) process.on(signal, stop);
  if (!options.quiet) say(`process ${process.pid} serves ${keeper.addresses.map(formatAddress).join(", ")}`);
  await keeper.ended;
  return exitCodes.SUCCESS;
}

async function runDataCommand(names: readonly string[], named: string | undefined, io: Io): Promise<ExitCode> {
  const [action, file, ...more] = names;
  if (
    !(action === "verify" && file === undefined) && !(action === "backup" && file !== undefined && more.length === 0)
  ) {
    throw new BatonError("USAGE", `baton keeper takes nothing, verify, or backup and a file, not "${names.join(" ")}"`);
  }
  const dataDir = named ?? keeperPlace(io.env).dir;
  if (dataDir === null) {
    throw new BatonError("USAGE", "The machine's keeper is not this user's own: name its --data-dir");
  }
  const { backUpData, verifyData } = await import("../src/keeper/data_check.ts");
  if (file !== undefined) {
    backUpData(dataDir, file);
    return exitCodes.SUCCESS;
  }
  const { nodes, sessions, zxid, bytes } = verifyData(dataDir);
  io.out(`${dataDir} is whole: ${nodes} nodes, ${sessions} sessions, ${bytes} bytes, last transaction ${zxid}\n`);
  return exitCodes.SUCCESS;
}

function ownPlace(io: Io): { dir: string; socketPath: string } {
  const { dir, ...place } = keeperPlace(io.env);
  if (dir === null) {
    throw new BatonError(
      "CONFIG",
      `${place.socketPath} is the machine's keeper already; name a --data-dir to start another one`,
    );
  }
  makePlace({ ...place, dir });
  return { dir, socketPath: place.socketPath };
}

function namedPlace(dir: string): { dir: string; socketPath: string } {
  return { dir, socketPath: join(dir, "keeper.sock") };
}

function tlsOf(files: { tlsCert?: string | undefined; tlsKey?: string | undefined; tlsCa?: string | undefined }) {
  const { tlsCert, tlsKey, tlsCa } = files;
  if (tlsCert === undefined && tlsKey === undefined && tlsCa === undefined) return undefined;
  if (tlsCert === undefined || tlsKey === undefined) {
    throw new BatonError("USAGE", "TLS needs both a certificate and its key: give --tls-cert and --tls-key");
  }
  const read = (file: string): string => {
    try {
      return readFileSync(file, "utf8");
    } catch (error) {
      throw new BatonError("CONFIG", `Cannot read ${file}: ${messageOf(error)}`);
    }
  };
  return { cert: read(tlsCert), key: read(tlsKey), ...(tlsCa === undefined ? {} : { ca: read(tlsCa) }) };
}

/** `unix:PATH` or `host:port`; `:port` means loopback. */
function parseListen(written: string): Address {
  if (written.startsWith("unix:/")) return { kind: "unix", path: written.slice("unix:".length) };
  const match = /^(?:\[([0-9a-fA-F:.%]+)\]|([^:/]*)):(\d{1,5})$/.exec(written);
  const port = Number(match?.[3]);
  if (match === null || port > 65535) {
    throw new BatonError(
      "USAGE",
      `Cannot listen on "${written}": write unix:/absolute/path, host:port or [address]:port`,
    );
  }
  return { kind: "tcp", host: match[1] ?? (match[2] || "127.0.0.1"), port };
}

const onDemandSentencesMax = 10_000;

/** A keeper that nobody watches must not fill the disk with what it says. */
function bounded(limited: boolean, say: (sentence: string) => void): (sentence: string) => void {
  let said = 0;
  return (sentence) => {
    if (!limited || ++said <= onDemandSentencesMax) say(`${new Date().toISOString()} ${sentence}`);
  };
}
