/** Defines `baton pubsub proxy`, which runs a proxy until a signal arrives, or until the proxy cannot continue. */
import process from "node:process";
import {
  pubsubKeySettings,
  pubsubProxySettings,
  pubsubServiceSettings,
} from "../../src/pubsub/settings/pubsub_settings.ts";
import { BatonError, errorMessage } from "../../src/base/errors.ts";
import { type CommandCall, defineCommand } from "../command.ts";
import { type ExitCode, exitCodes } from "../../src/base/exit_codes.ts";
import { anyAbortSignal } from "../../src/base/support/abort.ts";
import { ownSignalSource, stopSignals } from "../../src/base/process/supervise/signal_source.ts";
import { serveLoggedStatusPage } from "../../src/base/terminal/status_page.ts";
import { connectToZooKeeper } from "../../src/protocols/zookeeper/zookeeper_client.ts";
import type { ZooKeeper } from "../../src/protocols/zookeeper/zookeeper.ts";
import { checkPubsubName } from "../../src/pubsub/client/client_limits.ts";
import { PubsubPath } from "../../src/pubsub/ownership/pubsub_path.ts";
import { PubsubProxy } from "../../src/pubsub/proxy/pubsub_proxy.ts";
import { type TopicDirectory, ZookeeperTopicDirectory } from "../../src/pubsub/proxy/zookeeper_directory.ts";
import { type Clock, systemClock } from "../../src/base/support/clock.ts";
import { countWithNoun } from "../../src/base/support/text.ts";
import { connectAndReportDelay } from "../../src/coordination/connect/command_session.ts";
import {
  type CoordinationServers,
  readCoordinationServers,
} from "../../src/coordination/connect/coordination_servers.ts";
import { checkServiceAddresses, describeListenEndpoints, refuseOpenPubsubSockets } from "./advertised_endpoint.ts";
import type { Log } from "../../src/base/support/log.ts";
import {
  CoordinationConnectionLog,
  type CoordinationConnectionState,
  openPubsubServiceLog,
  openPubsubServiceStop,
  serviceProblemLogger,
} from "./service_log.ts";
import { type PubsubServiceSecurity, readPubsubServiceSecurity } from "./service_security.ts";
import { type Metric, metricFactory } from "../../src/base/terminal/metrics_text.ts";
import { listeningSocketMetrics } from "./socket_metrics.ts";
import { logSettings } from "../../src/coordination/settings/command_settings.ts";
import type { SettingTable } from "../../src/base/config/setting.ts";
import { connectionSettings } from "../../src/coordination/settings/coordination_settings.ts";
import { readFileSync, statSync } from "node:fs";
import { hostname } from "node:os";
import { basename } from "node:path";
import { machineId } from "../../src/pubsub/server/server_identity.ts";

export const pubsubProxyCommandSettings = {
  ...pubsubProxySettings,
  ...pubsubKeySettings,
  ...pubsubServiceSettings,
  ...logSettings,
  ...connectionSettings,
} satisfies SettingTable;

export type PubsubProxyCall = CommandCall<typeof pubsubProxyCommandSettings>;

export const pubsubProxyCommand = defineCommand({
  name: "pubsub proxy",
  summary: "take requests of publishers and subscribers to the servers that have their topics",
  usage: "[--listen ENDPOINT,…] [options]",
  details: [
    "Forwards each request to the server that owns its topic, assigns new topics to the server with the fewest, and " +
    "tries again if a server is lost or has handed a topic off, unless a request could then be executed twice. A " +
    "proxy stores nothing: if it is killed, its clients try again, at any proxy. It prints its endpoint on stderr, " +
    "and runs until SIGTERM, SIGINT or SIGHUP; a second signal ends it immediately. With --clients, SIGHUP makes it " +
    "read the client list again.",
    "Every request gets its response within the time that its client waits (5 s if the client does not " +
    "say): OVERLOADED means definitely not done, ERROR means that the outcome is unknown. A client that does not " +
    "read loses responses, not messages.",
    "Any ZeroMQ REQ socket can be a client; docs/protocol/pubsub.md describes the messages.",
  ],
  examples: [
    ["baton pubsub proxy --listen tcp://127.0.0.1:5001", "on this machine; it finds servers by the embedded keeper"],
    [
      "baton pubsub proxy --listen tcp://0.0.0.0:5001 --advertise tcp://px1:5001 --key service.key -z zk1",
      "for clients on other machines",
    ],
    [
      "baton pubsub proxy --listen tcp://127.0.0.1:5001,ipc:///run/baton/pubsub --metrics-listen :9102",
      "at two endpoints, with /healthz and /metrics",
    ],
  ],
  settings: pubsubProxyCommandSettings,
  runsNothing: true,
  isService: true,
  run: proxy,
});

async function proxy(call: PubsubProxyCall): Promise<ExitCode> {
  const [word] = call.names;
  if (word !== undefined) throw new BatonError("USAGE", `baton pubsub proxy: unexpected argument "${word}"`);
  return await runPubsubProxy(call);
}

/** Runs a proxy until a signal arrives, or until `until` aborts. */
export async function runPubsubProxy(call: PubsubProxyCall, until?: AbortSignal): Promise<ExitCode> {
  const { values, sources, io } = call;
  const log = openPubsubServiceLog("proxy", io, values);
  const [first = "", ...others] = values.pubsubProxyListen;
  checkServiceAddresses("pubsubProxy", call);
  if (values.pubsubProxyId !== undefined) checkPubsubName("proxy id", values.pubsubProxyId);
  const place = readCoordinationServers(values, sources, { warn: (text) => log("warning", "tls", text) });
  const clock = systemClock();
  const security = readPubsubServiceSecurity(values);
  refuseOpenPubsubSockets(values.pubsubProxyListen, values, security !== undefined);
  const rereads = security?.readClients;
  let listening: PubsubProxy | null = null;
  const rereadSignals: readonly NodeJS.Signals[] = rereads === undefined ? [] : ["SIGHUP"];
  const unlisten = ownSignalSource().listen(
    rereadSignals,
    () => rereads && reloadClientList(rereads, { file: values.pubsubClients ?? "", log, proxy: listening }),
  );
  using stop = openPubsubServiceStop(log, stopSignals.filter((one) => !rereadSignals.includes(one)));
  const directory = new ZookeeperTopicDirectory({
    path: new PubsubPath(place.root),
    clock,
    onProblem: serviceProblemLogger(log),
  });
  try {
    await using proxy = new PubsubProxy({
      ...proxyOptions(call, security),
      directory,
      clock,
      onProblem: serviceProblemLogger(log),
    });
    listening = proxy;
    const bound = await proxy.listen(first);
    for (const endpoint of others) await proxy.listen(endpoint);
    await using _page = await serveLoggedStatusPage(values.pubsubMetricsListen, {
      health: () => pubsubProxyHealth(directory),
      metrics: () => pubsubProxyMetrics(proxy, directory, clock.now()),
    }, log);
    const endpoint = values.pubsubProxyAdvertise ?? bound;
    await serve(proxy, {
      directory,
      endpoint,
      place,
      log,
      signal: anyAbortSignal(stop.finish, until),
      clock,
      needs: security?.authorize === undefined ? null : "a key of the client list",
      isProtected: security !== undefined,
    });
    await proxy.drain(values.pubsubDrainTimeout);
    log("info", "left", `"${proxy.id}" has left`, { id: proxy.id });
    return exitCodes.SUCCESS;
  } finally {
    unlisten();
  }
}

function proxyOptions({ values }: PubsubProxyCall, security: PubsubServiceSecurity | undefined) {
  const [first = ""] = values.pubsubProxyListen;
  return {
    id: values.pubsubProxyId ?? defaultProxyId(values.pubsubProxyAdvertise ?? first),
    clientSocketOptions: {
      ...security?.clientListenOptions,
      connectionsMax: values.pubsubMaxConnections,
    },
    ...(security === undefined ? {} : { serverSocketOptions: security.internalDialOptions }),
    ...(security?.authorize === undefined ? {} : { authorize: security.authorize }),
    limits: { bytesInAll: values.pubsubProxyMaxBytes },
  };
}

/** Reads the client list again after SIGHUP. If the new list is invalid, the old one stays in use. */
function reloadClientList(
  read: () => number,
  { file, log, proxy }: { readonly file: string; readonly log: Log; readonly proxy: PubsubProxy | null },
): void {
  try {
    const keys = read();
    proxy?.interruptHeldGets();
    log("info", "clients", `read ${file} again: ${countWithNoun(keys, "key")} accepted`, { file, keys });
  } catch (thrown) {
    log("error", "clients_refused", `${errorMessage(thrown)}; the old list stays in use`, { file });
  }
}

interface ProxyServeOptions {
  readonly directory: ZookeeperTopicDirectory;
  readonly endpoint: string;
  readonly place: CoordinationServers;
  /** Describes the key that clients must have; null if they need none. */
  readonly needs: string | null;
  readonly isProtected: boolean;
  readonly log: Log;
  readonly signal: AbortSignal;
  readonly clock: Clock;
}

/** Serves until the signal aborts. The first session has to succeed; a later session is retried without a limit. */
async function serve(
  proxy: PubsubProxy,
  { directory, endpoint, place, needs, isProtected, log, signal, clock }: ProxyServeOptions,
): Promise<void> {
  const onSlow = (sentence: string) => log("warning", "coordination_slow", sentence);
  let current: ZooKeeper | null = null;
  const open = async (opening: AbortSignal) => {
    // Only the first connection is reported here; CoordinationConnectionLog reports later outages.
    const say = (sentence: string) => current === null && log("warning", "unreachable", sentence);
    return current = await connectAndReportDelay(connectToZooKeeper, { ...place.connect, onSlow, signal: opening }, {
      clock,
      say,
    });
  };
  const announcement = { id: proxy.id, endpoint, storeId: identifyProxyEndpoints([endpoint, ...proxy.endpoints]) };
  try {
    let first: ZooKeeper | null = await open(signal);
    const opened = (opening: AbortSignal) => {
      const zk = first;
      first = null;
      return zk === null ? open(opening) : Promise.resolve(zk);
    };
    const running = directory.run(opened, announcement, signal);
    await Promise.race([directory.ready, running]);
    const where = describeListenEndpoints(proxy.endpoints, { announced: endpoint, needs, isProtected });
    log("info", "serving", `"${proxy.id}" takes requests at ${where}`, {
      id: proxy.id,
      endpoint,
      pid: process.pid,
    });
    using _presence = new CoordinationConnectionLog(
      log,
      proxy.id,
      connectionStateOf(directory, place.servers, () => current),
      clock,
    );
    await running;
  } catch (thrown) {
    if (!signal.aborted || thrown !== signal.reason) throw thrown;
  }
}

function connectionStateOf(
  directory: ZookeeperTopicDirectory,
  servers: string,
  current: () => ZooKeeper | null,
): CoordinationConnectionState {
  return {
    isConnected: () => directory.isConnected,
    describeLoss: () =>
      `does not reach the coordination service at ${servers}${current()?.session.describeOutage() ?? ""}; ` +
      "only topics that were used before are served",
    foundSentence: "reaches the coordination service again",
  };
}

const { gauge, counter, histogram } = metricFactory("baton_pubsub_proxy");

export function pubsubProxyMetrics(proxy: PubsubProxy, directory: TopicDirectory, nowMs: number): Metric[] {
  const { counters, inFlight, loads } = proxy;
  const links = [...proxy.links];
  const perServer = (name: string, help: string, values: Iterable<readonly [string, number]>) =>
    gauge(name, help, { server: Object.fromEntries(values) });
  return [
    gauge("coordination_connected", "1 while the coordination service responds", directory.isConnected ? 1 : 0),
    gauge("servers", "Announced servers", directory.servers.size),
    gauge("clients", "Client connections", proxy.connections),
    ...listeningSocketMetrics("baton_pubsub_proxy", proxy.load),
    counter("requests_total", "Messages received from clients", counters.requests),
    counter("responses_total", "Responses by status", { status: Object.fromEntries(counters.responses) }),
    histogram(
      "request_seconds",
      "Time from the arrival of a request to its response, without gets that may wait for a message",
      { name: counters.latency },
    ),
    counter("requests_retried_total", "Number of times that a request was sent again", counters.retries),
    counter(
      "responses_late_total",
      "Responses that arrived after their request had ended",
      counters.lateResponses,
    ),
    counter(
      "responses_undelivered_total",
      "Responses dropped because the client disconnected or read too slowly",
      counters.undeliveredResponses,
    ),
    counter("messages_dropped_total", "Messages without a response", counters.dropped),
    counter("servers_lost_total", "Connections to servers that were lost", counters.serversLost),
    gauge("requests_in_flight", "Requests in flight", inFlight.requests),
    gauge("request_bytes_in_flight", "Bytes of the requests in flight", inFlight.bytes),
    perServer(
      "server_connected",
      "1 while the server is connected",
      links.map((it) => [it.id, it.isConnected ? 1 : 0]),
    ),
    perServer(
      "server_requests_in_flight",
      "Requests in flight at the server",
      links.map((it) => [it.id, it.sentCount]),
    ),
    perServer(
      "server_requests_queued",
      "Requests that wait to be sent to the server",
      links.map((it) => [it.id, it.waitingCount]),
    ),
    perServer("server_topics", "Topics that the server reports", Array.from(loads, ([id, it]) => [id, it.topics])),
    perServer(
      "server_report_age_seconds",
      "Time since the last report of the server",
      Array.from(loads, ([id, it]) => [id, Math.round((nowMs - it.reportedMs) / 1000)]),
    ),
  ];
}

/** Returns why the proxy cannot work now; null if there is a server to which it can send requests. */
export function pubsubProxyHealth(directory: TopicDirectory): string | null {
  if (!directory.isConnected) {
    return "the coordination service does not answer; only topics that were used before are found";
  }
  return directory.servers.size > 0 ? null : "there is no server";
}

const loopback = /^(localhost|127(\.\d+){3}|\[::1\])$/;

/**
 * Returns the default ID of a proxy, which is the same at each start, so that other processes recognize a proxy that
 * was killed. The advertised address is part of the ID, because containers and copied machines may have the same host
 * name and port.
 */
export function defaultProxyId(endpoint: string): string {
  const [, host = "", port] = /^tcp:\/\/(.*):(\d+)$/.exec(endpoint) ?? [];
  if (port === undefined) return `${hostname()}-${basename(endpoint)}`;
  const place = port === "0" ? process.pid : port;
  if (loopback.test(host)) return `${hostname()}-${place}`;
  const isName = /[a-z]/i.test(host) && !host.includes(":");
  return isName ? `${host}-${place}` : `${hostname()}-${host.replace(/[[\]]/g, "")}-${place}`;
}

/**
 * Returns a text that identifies endpoints by machine, boot and network namespace. Only one process at a time can
 * listen on them. Therefore another announcement with the same text was left by an earlier process.
 */
export function identifyProxyEndpoints(endpoints: readonly string[]): string {
  return [hostname(), machineId(), ...networkNamespace(), ...endpoints].join(" ");
}

/** Returns the network namespace of this process; an empty list on systems without namespaces, such as macOS. */
function networkNamespace(): string[] {
  try {
    const start = readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
    return [start, String(statSync("/proc/self/ns/net", { bigint: true }).ino)];
  } catch {
    return [];
  }
}
