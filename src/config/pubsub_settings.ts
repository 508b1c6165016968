/** Settings of the publish/subscribe roles: section `[pubsub]` of a file, BATON_PUBSUB_… in the environment. */
import { setting, type SettingTable } from "./setting.ts";
import { duration, integer, list, size, text } from "./value_types.ts";

/** For `baton pubsub server`. */
export const pubsubServerSettings = {
  pubsubServerId: setting(text("id"), {
    flag: "--id",
    key: "pubsub.server.id",
    help: "the server's name, which its topics are known by; its data directory keeps it",
  }),
  pubsubDataDir: setting(text("folder"), {
    flag: "--data-dir",
    key: "pubsub.server.data_dir",
    help: "where the server's topics are; made when it is not there",
  }),
  pubsubServerListen: setting(text("tcp://host:port|ipc:///path"), {
    flag: "--listen",
    once: true,
    key: "pubsub.server.listen",
    help: "where proxies and other servers reach it; port 0 is any that is free",
    default: "tcp://127.0.0.1:0",
  }),
  pubsubServerAdvertise: setting(text("tcp://host:port"), {
    flag: "--advertise",
    key: "pubsub.server.advertise",
    help: "the endpoint that others are told, where it is not the one to listen on",
    unset: "what --listen has become",
  }),
  pubsubMaxPending: setting(integer("count", { min: 1, max: 1_000_000_000 }), {
    flag: "--max-pending",
    key: "pubsub.server.max_pending",
    help: "so many messages may wait for the slowest subscriber of a topic; a put beyond that is refused as full",
    unset: "no limit",
  }),
  pubsubMaxTopicSize: setting(size(), {
    flag: "--max-topic-size",
    key: "pubsub.server.max_topic_size",
    help: "what the messages of one topic may take; a put beyond that is refused as full",
    unset: "no limit",
  }),
  pubsubMaxDiskSize: setting(size(), {
    flag: "--max-disk-size",
    key: "pubsub.server.max_disk_size",
    help: "what the whole data directory may take: a warning at 80 %, and from 95 % on puts are refused as full",
    unset: "what the disk has",
  }),
  pubsubRetainMessages: setting(integer("count", { min: 1, max: 1_000_000_000 }), {
    flag: "--retain-messages",
    key: "pubsub.server.retain_messages",
    help: "give up a topic's oldest messages beyond so many, whoever has not had them; who missed some is told",
    unset: "no limit",
  }),
  pubsubRetainSize: setting(size(), {
    flag: "--retain-size",
    key: "pubsub.server.retain_size",
    help: "the same by what a topic's messages take",
    unset: "no limit",
  }),
  pubsubRetainAge: setting(duration({ minMs: 1 }), {
    flag: "--retain-age",
    key: "pubsub.server.retain_age",
    help: "the same by age",
    unset: "no limit",
  }),
} satisfies SettingTable;

/** For `baton pubsub proxy`. */
export const pubsubProxySettings = {
  pubsubProxyId: setting(text("id"), {
    flag: "--id",
    key: "pubsub.proxy.id",
    help: "the proxy's name among the others",
    unset:
      "the advertised name, or the host's name and the advertised address, and the port; with port 0 the process id " +
      "in its place",
  }),
  pubsubProxyListen: setting(list("tcp://host:port|ipc:///path"), {
    flag: "--listen",
    once: true,
    key: "pubsub.proxy.listen",
    help: "where clients reach it, at one endpoint or several; port 0 is any that is free",
    default: ["tcp://127.0.0.1:0"],
  }),
  pubsubProxyAdvertise: setting(text("tcp://host:port"), {
    flag: "--advertise",
    key: "pubsub.proxy.advertise",
    help: "the endpoint that clients and servers are told, where it is not the one to listen on",
    unset: "what the first of --listen has become",
  }),
  pubsubProxyTimeout: setting(duration({ minMs: 1, maxMs: 3_600_000 }), {
    flag: "--request-timeout",
    key: "pubsub.proxy.request_timeout",
    help: "how long a request is tried whose client does not say how long it waits",
    default: 5000,
  }),
  pubsubProxyMaxRequests: setting(integer("count", { min: 1, max: 10_000_000 }), {
    flag: "--max-requests",
    key: "pubsub.proxy.max_requests",
    help: "so many requests may be under way; one more is refused as overloaded",
    default: 65_536,
  }),
  pubsubProxyMaxRequestsPerClient: setting(integer("count", { min: 1, max: 10_000_000 }), {
    flag: "--max-requests-per-client",
    key: "pubsub.proxy.max_requests_per_client",
    help: "the same for one connection",
    default: 1024,
  }),
  pubsubProxyMaxRequestsPerTopic: setting(integer("count", { min: 1, max: 10_000_000 }), {
    flag: "--max-requests-per-topic",
    key: "pubsub.proxy.max_requests_per_topic",
    help: "the same for one topic",
    default: 16_384,
  }),
  pubsubProxyMaxBytes: setting(size(), {
    flag: "--max-bytes",
    key: "pubsub.proxy.max_bytes",
    help: "what the requests under way may have in their messages",
    default: 512 * 1024 ** 2,
  }),
  pubsubClients: setting(text("file"), {
    flag: "--clients",
    key: "pubsub.proxy.clients",
    help: "which clients may come in, a line for each: its public key, ids, topics, and get, put or list",
    unset: "every client, with --key every one that has a key",
  }),
} satisfies SettingTable;

/** For every role. */
export const pubsubKeySettings = {
  pubsubKey: setting(text("file"), {
    flag: "--key",
    key: "pubsub.key",
    help:
      "the own key pair (baton pubsub keygen); all proxies and servers of a service have the same. With it everything " +
      "is encrypted, and only who has the service's key reaches a server",
    unset: "nothing is encrypted",
  }),
} satisfies SettingTable;

/** For `baton pubsub server` and `baton pubsub proxy`. */
export const pubsubServiceSettings = {
  pubsubMetricsListen: setting(text("host:port|unix:PATH"), {
    flag: "--metrics-listen",
    key: "pubsub.metrics_listen",
    help: "serve /healthz and /metrics (Prometheus) there by HTTP; :PORT means this machine only",
    unset: "nothing is served",
  }),
  pubsubMaxConnections: setting(integer("count", { min: 1, max: 1_000_000 }), {
    flag: "--max-connections",
    key: "pubsub.max_connections",
    help:
      "connections that are open at the same time; for one more the oldest whose handshake is not over is closed, " +
      "or else the new one",
    default: 4096,
  }),
  pubsubMaxIncomingBytes: setting(size({ minBytes: 100 * 1024 ** 2 }), {
    flag: "--max-incoming-bytes",
    key: "pubsub.max_incoming_bytes",
    help: "memory for messages that have not arrived completely, of all connections together; when it is short, " +
      "connections that hold most of it are not read from, and closed if their message does not arrive within 10s",
    default: 256 * 1024 ** 2,
  }),
  pubsubDrainTimeout: setting(duration(), {
    flag: "--drain-timeout",
    key: "pubsub.drain_timeout",
    help: "how long what is under way may take to end after SIGTERM",
    default: 10_000,
  }),
} satisfies SettingTable;

/** For `baton pubsub client`. */
export const pubsubClientSettings = {
  pubsubProxies: setting(list("tcp://host:port"), {
    flag: "--proxies",
    key: "pubsub.proxies",
    help: "the proxies, in the order in which they are tried",
    unset: "those that the coordination service names",
  }),
  pubsubServiceKey: setting(text("file"), {
    flag: "--service-key",
    key: "pubsub.service_key",
    help: "the proxies' public key, where they have one",
  }),
  pubsubProxiesFile: setting(text("file"), {
    flag: "--proxies-file",
    key: "pubsub.proxies_file",
    help: "a file with a proxy's address in each line, as the paper has it; --proxies goes before it",
    unset: "none is read",
  }),
  pubsubClientId: setting(text("id"), {
    flag: "--id",
    key: "pubsub.client.id",
    help: "the client's name, where it does not stand before the operation",
  }),
  pubsubStateDir: setting(text("folder"), {
    flag: "--state-dir",
    key: "pubsub.state_dir",
    help: "where clients keep their sessions, their places and the puts they did not hear the end of",
    unset: "~/.local/state/baton/pubsub, home by the user database",
  }),
  pubsubTimeout: setting(duration({ minMs: 1, maxMs: 3_600_000 }), {
    flag: "--timeout",
    key: "pubsub.timeout",
    help: "how long a request is tried in all",
    default: 30_000,
  }),
  pubsubRetryTimeout: setting(duration({ minMs: 1, maxMs: 3_600_000 }), {
    flag: "--retry-timeout",
    key: "pubsub.retry_timeout",
    help: "how long one try is waited for before the next proxy is asked",
    default: 5000,
  }),
  pubsubRetries: setting(integer("count", { min: 0, max: 1_000_000 }), {
    flag: "--retries",
    key: "pubsub.retries",
    help: "tries after the first",
    unset: "as many as --timeout has room for",
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
