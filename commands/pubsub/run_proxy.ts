/** Runs the proxy role until a signal, or until it cannot go on. */
import process from "node:process";
import { processSignals } from "../../src/process/supervise/signal_source.ts";
import { serveStatusPage } from "../../src/terminal/status_page.ts";
import { dieOf, listenForStops, stopSignals } from "../../src/process/supervise/stop_signals.ts";
import { connect } from "../../src/zookeeper/zookeeper_client.ts";
import type { ZooKeeper } from "../../src/zookeeper/zookeeper.ts";
import { BatonError, messageOf } from "../../src/errors.ts";
import { checkName } from "../../src/pubsub/client/client_limits.ts";
import { PubsubPath } from "../../src/pubsub/ownership/pubsub_path.ts";
import { PubsubProxy } from "../../src/pubsub/proxy/pubsub_proxy.ts";
import { ZookeeperDirectory } from "../../src/pubsub/proxy/zookeeper_directory.ts";
import { formatAddress } from "../../src/sockets/connection.ts";
import { type Clock, systemClock } from "../../src/support/clock.ts";
import { counted } from "../../src/support/text.ts";
import { type Coordination, coordinationOf, reach } from "../../src/coordination/connect/coordination_servers.ts";
import { type ExitCode, exitCodes } from "../exit_codes.ts";
import { checkListenAddress } from "../listen_address.ts";
import { pubsubProxySettings, pubsubServiceSettings } from "../../src/config/pubsub_settings.ts";
import { checkAdvertised } from "./advertised.ts";
import { ConnectionLog, type ConnectionState } from "./presence_log.ts";
import type { ProxyCall } from "./proxy.ts";
import { defaultProxyId, proxyPlace } from "./proxy_identity.ts";
import { proxyHealth, proxyMetrics } from "./proxy_metrics.ts";
import { type ServiceLog, serviceLog } from "./service_log.ts";
import { serviceSecurity } from "./service_security.ts";

export async function runProxy(call: ProxyCall): Promise<ExitCode> {
  const { values, sources, io } = call;
  const log = serviceLog("proxy", { io, format: values.log, quiet: values.quiet });
  const [first = "", ...others] = values.pubsubProxyListen;
  checkAddresses(call);
  if (values.pubsubProxyId !== undefined) checkName("proxy id", values.pubsubProxyId);
  const place = coordinationOf(values, sources);
  const clock = systemClock();
  const security = serviceSecurity(values);
  const stopping = new AbortController();
  const rereads = security?.readClients;
  let listening: PubsubProxy | null = null;
  const signals = processSignals();
  const rereadSignals: readonly NodeJS.Signals[] = rereads === undefined ? [] : ["SIGHUP"];
  const unlistens = [
    signals.listen(
      rereadSignals,
      () => rereads && readAgain(rereads, { file: values.pubsubClients ?? "", log, proxy: listening }),
    ),
    listenForStops(signals, clock, {
      first: (signal) => {
        log.say("info", "stopping", `${signal}: finishes what is under way; a second one ends it at once`, { signal });
        stopping.abort(new BatonError("NOT_HELD", `${signal} came`));
      },
      again: (signal) => void dieOf(signal),
      signals: stopSignals.filter((signal) => !rereadSignals.includes(signal)),
    }),
  ];
  const directory = new ZookeeperDirectory({ path: new PubsubPath(place.root), clock, onProblem: log.problem });
  try {
    await using proxy = new PubsubProxy({
      id: values.pubsubProxyId ?? defaultProxyId(values.pubsubProxyAdvertise ?? first),
      directory,
      clock,
      onProblem: log.problem,
      requestTimeoutMs: values.pubsubProxyTimeout,
      front: {
        ...security?.front,
        connectionsMax: values.pubsubMaxConnections,
        inputBytesMax: values.pubsubMaxIncomingBytes,
      },
      ...(security === undefined ? {} : { back: security.dialing }),
      ...(security?.authorize === undefined ? {} : { authorize: security.authorize }),
      limits: {
        perClient: values.pubsubProxyMaxRequestsPerClient,
        perTopic: values.pubsubProxyMaxRequestsPerTopic,
        inAll: values.pubsubProxyMaxRequests,
        bytesInAll: values.pubsubProxyMaxBytes,
      },
    });
    listening = proxy;
    const bound = await proxy.listen(first);
    for (const endpoint of others) await proxy.listen(endpoint);
    await using page = values.pubsubMetricsListen === undefined
      ? null
      : await serveStatusPage(values.pubsubMetricsListen, {
        health: () => proxyHealth(directory),
        metrics: () => Promise.resolve(proxyMetrics(proxy, directory, clock.now())),
      });
    if (page !== null) log.say("info", "metrics", `/healthz and /metrics are at ${formatAddress(page.address)}`);
    const endpoint = values.pubsubProxyAdvertise ?? bound;
    await serve(proxy, { directory, endpoint, place, log, signal: stopping.signal, clock });
    await proxy.drain(values.pubsubDrainTimeout);
    log.say("info", "left", `"${proxy.id}" has left`, { id: proxy.id });
    return exitCodes.SUCCESS;
  } finally {
    for (const unlisten of unlistens) unlisten();
  }
}

/** SIGHUP: a list that cannot be used changes nothing. */
function readAgain(
  read: () => number,
  { file, log, proxy }: { readonly file: string; readonly log: ServiceLog; readonly proxy: PubsubProxy | null },
): void {
  try {
    const keys = read();
    proxy?.interruptWaiting();
    log.say("info", "clients", `read ${file} again: ${counted(keys, "key")} may come in`, { file, keys });
  } catch (thrown) {
    log.say("error", "clients_refused", `${messageOf(thrown)}; the list that was read before stays in force`, { file });
  }
}

interface Surroundings {
  readonly directory: ZookeeperDirectory;
  readonly endpoint: string;
  readonly place: Coordination;
  readonly log: ServiceLog;
  readonly signal: AbortSignal;
  readonly clock: Clock;
}

/** Until the signal aborts. The first session must come about, every later one is tried for ever. */
async function serve(
  proxy: PubsubProxy,
  { directory, endpoint, place, log, signal, clock }: Surroundings,
): Promise<void> {
  const open = (opening: AbortSignal) => connect({ ...place.connect, signal: opening });
  const announcement = { id: proxy.id, endpoint, storeId: proxyPlace([endpoint, ...proxy.endpoints]) };
  try {
    let first: ZooKeeper | null = await open(signal);
    const opened = (opening: AbortSignal) => {
      const zk = first;
      first = null;
      return zk === null ? open(opening) : Promise.resolve(zk);
    };
    const running = directory.run(opened, announcement, signal);
    await Promise.race([directory.ready, running]);
    const bound = proxy.endpoints.join(", ");
    const where = proxy.endpoints.includes(endpoint) ? bound : `${bound}, announced as ${endpoint}`;
    log.say("info", "serving", `"${proxy.id}" takes requests at ${where}, for ${reach[place.scope]}`, {
      id: proxy.id,
      endpoint,
      pid: process.pid,
    });
    using _presence = new ConnectionLog(log, proxy.id, { presence: presenceOf(directory, place.servers), clock });
    await running;
  } catch (thrown) {
    if (!signal.aborted || thrown !== signal.reason) throw thrown;
  }
}

function presenceOf(directory: ZookeeperDirectory, servers: string): ConnectionState {
  return {
    isConnected: () => directory.isConnected,
    lost: `does not reach the coordination service at ${servers}; only topics that were used before are served`,
    found: "reaches the coordination service again",
  };
}

/** Throws USAGE or CONFIG. */
function checkAddresses({ values, sources }: ProxyCall): void {
  const { pubsubProxyListen: listen, pubsubProxyAdvertise: advertise } = pubsubProxySettings;
  checkAdvertised(
    { name: "pubsubProxyListen", setting: listen, value: values.pubsubProxyListen },
    { name: "pubsubProxyAdvertise", setting: advertise, value: values.pubsubProxyAdvertise },
    sources,
  );
  const { pubsubMetricsListen } = pubsubServiceSettings;
  checkListenAddress("pubsubMetricsListen", pubsubMetricsListen, values.pubsubMetricsListen, sources);
}
