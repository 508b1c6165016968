/**
 * Runs a keeper as a process of its own, which ensure_keeper.ts starts for programs that name no servers. This module
 * replaces `baton keeper --on-demand` on machines that have the package but not the command.
 */
import process from "node:process";
import { parseArgs } from "node:util";
import { readConfigFiles } from "../base/config/config_file.ts";
import { resolveSettings } from "../base/config/resolve_settings.ts";
import { durationType } from "../base/config/value_types.ts";
import { BatonError, errorMessage } from "../base/errors.ts";
import { ownSignalSource } from "../base/process/supervise/signal_source.ts";
import { type Io, systemIo } from "../base/terminal/io.ts";
import { createProcessLog } from "../base/terminal/process_log.ts";
import { exitCodes, toExitCode } from "../base/exit_codes.ts";
import { formatAddress } from "../base/sockets/connection.ts";
import { describeWhoReachesSockets } from "../base/sockets/socket_reach.ts";
import { machineKeeperSocketPath } from "../coordination/keeper/lifecycle/keeper_location.ts";
import { parseKeeperLimits } from "../coordination/keeper/lifecycle/limits_flag.ts";
import { checkSafeFolder } from "../coordination/keeper/lifecycle/safe_folder.ts";
import { keeperSettings } from "../coordination/settings/command_settings.ts";
import { checkSqlite } from "./check_runtime.ts";
import { loadAllSettings } from "./session_servers.ts";

const sentencesMax = 10_000;

async function runKeeper(io: Io): Promise<void> {
  const text = { type: "string" } as const;
  const options = { "data-dir": text, listen: text, "idle-exit": text, "on-demand": { type: "boolean" } } as const;
  const { values: words } = parseArgs({ args: process.argv.slice(2), options, allowPositionals: true });
  const { "data-dir": dataDir = "", listen = "", "idle-exit": idleExit = "5m" } = words;
  const { env } = io;
  const sources = { flags: new Map(), env, files: await readConfigFiles(loadAllSettings, { env }) };
  const values = resolveSettings(keeperSettings, sources);
  checkSqlite("a keeper");
  const { startKeeper } = await import("../coordination/keeper/lifecycle/start_keeper.ts");
  process.umask(0o077);
  checkSafeFolder({ path: dataDir, rule: "home" });
  const log = createProcessLog(io, { who: "baton keeper", format: "text" });
  const limits = parseKeeperLimits(values.keeperLimits);
  let said = 0;
  const keeper = await startKeeper({
    dataDir,
    listen: [{ kind: "unix", path: listen.slice("unix:".length) }],
    sessionTimeoutMaxMs: values.keeperSessionTimeoutMax,
    ...limits, // the times among them are options of their own
    limits,
    openSocketPaths: process.geteuid?.() === 0 ? [machineKeeperSocketPath] : [],
    idleExitMs: durationType().parse(idleExit),
    log: (sentence) => ++said <= sentencesMax && log("warning", "problem", sentence),
  });
  log(
    "info",
    "serving",
    `process ${process.pid} serves ${
      describeWhoReachesSockets(keeper.addresses, { isProtected: true, format: formatAddress })
    }`,
  );
  ownSignalSource().listen(["SIGTERM", "SIGINT", "SIGHUP"], () => void keeper.close());
  await keeper.ended;
}

const io = systemIo();
try {
  await runKeeper(io);
} catch (thrown) {
  io.err(`baton keeper: ${errorMessage(thrown)}\n`);
  process.exitCode = thrown instanceof BatonError ? toExitCode(thrown.code) : exitCodes.INTERNAL;
}
await io.end();
process.exit();
