/** Settings of the retry processor: section `[retry]` of a file, BATON_RETRY_… in the environment. */
import { setting, type SettingTable } from "./setting.ts";
import { choice, duration, integer, list, size, text, toggle } from "./value_types.ts";

/** The store. For every command of the retry processor. */
export const retryStoreSettings = {
  retryName: setting(text("name"), {
    flag: "--name",
    key: "retry.name",
    help: "name of the message store",
    default: "default",
  }),
  retryStore: setting(text("folder"), {
    flag: "--store",
    key: "retry.store",
    help: "folder of the store, on a disk of this machine",
    unset: "~/.local/state/baton/retry/NAME; the home directory comes from the user database",
  }),
} satisfies SettingTable;

/** Limits of a store. */
export const retryLimitSettings = {
  retryMaxMessages: setting(integer("count", { min: 1, max: 1_000_000_000 }), {
    flag: "--max-messages",
    key: "retry.max_messages",
    help: "maximum number of waiting, in-flight and dead messages; further ones are refused (85)",
    default: 1_000_000,
  }),
  retryMaxBytes: setting(size(), {
    flag: "--max-bytes",
    key: "retry.max_bytes",
    help: "maximum size of the bodies of these messages",
    default: 4 * 1024 ** 3,
  }),
  retryMaxBody: setting(size(), {
    flag: "--max-body",
    key: "retry.max_body",
    help: "maximum size of the body of one message, up to 256MiB",
    default: 16 * 1024 ** 2,
  }),
} satisfies SettingTable;

/** The policy: when a message is tried again, and when it is given up. */
export const retryPolicySettings = {
  retryInterval: setting(duration(), {
    flag: "--interval",
    key: "retry.interval",
    help: "time between a failure and the next try; the first delay of a growing backoff",
    default: 3000,
  }),
  retryMaxRetries: setting(integer("count", { min: 0, max: 1_000_000 }), {
    flag: "--max-retries",
    key: "retry.max_retries",
    help: "redeliveries after the first try: N+1 tries in all",
    default: 10,
  }),
  retryBackoff: setting(choice(["fixed", "linear", "exponential", "list"]), {
    flag: "--backoff",
    key: "retry.backoff",
    help: "how the time between tries grows; list uses --delays",
    default: "fixed",
  }),
  retryDelays: setting(list("duration", { eachCounts: true }), {
    flag: "--delays",
    key: "retry.delays",
    help: "for --backoff list: the time before each redelivery; the last one repeats",
  }),
  retryMaxDelay: setting(duration(), {
    flag: "--max-delay",
    key: "retry.max_delay",
    help: "maximum time between tries; Retry-After of the backend may be longer, up to a day",
    default: 3_600_000,
  }),
  retryJitter: setting(choice(["none", "full", "equal"]), {
    flag: "--jitter",
    key: "retry.jitter",
    help: "full: a random time up to the delay; equal: half of the delay and a random part of the other half",
    default: "none",
  }),
  retryMaxElapsed: setting(duration({ minMs: 1 }), {
    flag: "--max-elapsed",
    key: "retry.max_elapsed",
    help: "no try starts later than this after the message was accepted",
    unset: "no limit",
  }),
  retryOn: setting(list("code"), {
    flag: "--retry-on",
    key: "retry.retry_on",
    help: "exit codes or HTTP statuses that are retried, such as 65,5xx,404-410",
    unset: "all failures except those of --no-retry-on",
  }),
  retryNoRetryOn: setting(list("code"), {
    flag: "--no-retry-on",
    key: "retry.no_retry_on",
    help: "exit codes or HTTP statuses that are final: the message is dead immediately; overrides --retry-on",
    unset: "exit codes 64,65,77,78,126,127; HTTP 4xx except 408, 425, 429",
  }),
  retryAttemptTimeout: setting(duration({ minMs: 1 }), {
    flag: "--attempt-timeout",
    key: "retry.attempt_timeout",
    help: "a try that takes longer is stopped and counts as failed",
    default: 60_000,
  }),
  retryMaxCrashes: setting(integer("count", { min: 1, max: 1000 }), {
    flag: "--max-crashes",
    key: "retry.max_crashes",
    help: "a message is dead after its processor died this often during a try; counted separately from the tries",
    default: 3,
  }),
  retryDeadLetter: setting(text("store|drop|file:PATH|exec:LINE|topic:NAME|kafka://BROKER/TOPIC"), {
    flag: "--dead-letter",
    once: true,
    key: "retry.dead_letter",
    help:
      "destination of dead letters: they stay in the store, are dropped, or become a line of JSON in a file, the stdin of a " +
      "shell command, a message of a publish/subscribe topic, or a record of a Kafka topic",
    default: "store",
  }),
} satisfies SettingTable;

/** How messages are claimed and tried: for `run` and `serve`. */
export const retryProcessorSettings = {
  retryConcurrency: setting(integer("count", { min: 1, max: 1024 }), {
    flag: "-j, --concurrency",
    key: "retry.concurrency",
    help: "maximum number of tries at the same time",
    default: 1,
  }),
  retryBatch: setting(integer("count", { min: 1, max: 1_000_000 }), {
    flag: "--batch",
    key: "retry.batch",
    help: "claim at most N messages in each --interval, or at each time of --cron",
    unset: "all due messages",
  }),
  retryCron: setting(text("schedule"), {
    flag: "--cron",
    key: "retry.cron",
    help: "claim due messages only at the times of this schedule, five fields as in crontab(5), in local time",
    unset: "as soon as they are due",
  }),
  retryRate: setting(text("count/time"), {
    flag: "--rate",
    key: "retry.rate",
    help: "start at most this many tries per time, such as 10/s or 100/m",
    unset: "no limit",
  }),
  retryOrder: setting(choice(["none", "key", "fifo"]), {
    flag: "--order",
    key: "retry.order",
    help:
      "none: each message when it is due; key: messages with the same --key one after the other; fifo: all one after the other",
    default: "none",
  }),
  retryElect: setting(toggle(), {
    flag: "--elect",
    key: "retry.elect",
    help: "elect one of several processors of a store to try messages; the others wait",
    default: false,
  }),
  retryLease: setting(duration({ minMs: 2000, maxMs: 3_600_000 }), {
    flag: "--lease",
    key: "retry.lease",
    help: "if a processor crashes, another one retries its in-flight messages after this time",
    default: 10_000,
  }),
  retryBreakerFailures: setting(integer("count", { min: 0, max: 1_000_000 }), {
    flag: "--breaker-failures",
    key: "retry.breaker_failures",
    help: "open the circuit breaker after N failures in a row, which stops tries; 0: never",
    default: 0,
  }),
  retryBreakerReset: setting(duration({ minMs: 1 }), {
    flag: "--breaker-reset",
    key: "retry.breaker_reset",
    help: "how long the circuit breaker stays open; then one try decides whether it closes",
    default: 30_000,
  }),
  retryDrainTimeout: setting(duration(), {
    flag: "--drain-timeout",
    key: "retry.drain_timeout",
    help: "how long tries may continue after SIGTERM; then they are stopped and count as failed",
    default: 10_000,
  }),
  retryMetricsListen: setting(text("host:port|unix:PATH"), {
    flag: "--metrics-listen",
    key: "retry.metrics_listen",
    help: "serve /healthz and /metrics (Prometheus) at this address by HTTP; :PORT means this machine only",
    unset: "nothing is served",
  }),
  retryKeepDone: setting(duration(), {
    flag: "--keep-done",
    key: "retry.keep_done",
    help: "how long the store keeps done messages, without their bodies, for show and ls",
    default: 7 * 86_400_000,
  }),
} satisfies SettingTable;

/** Redaction of messages that leave the store: dead letters, and the output of operator commands. */
export const retryRedactSettings = {
  retryRedact: setting(choice(["secrets", "none"]), {
    flag: "--redact",
    key: "retry.redact",
    help:
      "secrets: dead letters that leave the store, and output, have [redacted] instead of credentials: the headers " +
      "Authorization, Proxy-Authorization, Cookie and Set-Cookie, and user and password in a URL; none: nothing is redacted",
    default: "secrets",
  }),
  retryRedactHeaders: setting(list("name"), {
    flag: "--redact-header",
    once: true,
    key: "retry.redact_headers",
    help: "further headers to redact",
    unset: "no others",
  }),
  retryRedactQuery: setting(list("name"), {
    flag: "--redact-query",
    once: true,
    key: "retry.redact_query",
    help: "query parameters to redact, in the path and in any URL",
    unset: "none",
  }),
} satisfies SettingTable;

/** Limits of `serve` for requests at the same time. */
export const retryServeSettings = {
  retryMaxBackendRequests: setting(integer("count", { min: 1, max: 65_536 }), {
    flag: "--max-backend-requests",
    key: "retry.max_backend_requests",
    help:
      "serve: maximum number of requests at the backend at the same time; further ones are stored without a first try",
    default: 256,
  }),
  retryMaxConnections: setting(integer("count", { min: 1, max: 65_536 }), {
    flag: "--max-connections",
    key: "retry.max_connections",
    help: "serve: maximum number of client connections; another one replaces the one that has been idle for longest",
    default: 1024,
  }),
  retryBodyTimeout: setting(duration({ minMs: 1, maxMs: 86_400_000 }), {
    flag: "--body-timeout",
    key: "retry.body_timeout",
    help: "serve: time limit for receiving the body of a request; then it is refused (408)",
    default: 60_000,
  }),
  retryBodyMemory: setting(size(), {
    flag: "--body-memory",
    key: "retry.body_memory",
    help:
      "serve: maximum memory of all requests in progress, half of it for those at the backend; at least twice --max-body",
    unset: "256MiB, or twice --max-body if that is more",
  }),
} satisfies SettingTable;

/** Topics as source and destination: for `run` and `serve`, in addition to the settings of the proxies. */
export const retryTopicSettings = {
  retryFromTopic: setting(text("topic"), {
    flag: "--from-topic",
    once: true,
    key: "retry.from_topic",
    help: "move the messages of this publish/subscribe topic into the store, each once",
    unset: "no topic is read",
  }),
  retryClientId: setting(text("id"), {
    flag: "--client-id",
    key: "retry.client_id",
    help: "client ID for topics: ID puts messages, ID.source gets them, ID.dead-letters puts dead letters",
    unset: "retry- and the random name of the store, which starts the ids of its messages",
  }),
} satisfies SettingTable;

/** All settings of the retry processor. */
export const retrySettings = {
  ...retryStoreSettings,
  ...retryLimitSettings,
  ...retryPolicySettings,
  ...retryProcessorSettings,
  ...retryRedactSettings,
  ...retryServeSettings,
  ...retryTopicSettings,
} satisfies SettingTable;
