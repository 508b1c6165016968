/**
 * Defines `baton pubsub server`, which runs a server until a signal arrives. The operations on servers are in
 * server_operations.ts.
 */
import process from "node:process";
import { runPubsubServerOperation } from "./server_operations.ts";
import { checkPubsubServerFlags, type PubsubServerCall, pubsubServerCommandSettings } from "./server_options.ts";
import { defineCommand } from "../command.ts";
import { type ExitCode, exitCodes } from "../../src/base/exit_codes.ts";
import { serveLoggedStatusPage } from "../../src/base/terminal/status_page.ts";
import { connectAndReportDelay } from "../../src/coordination/connect/command_session.ts";
import { connectToZooKeeper } from "../../src/protocols/zookeeper/zookeeper_client.ts";
import { BatonError } from "../../src/base/errors.ts";
import { checkPubsubName } from "../../src/pubsub/client/client_limits.ts";
import { PubsubPath } from "../../src/pubsub/ownership/pubsub_path.ts";
import type { TopicStoreOptions } from "../../src/pubsub/store/limits/topic_store_limits.ts";
import { TopicServer, type TopicServerOptions } from "../../src/pubsub/server/topic_server.ts";
import { anyAbortSignal, onAbort } from "../../src/base/support/abort.ts";
import { freeDiskBytes } from "../../src/base/storage/free_disk_space.ts";
import { systemClock } from "../../src/base/support/clock.ts";
import { countWithNoun } from "../../src/base/support/text.ts";
import { readCoordinationServers } from "../../src/coordination/connect/coordination_servers.ts";
import { checkServiceAddresses, describeListenEndpoints, refuseOpenPubsubSockets } from "./advertised_endpoint.ts";
import type { Log } from "../../src/base/support/log.ts";
import type { ZooKeeper } from "../../src/protocols/zookeeper/zookeeper.ts";
import {
  CoordinationConnectionLog,
  type CoordinationConnectionState,
  openPubsubServiceLog,
  openPubsubServiceStop,
  serviceProblemLogger,
} from "./service_log.ts";
import { type PubsubServiceSecurity, readPubsubServiceSecurity } from "./service_security.ts";
import { readTopicStoreLocation, type TopicStoreDatabase, type TopicStoreLocation } from "./topic_store_location.ts";
import { type Metric, metricFactory } from "../../src/base/terminal/metrics_text.ts";
import { listeningSocketMetrics } from "./socket_metrics.ts";

export const pubsubServerCommand = defineCommand({
  name: "pubsub server",
  summary: "keep topics for publishers and subscribers",
  usage: "--id ID --data-dir FOLDER|--store URL [options] | " +
    "ls|rebalance|verify | move TOPIC --to ID | drain ID [--to ID|--undo] | forget ID --accept-loss | " +
    "forget-client TOPIC CLIENT | backup FOLDER|restore --accept-loss",
  details: [
    "Stores the messages of its topics on disk until every subscriber has received them. A message that was " +
    "confirmed survives kill -9. Clients reach servers through proxies (baton pubsub proxy), which assign " +
    "each new topic to the server with the fewest. The server runs until SIGTERM, SIGINT or SIGHUP; a " +
    "second signal ends it immediately.",
    "A topic has one owner, and keeps it while the server is down: unavailable, but not lost. The ID " +
    "belongs to the data directory. A server rejects a copy of a data directory (78), unless --moved says " +
    "that the original is never served again.",
    "With --store postgres://USER@HOST1,HOST2/DATABASE several servers share the topics in a PostgreSQL " +
    "database: if one of them dies, the others own its topics after its session. --migrate creates the " +
    "tables once. A server rejects a database that may lose what it has committed, or that is in another " +
    "cluster than before (78; --moved). The password comes from PGPASSWORD or a password file, never from " +
    "the URL.",
    "ls lists the servers. move, drain and rebalance move topics while they are used: to one server, away " +
    "from one server, or until all own the same number. A topic goes from a data directory into a database, " +
    "or back, only to a server that --to names. Exit 69: a topic has not moved; 76: the outcome is unknown. " +
    "After a signal, moves that were requested continue, and the result names them. A drained server gets " +
    "no new topics until it is started again, or until drain ID --undo.",
    "forget gives up a server whose data is lost: its topics begin again, empty. With a database it gives " +
    "the topics to the others, without loss. forget-client removes one client of a topic, to make room.",
    "verify checks a whole data directory, and exits with 74 if it is damaged; backup copies it to a new " +
    "folder. Both work while the server runs.",
    "A server rejects older data (78): a backup, a snapshot, a database that lacks commits which it had " +
    "confirmed. If there is no newer copy, restore continues from it: everything later is lost. Message IDs " +
    "continue above all that were ever assigned.",
  ],
  examples: [
    [
      "baton pubsub server --id s1 --data-dir ./s1",
      "on this machine, with the embedded keeper",
    ],
    [
      "baton pubsub server --id s1 --data-dir /var/lib/baton/s1 --listen tcp://db1:7001 --key service.key -z zk1",
      "for proxies on other machines",
    ],
    [
      "baton pubsub server --id s1 --store postgres://baton@pg1,pg2/baton --servers zk1,zk2,zk3",
      "topics that survive the loss of this machine",
    ],
    ["baton pubsub server --id s1 --data-dir ./s1 --metrics-listen :9101", "with /healthz and /metrics"],
    ["baton pubsub server ls --topics", "all servers and their topics"],
    ["baton pubsub server move news --to s2", "hand off a topic"],
    ["baton pubsub server drain s1", "hand off all topics of s1 before removing it"],
    ["baton pubsub server drain old --to s1", "move all topics into the store of s1, such as a database"],
    ["baton pubsub server backup /backup/s1 --data-dir ./s1", "while it runs"],
    [
      "baton pubsub server restore --id s1 --data-dir /backup/s1 --accept-loss",
      "the disk of s1 is lost: continue from the backup",
    ],
  ],
  settings: pubsubServerCommandSettings,
  completes: ["ls", "move", "drain", "rebalance", "forget", "forget-client", "verify", "backup", "restore"],
  runsNothing: true,
  isService: true,
  run: server,
});

async function server(call: PubsubServerCall): Promise<ExitCode> {
  if (call.names.length > 0) return await runPubsubServerOperation(call);
  return await runPubsubServer(call);
}

/** Runs a server until a signal arrives, or until `until` aborts. */
export async function runPubsubServer(call: PubsubServerCall, until?: AbortSignal): Promise<ExitCode> {
  const { values, sources, io } = call;
  const { id, store } = requireIdAndStore(call);
  checkPubsubServerFlags("", sources.flags);
  checkServiceAddresses("pubsubServer", call);
  process.umask(0o077);
  const log = openPubsubServiceLog("server", io, values);
  const place = readCoordinationServers(values, sources, { warn: (text) => log("warning", "tls", text) });
  const security = readServerSecurity(call);
  using stop = openPubsubServiceStop(log);
  const signal = anyAbortSignal(stop.finish, until);
  let current: ZooKeeper | null = null;
  const onSlow = (sentence: string) => log("warning", "coordination_slow", sentence);
  try {
    await using server = await TopicServer.start({
      id,
      dataDir: store.dataDir,
      ...(store.database === null ? {} : { openSharedStore: databaseOpener(store.database, id, values.moved) }),
      ...(values.pubsubNoBalance ? { balanceEveryMs: null } : {}),
      wasMoved: values.moved,
      listen: values.pubsubServerListen,
      advertise: values.pubsubServerAdvertise,
      path: new PubsubPath(place.root),
      connect: async (signal) => {
        // Only the first connection is reported here; CoordinationConnectionLog reports later outages.
        const say = (sentence: string) => current === null && log("warning", "unreachable", sentence);
        const options = { ...place.connect, onSlow, signal };
        return current = await connectAndReportDelay(connectToZooKeeper, options, { clock: systemClock(), say });
      },
      clock: systemClock(),
      store: storeOptionsOf(values),
      limits: { connectionsMax: values.pubsubMaxConnections },
      security: security === undefined
        ? undefined
        : { server: security.internalListenOptions, client: security.internalDialOptions },
      onProblem: serviceProblemLogger(log),
      onDraining: (isDraining) => logDraining(log, id, isDraining),
    }, signal);
    const page = { health: () => pubsubServerHealth(server), metrics: () => pubsubServerMetrics(server, store) };
    await using _page = await serveLoggedStatusPage(values.pubsubMetricsListen, page, log);
    logServing(log, id, { server, store, isProtected: security !== undefined });
    const connectionLog = new CoordinationConnectionLog(
      log,
      id,
      connectionStateOf(server, place.servers, () => current),
      systemClock(),
    );
    await waitUntilAsked(server, signal, connectionLog);
    const { hasReadTopics } = server;
    const kept = await server.leave({ withinMs: values.pubsubDrainTimeout, handOff: values.handOff });
    logLeft(log, id, hasReadTopics ? kept.length : null);
    return exitCodes.SUCCESS;
  } catch (thrown) {
    if (signal.aborted && thrown === signal.reason) return exitCodes.SUCCESS;
    throw thrown;
  }
}

function servingFacts(id: string, server: TopicServer, store: TopicStoreLocation): Record<string, string | number> {
  const place = store.database === null ? { data_dir: store.dataDir } : { store: store.where };
  return { id, endpoint: server.endpoint, ...place, pid: process.pid };
}

async function waitUntilAsked(
  server: TopicServer,
  signal: AbortSignal,
  presence: CoordinationConnectionLog,
): Promise<void> {
  using _ = presence;
  const { promise: asked, resolve } = Promise.withResolvers<void>();
  const off = onAbort(signal, () => resolve());
  await Promise.race([asked, server.ended]).finally(off);
}

function connectionStateOf(
  server: TopicServer,
  servers: string,
  current: () => ZooKeeper | null,
): CoordinationConnectionState {
  return {
    isConnected: () => server.isRegistered,
    describeLoss: () =>
      `serves no requests until the coordination service at ${servers} answers${
        current()?.session.describeOutage() ?? ""
      }: its lease has ended`,
    foundSentence: "has a lease and serves again",
  };
}

function logDraining(log: Log, id: string, isDraining: boolean): void {
  const sentence = isDraining ? "is given no new topics until it is started again" : "takes new topics again";
  log("info", isDraining ? "draining" : "taking", `"${id}" ${sentence}`, { id });
}

/** Logs the end. `kept` is null if the server had not read all its topics. */
function logLeft(log: Log, id: string, kept: number | null): void {
  const stays = kept === null ? "" : `; ${countWithNoun(kept, "topic")} ${kept === 1 ? "stays" : "stay"} with it`;
  log("info", "left", `"${id}" has left${stays}`, { id, ...(kept === null ? {} : { topics: kept }) });
}

function storeOptionsOf(values: PubsubServerCall["values"]): Partial<TopicStoreOptions> {
  return {
    maxPending: values.pubsubMaxPending ?? null,
    maxTopicBytes: values.pubsubMaxTopicSize ?? null,
    maxDiskBytes: values.pubsubMaxDiskSize ?? null,
    retainMessages: values.pubsubRetainMessages ?? null,
    retainBytes: values.pubsubRetainSize ?? null,
    retainMs: values.pubsubRetainAge ?? null,
  };
}

function logServing(log: Log, id: string, { server, store, isProtected }: {
  readonly server: TopicServer;
  readonly store: TopicStoreLocation;
  readonly isProtected: boolean;
}): void {
  const where = describeListenEndpoints([server.bound], {
    announced: server.endpoint,
    needs: isProtected ? "the key of the service" : null,
    isProtected,
  });
  log("info", "serving", `"${id}" serves ${store.where} at ${where}`, servingFacts(id, server, store));
}

/** Reads the key of the server. Throws CONFIG if there is no key and other machines could connect. */
function readServerSecurity({ values }: PubsubServerCall): PubsubServiceSecurity | undefined {
  const security = readPubsubServiceSecurity(values);
  refuseOpenPubsubSockets([values.pubsubServerListen], values, security !== undefined);
  return security;
}

/** Loads the code for databases only if a database is named. */
function databaseOpener(
  { address, ...opening }: TopicStoreDatabase,
  server: string,
  wasMoved: boolean,
): NonNullable<TopicServerOptions["openSharedStore"]> {
  return async (hooks, options, signal) => {
    const { openPostgresStore } = await import("../../src/pubsub/store/postgres/open_postgres_store.ts");
    return await openPostgresStore(address, hooks, { ...options, ...opening, server, wasMoved, signal });
  };
}

function requireIdAndStore({ values, sources }: PubsubServerCall): { id: string; store: TopicStoreLocation } {
  const { pubsubServerId: id } = values;
  const store = readTopicStoreLocation(values, sources);
  const example =
    "as in: baton pubsub server --id s1 --data-dir ./s1; for one machine only, baton pubsub serve needs no option";
  if (id === undefined) throw new BatonError("USAGE", `baton pubsub server needs --id, ${example}`);
  if (store === null) throw new BatonError("USAGE", `baton pubsub server needs --data-dir or --store, ${example}`);
  checkPubsubName("server id", id);
  return { id, store };
}

const { gauge, counter, histogram } = metricFactory("baton_pubsub_server");

async function pubsubServerMetrics(server: TopicServer, store: TopicStoreLocation): Promise<Metric[]> {
  const { requests, responses, refused, responsesDropped } = server.counters;
  const now = await server.statistics();
  return [
    gauge("serving", "1 while the server is announced and has its lease", server.isRegistered ? 1 : 0),
    gauge("draining", "1 while the server is given no new topics", server.isDraining ? 1 : 0),
    counter("requests_total", "Requests by name", { name: requests }),
    counter("invalid_requests_total", "Invalid requests", refused),
    counter("responses_total", "Responses by status", { status: responses }),
    counter(
      "responses_dropped_total",
      "Responses that could not be sent: the peer does not read, or has disconnected",
      responsesDropped,
    ),
    histogram(
      "request_seconds",
      "Time from the arrival of a request to its durable response, without gets that wait for a message",
      { name: server.counters.latency },
    ),
    gauge("requests_in_flight", "Requests in flight at the store, including gets that wait", now.inFlight),
    gauge("gets_waiting", "Gets that wait for a message", now.pendingGets),
    gauge(
      "requests_awaiting_admission",
      "Requests that wait until the server has checked that it owns the topic",
      now.pendingAdmissions,
    ),
    gauge("topics_stored", "Topics with data on this server", now.topics),
    gauge("topics_served", "Topics that this server serves", now.served),
    gauge("topics_handing_off", "Topics being handed off to other servers", now.outgoingHandoffs),
    gauge("topics_receiving", "Topics being received from other servers", now.incomingTransfers),
    gauge("store_bytes", "Bytes of the store", now.usedBytes),
    ...store.database === null
      ? [gauge("disk_free_bytes", "Bytes that can still be written to the disk", freeDiskBytes(store.dataDir))]
      : [],
    gauge("disk_full", "1 while messages are refused because the disk is full", now.full === null ? 0 : 1),
    gauge(
      "disk_used_ratio",
      "Used part of the tighter disk limit; puts are refused from 0.95 on",
      now.diskShare,
    ),
    gauge(
      "clients_used_ratio",
      "Used part of the client limit, of the topic with the most clients",
      now.clientsShare,
    ),
    counter("clients_forgotten_total", "Publishers forgotten to make room", now.clientsForgotten),
    gauge("damaged_rows", "Damaged rows of the store found since the start", now.damages),
    counter(
      "losses_total",
      "Topics that may have lost messages in a fail-over of the database, since the start",
      now.losses,
    ),
    counter("commits_total", "Transactions of the store", now.commits),
    ...listeningSocketMetrics("baton_pubsub_server", now.socket),
    counter("unroutable_total", "Responses for peers that had disconnected", now.socket.unroutable),
  ];
}

/** Returns why the server refuses messages; null if it accepts messages, even if its disk is nearly full. */
export async function pubsubServerHealth(server: TopicServer): Promise<string | null> {
  if (!server.isRegistered) {
    return "the server has no lease: the coordination service does not answer, or has ended the session";
  }
  const why = await server.whyNotStored();
  return why === null ? null : `messages are refused: ${why}`;
}
