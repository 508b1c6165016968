/** Settings of publish/subscribe: section `[pubsub]` of a file, BATON_PUBSUB_… in the environment. */
import { setting, type SettingTable } from "./setting.ts";
import { duration, integer, list, size, text } from "./value_types.ts";

/** Settings of `baton pubsub server`. */
export const pubsubServerSettings = {
  pubsubServerId: setting(text("id"), {
    flag: "--id",
    key: "pubsub.server.id",
    help: "the ID of the server; it is stored in the data directory",
  }),
  pubsubDataDir: setting(text("folder"), {
    flag: "--data-dir",
    key: "pubsub.server.data_dir",
    help: "folder for the topics of the server; created if it does not exist",
  }),
  pubsubServerListen: setting(text("tcp://host:port|ipc:///path"), {
    flag: "--listen",
    once: true,
    key: "pubsub.server.listen",
    help: "endpoint for proxies and other servers; port 0 is any free port",
    default: "tcp://127.0.0.1:0",
  }),
  pubsubServerAdvertise: setting(text("tcp://host:port"), {
    flag: "--advertise",
    key: "pubsub.server.advertise",
    help: "the endpoint to announce, if it is not the one of --listen",
    unset: "the actual endpoint of --listen",
  }),
  pubsubMaxPending: setting(integer("count", { min: 1, max: 1_000_000_000 }), {
    flag: "--max-pending",
    key: "pubsub.server.max_pending",
    help: "maximum undelivered messages per topic, for its slowest subscriber; further puts fail with 85",
    unset: "no limit",
  }),
  pubsubMaxTopicSize: setting(size(), {
    flag: "--max-topic-size",
    key: "pubsub.server.max_topic_size",
    help: "maximum bytes of the messages of one topic; further puts fail with 85",
    unset: "no limit",
  }),
  pubsubMaxDiskSize: setting(size(), {
    flag: "--max-disk-size",
    key: "pubsub.server.max_disk_size",
    help: "maximum size of the data directory: a warning at 80 %; from 95 % on puts fail with 85",
    unset: "the size of the disk",
  }),
  pubsubRetainMessages: setting(integer("count", { min: 1, max: 1_000_000_000 }), {
    flag: "--retain-messages",
    key: "pubsub.server.retain_messages",
    help:
      "keep at most this many messages per topic and delete the oldest, delivered or not; subscribers are told how many they missed",
    unset: "no limit",
  }),
  pubsubRetainSize: setting(size(), {
    flag: "--retain-size",
    key: "pubsub.server.retain_size",
    help: "the same limit by size",
    unset: "no limit",
  }),
  pubsubRetainAge: setting(duration({ minMs: 1 }), {
    flag: "--retain-age",
    key: "pubsub.server.retain_age",
    help: "the same limit by age",
    unset: "no limit",
  }),
} satisfies SettingTable;

/** Settings of `baton pubsub proxy`. */
export const pubsubProxySettings = {
  pubsubProxyId: setting(text("id"), {
    flag: "--id",
    key: "pubsub.proxy.id",
    help: "the ID of the proxy",
    unset: "the advertised host name, or the host name and the advertised address; then the port, or with port 0 the " +
      "process ID",
  }),
  pubsubProxyListen: setting(list("tcp://host:port|ipc:///path"), {
    flag: "--listen",
    once: true,
    key: "pubsub.proxy.listen",
    help: "one or several endpoints for clients; port 0 is any free port",
    default: ["tcp://127.0.0.1:0"],
  }),
  pubsubProxyAdvertise: setting(text("tcp://host:port"), {
    flag: "--advertise",
    key: "pubsub.proxy.advertise",
    help: "the endpoint to announce to clients and servers, if it is not the one of --listen",
    unset: "the actual first endpoint of --listen",
  }),
  pubsubProxyTimeout: setting(duration({ minMs: 1, maxMs: 3_600_000 }), {
    flag: "--request-timeout",
    key: "pubsub.proxy.request_timeout",
    help: "how long a request without a deadline is tried",
    default: 5000,
  }),
  pubsubProxyMaxRequests: setting(integer("count", { min: 1, max: 10_000_000 }), {
    flag: "--max-requests",
    key: "pubsub.proxy.max_requests",
    help: "maximum requests in flight; further requests are refused as overloaded",
    default: 65_536,
  }),
  pubsubProxyMaxRequestsPerClient: setting(integer("count", { min: 1, max: 10_000_000 }), {
    flag: "--max-requests-per-client",
    key: "pubsub.proxy.max_requests_per_client",
    help: "maximum requests in flight for one connection",
    default: 1024,
  }),
  pubsubProxyMaxRequestsPerTopic: setting(integer("count", { min: 1, max: 10_000_000 }), {
    flag: "--max-requests-per-topic",
    key: "pubsub.proxy.max_requests_per_topic",
    help: "maximum requests in flight for one topic",
    default: 16_384,
  }),
  pubsubProxyMaxBytes: setting(size(), {
    flag: "--max-bytes",
    key: "pubsub.proxy.max_bytes",
    help: "maximum bytes of the requests in flight",
    default: 512 * 1024 ** 2,
  }),
  pubsubClients: setting(text("file"), {
    flag: "--clients",
    key: "pubsub.proxy.clients",
    help: "file with the accepted clients, one per line: public key, IDs, topics, and get, put or list",
    unset: "every client; with --key, every client with a key",
  }),
} satisfies SettingTable;

/** Settings of servers, proxies and clients. */
export const pubsubKeySettings = {
  pubsubKey: setting(text("file"), {
    flag: "--key",
    key: "pubsub.key",
    help:
      "key pair of this process (baton pubsub keygen); all proxies and servers of a service share one. It encrypts all " +
      "connections, and servers accept only processes with the service's key",
    unset: "nothing is encrypted",
  }),
} satisfies SettingTable;

/** Settings of servers and proxies. */
export const pubsubServiceSettings = {
  pubsubMetricsListen: setting(text("host:port|unix:PATH"), {
    flag: "--metrics-listen",
    key: "pubsub.metrics_listen",
    help: "serve /healthz and /metrics (Prometheus) by HTTP at this address; :PORT means this machine only",
    unset: "nothing is served",
  }),
  pubsubMaxConnections: setting(integer("count", { min: 1, max: 1_000_000 }), {
    flag: "--max-connections",
    key: "pubsub.max_connections",
    help: "maximum open connections; for one more, the oldest in its handshake is closed, or otherwise the new one",
    default: 4096,
  }),
  pubsubMaxIncomingBytes: setting(size({ minBytes: 100 * 1024 ** 2 }), {
    flag: "--max-incoming-bytes",
    key: "pubsub.max_incoming_bytes",
    help: "memory for incomplete messages of all connections; when it is short, the connections that hold most are " +
      "not read, and closed if their message does not arrive within 10s",
    default: 256 * 1024 ** 2,
  }),
  pubsubDrainTimeout: setting(duration(), {
    flag: "--drain-timeout",
    key: "pubsub.drain_timeout",
    help: "how long requests in flight may take to end after SIGTERM",
    default: 10_000,
  }),
} satisfies SettingTable;

/** Settings of `baton pubsub client`. */
export const pubsubClientSettings = {
  pubsubProxies: setting(list("tcp://host:port"), {
    flag: "--proxies",
    key: "pubsub.proxies",
    help: "the proxies, in the order in which they are tried",
    unset: "the proxies announced in the coordination service",
  }),
  pubsubServiceKey: setting(text("file"), {
    flag: "--service-key",
    key: "pubsub.service_key",
    help: "file with the public key of the proxies, if they have one",
  }),
  pubsubProxiesFile: setting(text("file"), {
    flag: "--proxies-file",
    key: "pubsub.proxies_file",
    help: "file with one proxy address per line; --proxies takes precedence",
    unset: "none is read",
  }),
  pubsubClientId: setting(text("id"), {
    flag: "--id",
    key: "pubsub.client.id",
    help: "the client ID, if it is not given before the operation",
  }),
  pubsubStateDir: setting(text("folder"), {
    flag: "--state-dir",
    key: "pubsub.state_dir",
    help: "folder for the states of clients: sessions, positions, and puts with an unknown outcome",
    unset: "~/.local/state/baton/pubsub, with the home folder of the user database",
  }),
  pubsubTimeout: setting(duration({ minMs: 1, maxMs: 3_600_000 }), {
    flag: "--timeout",
    key: "pubsub.timeout",
    help: "how long a request is tried in total",
    default: 30_000,
  }),
  pubsubRetryTimeout: setting(duration({ minMs: 1, maxMs: 3_600_000 }), {
    flag: "--retry-timeout",
    key: "pubsub.retry_timeout",
    help: "how long one try may take before the next proxy is used",
    default: 5000,
  }),
  pubsubRetries: setting(integer("count", { min: 0, max: 1_000_000 }), {
    flag: "--retries",
    key: "pubsub.retries",
    help: "tries after the first",
    unset: "as many as fit into --timeout",
  }),
} satisfies SettingTable;

/** All of them. */
export const pubsubSettings = {
  ...pubsubServerSettings,
  ...pubsubProxySettings,
  ...pubsubKeySettings,
  ...pubsubServiceSettings,
  ...pubsubClientSettings,
} satisfies SettingTable;
