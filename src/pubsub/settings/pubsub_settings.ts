/** Settings of publish/subscribe, in the section `[pubsub]` of a file or as BATON_PUBSUB_… in the environment. */
import {
  flagSetting,
  insecureFlagHelp,
  putSettingsIntoGroup,
  sectionSettingDeclarer,
  type SettingTable,
  toggleSetting,
} from "../../base/config/setting.ts";
import {
  choiceType,
  durationType,
  integerType,
  listType,
  sizeType,
  textType,
  toggleType,
} from "../../base/config/value_types.ts";

const pubsub = sectionSettingDeclarer("pubsub.");
const server = sectionSettingDeclarer("pubsub.server.");
const proxy = sectionSettingDeclarer("pubsub.proxy.");
const client = sectionSettingDeclarer("pubsub.client.");

/** Settings of a database that several servers share. The database is used instead of a data directory. */
export const pubsubStoreSettings = {
  pubsubStore: server("store", textType("url"), {
    help: "URL of a PostgreSQL database for the topics, which several servers share, instead of --data-dir",
    unset: "the topics are in --data-dir",
  }),
  pubsubRequireSync: server("require_sync", toggleType(), {
    basic: false,
    help: "refuse a database whose commits do not wait for a synchronous standby (78)",
    default: false,
  }),
  pubsubOnLoss: server("on_loss", choiceType(["continue", "stop"]), {
    basic: false,
    help:
      "after a fail-over that may have lost messages, report it or stop; stop: their topics are not served before " +
      "restore --accept-loss",
    default: "continue",
  }),
  pubsubNoBalance: toggleSetting("--no-balance", {
    basic: false,
    help: "give no topics of the database to servers that have fewer; otherwise one that comes back gets its share",
  }),
  pubsubMigrate: toggleSetting("--migrate", {
    basic: false,
    help: "create the tables of the database, or bring them to the format of this baton; needs a role that may do so",
  }),
} satisfies SettingTable;

export const pubsubServerSettings = {
  pubsubServerId: server("id", textType("id"), { help: "the ID of the server; it is stored in the data directory" }),
  pubsubDataDir: server("data_dir", textType("folder"), {
    help: "folder for the topics of the server; created if it does not exist",
  }),
  pubsubServerListen: server("listen", textType("tcp://host:port|ipc:///path"), {
    once: true,
    help: "endpoint for proxies and other servers; port 0 is any free port",
    default: "tcp://127.0.0.1:0",
  }),
  pubsubServerAdvertise: server("advertise", textType("tcp://host:port"), {
    basic: false,
    help: "the endpoint to announce, if it is not the one of --listen",
    unset: "the actual endpoint of --listen",
  }),
  pubsubMaxPending: server("max_pending", integerType("count", { min: 1, max: 1_000_000_000 }), {
    group: "limits",
    help: "maximum undelivered messages per topic, for its slowest subscriber; further puts fail with 85; " +
      "a larger batch is stored whole if one of its messages fits",
    unset: "no limit",
  }),
  pubsubMaxTopicSize: server("max_topic_size", sizeType(), {
    group: "limits",
    help: "maximum bytes of the messages of one topic; further puts fail with 85",
    unset: "no limit",
  }),
  pubsubMaxDiskSize: server("max_disk_size", sizeType(), {
    group: "limits",
    help: "maximum size of the data directory: a warning at 80 %; from 95 % on puts fail with 85",
    unset: "the size of the disk",
  }),
  pubsubRetainMessages: server("retain_messages", integerType("count", { min: 1, max: 1_000_000_000 }), {
    group: "limits",
    help:
      "keep at most this many messages per topic and delete the oldest, delivered or not; subscribers are told how " +
      "many they missed",
    unset: "no limit",
  }),
  pubsubRetainSize: server("retain_size", sizeType(), {
    group: "limits",
    help: "the same limit by size",
    unset: "no limit",
  }),
  pubsubRetainAge: server("retain_age", durationType({ minMs: 1 }), {
    group: "limits",
    help: "the same limit by age",
    unset: "no limit",
  }),
} satisfies SettingTable;

export const pubsubProxySettings = {
  pubsubProxyId: flagSetting("--id", textType("id"), {
    help: "the ID of the proxy",
    unset: "the advertised host name, or the host name and the advertised address; then the port, or with port 0 the " +
      "process ID",
  }),
  pubsubProxyListen: proxy("listen", listType("tcp://host:port|ipc:///path"), {
    once: true,
    help: "one or several endpoints for clients; port 0 is any free port",
    default: ["tcp://127.0.0.1:0"],
  }),
  pubsubProxyAdvertise: proxy("advertise", textType("tcp://host:port"), {
    help: "the endpoint to announce to clients and servers, if it is not the one of --listen",
    unset: "the actual first endpoint of --listen",
  }),
  pubsubProxyMaxBytes: flagSetting("--max-bytes", sizeType(), {
    group: "limits",
    help: "maximum bytes of the requests in flight",
    default: 512 * 1024 ** 2,
  }),
  pubsubClients: proxy("clients", textType("file"), {
    group: "security",
    help: "file with the accepted clients, one per line: public key, IDs, topics, and get, put or list",
    unset: "every client; with --key, every client with a key",
  }),
} satisfies SettingTable;

export const pubsubKeySettings = putSettingsIntoGroup("security", {
  pubsubKey: pubsub("key", textType("file"), {
    help:
      "key pair of this process (baton pubsub keygen); all proxies and servers of a service share one. It encrypts " +
      "all connections, and servers accept only processes with the service's key",
    unset: "nothing is encrypted",
  }),
}) satisfies SettingTable;

export const pubsubServiceSettings = putSettingsIntoGroup("limits", {
  pubsubMetricsListen: pubsub("metrics_listen", textType("host:port|unix:PATH"), {
    group: "output",
    help: "serve /healthz and /metrics (Prometheus) by HTTP at this address; :PORT means this machine only",
    unset: "not served",
  }),
  pubsubInsecure: pubsub("insecure", toggleType(), { group: "security", help: insecureFlagHelp, default: false }),
  pubsubMaxConnections: pubsub("max_connections", integerType("count", { min: 1, max: 1_000_000 }), {
    help: "maximum open connections; for one more, the oldest in its handshake is closed, or otherwise the new one",
    default: 4096,
  }),
  pubsubDrainTimeout: flagSetting("--drain-timeout", durationType(), {
    help: "how long requests in flight may take to end after SIGTERM",
    default: 10_000,
  }),
}) satisfies SettingTable;

export const pubsubClientSettings = {
  pubsubProxies: pubsub("proxies", listType("tcp://host:port"), {
    basic: false,
    help: "the proxies, in the order in which they are tried",
    unset: "the proxies announced in the coordination service",
  }),
  pubsubServiceKey: pubsub("service_key", textType("file"), {
    group: "security",
    help: "file with the public key of the proxies, if they have one",
  }),
  pubsubProxiesFile: flagSetting("--proxies-file", textType("file"), {
    basic: false,
    help: "file with one proxy address per line; --proxies takes precedence",
    unset: "none is read",
  }),
  pubsubClientId: client("id", textType("id"), { help: "the client ID, if it is not given before the operation" }),
  pubsubStateDir: pubsub("state_dir", textType("folder"), {
    help: "folder for the states of clients: sessions, positions, and puts with an unknown outcome",
    unset: "~/.local/state/baton/pubsub, with the home folder of the user database",
  }),
  pubsubTimeout: flagSetting("--timeout", durationType({ minMs: 1, maxMs: 3_600_000 }), {
    group: "waiting",
    help: "how long a request is tried in total",
    default: 30_000,
  }),
  pubsubRetryTimeout: flagSetting("--retry-timeout", durationType({ minMs: 1, maxMs: 3_600_000 }), {
    group: "waiting",
    help: "how long one try may take before the next proxy is used",
    default: 5000,
  }),
  pubsubRetries: flagSetting("--retries", integerType("count", { min: 0, max: 1_000_000 }), {
    group: "waiting",
    help: "tries after the first",
    unset: "as many as fit into --timeout",
  }),
} satisfies SettingTable;

export const pubsubSettings = {
  ...pubsubStoreSettings,
  ...pubsubServerSettings,
  ...pubsubProxySettings,
  ...pubsubKeySettings,
  ...pubsubServiceSettings,
  ...pubsubClientSettings,
} satisfies SettingTable;

/** The settings of publish/subscribe. */
export const pubsubTables = { all: pubsubSettings };
