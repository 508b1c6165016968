/** Runs the server role until a signal, or until it cannot go on. */
import { resolve } from "node:path";
import process from "node:process";
import { processSignals } from "../../src/process/supervise/signal_source.ts";
import { serveStatusPage } from "../../src/terminal/status_page.ts";
import { dieOf, listenForStops } from "../../src/process/supervise/stop_signals.ts";
import { connect } from "../../src/zookeeper/zookeeper_client.ts";
import { BatonError } from "../../src/errors.ts";
import { checkName } from "../../src/pubsub/client/client_limits.ts";
import { PubsubPath } from "../../src/pubsub/ownership/pubsub_path.ts";
import type { StoreOptions } from "../../src/pubsub/store/store_options.ts";
import { TopicServer } from "../../src/pubsub/server/topic_server.ts";
import { formatAddress } from "../../src/sockets/connection.ts";
import { systemClock } from "../../src/support/clock.ts";
import { counted } from "../../src/support/text.ts";
import { coordinationOf, reach } from "../../src/coordination/connect/coordination_servers.ts";
import { type ExitCode, exitCodes } from "../exit_codes.ts";
import { checkListenAddress } from "../listen_address.ts";
import { pubsubServerSettings, pubsubServiceSettings } from "../../src/config/pubsub_settings.ts";
import { checkAdvertised } from "./advertised.ts";
import { ConnectionLog, type PresenceOptions } from "./presence_log.ts";
import type { ServerCall } from "./server.ts";
import { serverHealth, serverMetrics } from "./server_metrics.ts";
import { serviceSecurity } from "./service_security.ts";
import { checkServerFlags } from "./server_args.ts";
import { type ServiceLog, serviceLog } from "./service_log.ts";

export async function runServer(call: ServerCall): Promise<ExitCode> {
  const { values, sources, io } = call;
  const { id, dataDir } = placeOf(call);
  checkServerFlags("", sources.flags);
  checkAddresses(call);
  process.umask(0o077);
  const log = serviceLog("server", { io, format: values.log, quiet: values.quiet });
  const place = coordinationOf(values, sources);
  const security = serviceSecurity(values);
  const stopping = new AbortController();
  const { promise: asked, resolve: stop } = Promise.withResolvers<void>();
  const unlisten = listenForStops(processSignals(), systemClock(), {
    first: (signal) => {
      stopping.abort(new BatonError("NOT_HELD", `${signal} came while the server started`));
      log.say("info", "stopping", `${signal}: finishes what is under way; a second one ends it at once`, { signal });
      stop();
    },
    again: (signal) => void dieOf(signal),
  });
  try {
    await using server = await TopicServer.start({
      id,
      dataDir,
      wasMoved: values.moved,
      listen: values.pubsubServerListen,
      advertise: values.pubsubServerAdvertise,
      path: new PubsubPath(place.root),
      connect: (signal) => connect({ ...place.connect, signal }),
      clock: systemClock(),
      store: storeOptionsOf(values),
      limits: { connectionsMax: values.pubsubMaxConnections, inputBytesMax: values.pubsubMaxIncomingBytes },
      security: security === undefined ? undefined : { server: security.inner, client: security.dialing },
      onProblem: log.problem,
      onDraining: (isDraining) => sayDraining(log, id, isDraining),
    }, stopping.signal);
    await using page = values.pubsubMetricsListen === undefined
      ? null
      : await serveStatusPage(values.pubsubMetricsListen, {
        health: () => serverHealth(server),
        metrics: () => serverMetrics(server),
      });
    if (page !== null) log.say("info", "metrics", `/healthz and /metrics are at ${formatAddress(page.address)}`);
    log.say("info", "serving", `"${id}" serves ${dataDir} at ${server.endpoint}, for ${reach[place.scope]}`, {
      id,
      endpoint: server.endpoint,
      data_dir: dataDir,
      pid: process.pid,
    });
    await untilAsked(server, asked, new ConnectionLog(log, id, presenceOf(server, place.servers)));
    const kept = await server.leave({ withinMs: values.pubsubDrainTimeout, handOff: values.handOff });
    log.say(
      "info",
      "left",
      `"${id}" has left; ${counted(kept.length, "topic")} ${kept.length === 1 ? "stays" : "stay"} with it`,
      { id, topics: kept.length },
    );
    return exitCodes.SUCCESS;
  } catch (thrown) {
    if (stopping.signal.aborted && thrown === stopping.signal.reason) return exitCodes.SUCCESS;
    throw thrown;
  } finally {
    unlisten();
  }
}

async function untilAsked(server: TopicServer, asked: Promise<void>, presence: ConnectionLog): Promise<void> {
  using _ = presence;
  await Promise.race([asked, server.ended]);
}

function presenceOf(server: TopicServer, servers: string): PresenceOptions {
  const presence = {
    isConnected: () => server.isRegistered,
    lost: `serves nobody until the coordination service at ${servers} answers: its lease has ended`,
    found: "has its lease, and serves again",
  };
  return { presence, clock: systemClock() };
}

function sayDraining(log: ServiceLog, id: string, isDraining: boolean): void {
  const sentence = isDraining ? "is given no new topics until it is started again" : "takes new topics again";
  log.say("info", isDraining ? "draining" : "taking", `"${id}" ${sentence}`, { id });
}

function storeOptionsOf(values: ServerCall["values"]): Partial<StoreOptions> {
  return {
    maxPending: values.pubsubMaxPending ?? null,
    maxTopicBytes: values.pubsubMaxTopicSize ?? null,
    maxDiskBytes: values.pubsubMaxDiskSize ?? null,
    retainMessages: values.pubsubRetainMessages ?? null,
    retainBytes: values.pubsubRetainSize ?? null,
    retainMs: values.pubsubRetainAge ?? null,
  };
}

function placeOf({ values }: ServerCall): { id: string; dataDir: string } {
  const { pubsubServerId: id, pubsubDataDir: dataDir } = values;
  const example = "as in: baton pubsub server --id s1 --data-dir ./s1";
  if (id === undefined) throw new BatonError("USAGE", `baton pubsub server needs --id, ${example}`);
  if (dataDir === undefined) throw new BatonError("USAGE", `baton pubsub server needs --data-dir, ${example}`);
  checkName("server id", id);
  return { id, dataDir: resolve(dataDir) };
}

/** Throws USAGE or CONFIG. */
function checkAddresses({ values, sources }: ServerCall): void {
  const { pubsubServerListen: listen, pubsubServerAdvertise: advertise } = pubsubServerSettings;
  checkAdvertised(
    { name: "pubsubServerListen", setting: listen, value: [values.pubsubServerListen] },
    { name: "pubsubServerAdvertise", setting: advertise, value: values.pubsubServerAdvertise },
    sources,
  );
  const { pubsubMetricsListen } = pubsubServiceSettings;
  checkListenAddress("pubsubMetricsListen", pubsubMetricsListen, values.pubsubMetricsListen, sources);
}
