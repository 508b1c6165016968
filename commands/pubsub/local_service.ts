/**
 * Defines `baton pubsub serve`, which runs a server and a proxy in one process, for the publishers and subscribers of
 * this machine.
 */
import { join } from "node:path";
import { logSettings } from "../../src/coordination/settings/command_settings.ts";
import { pubsubServerSettings, pubsubServiceSettings } from "../../src/pubsub/settings/pubsub_settings.ts";
import { type ConfigSources, resolveSettings } from "../../src/base/config/resolve_settings.ts";
import type { SettingTable, SettingValues } from "../../src/base/config/setting.ts";
import { connectionSettings } from "../../src/coordination/settings/coordination_settings.ts";
import { ownKeeperLocation, readCoordinationServers } from "../../src/coordination/connect/coordination_servers.ts";
import { BatonError } from "../../src/base/errors.ts";
import { createKeeperFolders, type KeeperLocation } from "../../src/coordination/keeper/lifecycle/keeper_location.ts";
import { socketPathBytesMax } from "../../src/base/sockets/clear_socket_path.ts";
import { userStateFolder } from "../../src/base/support/home_folder.ts";
import { ownUserName } from "../../src/base/support/user_name.ts";
import { type CommandCall, commonCommandSettings, defineCommand } from "../command.ts";
import { type ExitCode, exitCodes } from "../../src/base/exit_codes.ts";
import { pubsubProxyCommandSettings, runPubsubProxy } from "./proxy.ts";
import { runPubsubServer } from "./server.ts";
import { pubsubServerCommandSettings } from "./server_options.ts";

const { pubsubServerId: _id, pubsubServerListen: _listen, pubsubServerAdvertise: _advertise, ...storeSettings } =
  pubsubServerSettings;

const serveSettings = {
  ...storeSettings,
  pubsubDataDir: { ...storeSettings.pubsubDataDir, unset: "topics, in the folder of this user's keeper" },
  pubsubDrainTimeout: pubsubServiceSettings.pubsubDrainTimeout,
  ...logSettings,
  ...connectionSettings,
} satisfies SettingTable;

type PubsubServeCall = CommandCall<typeof serveSettings>;

export const pubsubServeCommand = defineCommand({
  name: "pubsub serve",
  summary: "run all that publishers and subscribers of this machine need: a server and a proxy",
  usage: "[options]",
  details: [
    "Runs a server and a proxy in one process, without any option. The topics are stored in the folder of this " +
    "user's keeper (--data-dir), durably; they are found again after a restart. Clients find it by themselves: baton " +
    "publish and baton subscribe need no option either. It prints a line on stderr for the server and one for the " +
    "proxy when they serve, and runs until SIGTERM, SIGINT or SIGHUP; a second signal ends it immediately.",
    "Only this user's processes reach it, by sockets in a private folder; if root has set up a keeper for all users " +
    "of the machine, all users do, by TCP on 127.0.0.1. For several machines, keys or metrics, use baton pubsub " +
    "server and baton pubsub proxy.",
  ],
  examples: [
    ["baton pubsub serve &", "then: baton subscribe news, and baton publish news hello"],
    [
      "baton pubsub serve --data-dir /srv/topics --retain-age 7d",
      "topics in another folder, messages for a week at most",
    ],
  ],
  settings: serveSettings,
  runsNothing: true,
  isService: true,
  run: runServe,
});

async function runServe(call: PubsubServeCall): Promise<ExitCode> {
  const { names: [word], values, sources, io } = call;
  if (word !== undefined) throw new BatonError("USAGE", `baton pubsub serve: unexpected argument "${word}"`);
  if (readCoordinationServers(values, sources).scope === "cluster") {
    throw new BatonError(
      "USAGE",
      `baton pubsub serve is for one machine, but the servers are ${values.servers}; ` +
        "with an ensemble start on each machine: " +
        "baton pubsub server --id ID --data-dir FOLDER --listen tcp://0.0.0.0:7001 --advertise tcp://HOST:7001 " +
        "--key FILE, and baton pubsub proxy --key FILE",
    );
  }
  const place = ownKeeperLocation(values, sources);
  if (place.dir !== null) createKeeperFolders({ ...place, dir: place.dir });
  const settings = localPubsubServiceFlags(place, values.pubsubDataDir);
  const common = { io, names: [], command: null };
  const [forServer, forProxy] = [settings.server, settings.proxy].map((flags): ConfigSources => ({
    ...sources,
    flags: new Map([...sources.flags, ...Object.entries(flags)]),
  })) as [ConfigSources, ConfigSources];
  const stop = new AbortController();
  const roles = [
    runPubsubServer(
      { ...common, sources: forServer, values: valuesOf(pubsubServerCommandSettings, forServer) },
      stop.signal,
    ),
    runPubsubProxy(
      { ...common, sources: forProxy, values: valuesOf(pubsubProxyCommandSettings, forProxy) },
      stop.signal,
    ),
  ];
  // If the server or the proxy ends, the other one is ended as well, because neither is of use alone.
  await Promise.race(roles).catch(() => {});
  stop.abort();
  const ends = await Promise.allSettled(roles);
  const failure = ends.find((end) => end.status === "rejected");
  if (failure !== undefined) throw failure.reason;
  return exitCodes.SUCCESS;
}

/** Returns all settings of the server or of the proxy, as if it had been started alone with these flags. */
function valuesOf<S extends SettingTable>(settings: S, sources: ConfigSources) {
  return resolveSettings({ ...settings, ...commonCommandSettings }, sources) as SettingValues<
    S & typeof commonCommandSettings
  >;
}

/** Returns the flags for the server and for the proxy, by setting name. Reads nothing but the user's home folder. */
export function localPubsubServiceFlags(place: KeeperLocation, dataDir: string | undefined) {
  const base = place.socketPath.replace(/\.sock$/, "");
  // A user's own service can have the ID "local". If several users share the machine's keeper, they need different IDs.
  const isOwn = place.dir !== null;
  const endpoint = (role: string) => {
    const path = `${base}.${role}.sock`;
    return isOwn && Buffer.byteLength(path) <= socketPathBytesMax ? `ipc://${path}` : "tcp://127.0.0.1:0";
  };
  const proxyListen = endpoint("proxy");
  return {
    server: {
      pubsubServerId: isOwn ? "local" : `local-${ownUserName()}`,
      pubsubDataDir: dataDir ??
        (place.dir === null ? userStateFolder("topics", "name a folder with --data-dir") : join(place.dir, "topics")),
      pubsubServerListen: endpoint("server"),
    },
    // A proxy on a port that the system chooses gets no fixed ID, because after a restart it is another proxy.
    proxy: { pubsubProxyListen: proxyListen, ...(proxyListen.startsWith("ipc:") ? { pubsubProxyId: "local" } : {}) },
  };
}
