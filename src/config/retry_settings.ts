/** Settings of the retry processor: section `[retry]` of a file, BATON_RETRY_… in the environment. */
import { setting, type SettingTable } from "./setting.ts";
import { choice, duration, integer, list, size, text, toggle } from "./value_types.ts";

/** Which store. For every command of it. */
export const retryStoreSettings = {
  retryName: setting(text("name"), {
    flag: "--name",
    key: "retry.name",
    help: "which message store",
    default: "default",
  }),
  retryStore: setting(text("folder"), {
    flag: "--store",
    key: "retry.store",
    help: "the folder of the store; on a disk of this machine",
    unset: "~/.local/state/baton/retry/NAME, home by the user database",
  }),
} satisfies SettingTable;

/** What a store takes in. */
export const retryLimitSettings = {
  retryMaxMessages: setting(integer("count", { min: 1, max: 1_000_000_000 }), {
    flag: "--max-messages",
    key: "retry.max_messages",
    help: "so many messages may wait, be in flight or be dead; one more is refused as full (85)",
    default: 1_000_000,
  }),
  retryMaxBytes: setting(size(), {
    flag: "--max-bytes",
    key: "retry.max_bytes",
    help: "the same by what their bodies take",
    default: 4 * 1024 ** 3,
  }),
  retryMaxBody: setting(size(), {
    flag: "--max-body",
    key: "retry.max_body",
    help: "the longest body of one message, 256MiB at most",
    default: 16 * 1024 ** 2,
  }),
} satisfies SettingTable;

/** When a message is tried again, and what becomes of it in the end. */
export const retryPolicySettings = {
  retryInterval: setting(duration(), {
    flag: "--interval",
    key: "retry.interval",
    help: "the time between a failure and the next try; what grows begins with it",
    default: 3000,
  }),
  retryMaxRetries: setting(integer("count", { min: 0, max: 1_000_000 }), {
    flag: "--max-retries",
    key: "retry.max_retries",
    help: "redeliveries after the first try: N of them are N+1 tries in all",
    default: 10,
  }),
  retryBackoff: setting(choice(["fixed", "linear", "exponential", "list"]), {
    flag: "--backoff",
    key: "retry.backoff",
    help: "how the time between tries grows; list takes it from --delays",
    default: "fixed",
  }),
  retryDelays: setting(list("duration", { eachCounts: true }), {
    flag: "--delays",
    key: "retry.delays",
    help: "for --backoff list: the time before each redelivery, the last one for all that follow",
  }),
  retryMaxDelay: setting(duration(), {
    flag: "--max-delay",
    key: "retry.max_delay",
    help: "no time between tries grows beyond this; what the other side asks for (Retry-After) may, up to a day",
    default: 3_600_000,
  }),
  retryJitter: setting(choice(["none", "full", "equal"]), {
    flag: "--jitter",
    key: "retry.jitter",
    help: "full: a random time up to that one; equal: half of it, and a random part of the other half",
    default: "none",
  }),
  retryMaxElapsed: setting(duration({ minMs: 1 }), {
    flag: "--max-elapsed",
    key: "retry.max_elapsed",
    help: "no try begins later than so long after the message was accepted",
    unset: "no limit",
  }),
  retryOn: setting(list("code"), {
    flag: "--retry-on",
    key: "retry.retry_on",
    help: "exit codes or HTTP statuses that are worth another try, such as 65,5xx,404-410",
    unset: "all failures but those of --no-retry-on",
  }),
  retryNoRetryOn: setting(list("code"), {
    flag: "--no-retry-on",
    key: "retry.no_retry_on",
    help: "those that are final: the message is dead at once; goes before --retry-on",
    unset: "exit codes 64,65,77,78,126,127; HTTP 4xx but 408, 425, 429",
  }),
  retryAttemptTimeout: setting(duration({ minMs: 1 }), {
    flag: "--attempt-timeout",
    key: "retry.attempt_timeout",
    help: "a try that takes longer is ended, and has failed",
    default: 60_000,
  }),
  retryMaxCrashes: setting(integer("count", { min: 1, max: 1000 }), {
    flag: "--max-crashes",
    key: "retry.max_crashes",
    help: "a message during whose tries the processor died so often is dead; counted apart from the tries",
    default: 3,
  }),
  retryDeadLetter: setting(text("store|drop|file:PATH|exec:LINE|topic:NAME|kafka://BROKER/TOPIC"), {
    flag: "--dead-letter",
    once: true,
    key: "retry.dead_letter",
    help:
      "where a message goes that is over without success: stays in the store, is dropped, becomes a line of JSON in a " +
      "file, the stdin of a line of shell, a message of a publish/subscribe topic, or a record of a Kafka topic",
    default: "store",
  }),
} satisfies SettingTable;

/** How messages are taken from the store and tried: for `run` and `serve`. */
export const retryProcessorSettings = {
  retryConcurrency: setting(integer("count", { min: 1, max: 1024 }), {
    flag: "-j, --concurrency",
    key: "retry.concurrency",
    help: "so many tries at once",
    default: 1,
  }),
  retryBatch: setting(integer("count", { min: 1, max: 1_000_000 }), {
    flag: "--batch",
    key: "retry.batch",
    help: "take at most so many messages in each --interval, or at each time of --cron",
    unset: "all that are due",
  }),
  retryCron: setting(text("schedule"), {
    flag: "--cron",
    key: "retry.cron",
    help: "take messages that are due only at the times of this schedule, five fields as in crontab(5), in local time",
    unset: "as soon as they are due",
  }),
  retryRate: setting(text("count/time"), {
    flag: "--rate",
    key: "retry.rate",
    help: "begin at most so many tries in so long, such as 10/s or 100/m",
    unset: "no limit",
  }),
  retryOrder: setting(choice(["none", "key", "fifo"]), {
    flag: "--order",
    key: "retry.order",
    help: "none: each when it is due; key: those of one --key one after the other; fifo: all of them so",
    default: "none",
  }),
  retryElect: setting(toggle(), {
    flag: "--elect",
    key: "retry.elect",
    help: "of several processors of one store one tries what is due, as long as it lives; the others wait",
    default: false,
  }),
  retryLease: setting(duration({ minMs: 2000, maxMs: 3_600_000 }), {
    flag: "--lease",
    key: "retry.lease",
    help: "after a crash of a processor, what it had in flight is tried again so much later, by whom else there is",
    default: 10_000,
  }),
  retryBreakerFailures: setting(integer("count", { min: 0, max: 1_000_000 }), {
    flag: "--breaker-failures",
    key: "retry.breaker_failures",
    help: "after so many failures in a row nothing is tried for a while; 0: never",
    default: 0,
  }),
  retryBreakerReset: setting(duration({ minMs: 1 }), {
    flag: "--breaker-reset",
    key: "retry.breaker_reset",
    help: "for so long; then one try says whether to go on",
    default: 30_000,
  }),
  retryDrainTimeout: setting(duration(), {
    flag: "--drain-timeout",
    key: "retry.drain_timeout",
    help: "how long tries may go on after SIGTERM before they are ended, which counts as a failure",
    default: 10_000,
  }),
  retryMetricsListen: setting(text("host:port|unix:PATH"), {
    flag: "--metrics-listen",
    key: "retry.metrics_listen",
    help: "serve /healthz and /metrics (Prometheus) there by HTTP; :PORT means this machine only",
    unset: "nothing is served",
  }),
  retryKeepDone: setting(duration(), {
    flag: "--keep-done",
    key: "retry.keep_done",
    help: "how long the store remembers what is done, without its body, for show and ls",
    default: 7 * 86_400_000,
  }),
} satisfies SettingTable;

/** What is left out of messages where they leave the store: dead letters, and what an operator is shown. */
export const retryRedactSettings = {
  retryRedact: setting(choice(["secrets", "none"]), {
    flag: "--redact",
    key: "retry.redact",
    help:
      "secrets: dead letters that leave the store, and what is shown, have [redacted] instead of credentials: the headers " +
      "Authorization, Proxy-Authorization, Cookie and Set-Cookie, and user and password in a URL; none: they have all of it",
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

/** What `serve` accepts from callers at the same time. */
export const retryServeSettings = {
  retryMaxBackendRequests: setting(integer("count", { min: 1, max: 65_536 }), {
    flag: "--max-backend-requests",
    key: "retry.max_backend_requests",
    help: "serve: requests at the backend at the same time; one more is stored without a first try",
    default: 256,
  }),
  retryMaxConnections: setting(integer("count", { min: 1, max: 65_536 }), {
    flag: "--max-connections",
    key: "retry.max_connections",
    help: "serve: connections of callers; one more takes the place of the one that is idle for longest",
    default: 1024,
  }),
  retryBodyTimeout: setting(duration({ minMs: 1, maxMs: 86_400_000 }), {
    flag: "--body-timeout",
    key: "retry.body_timeout",
    help: "serve: how long the body of a request may take to arrive; then it is refused (408)",
    default: 60_000,
  }),
  retryBodyMemory: setting(size(), {
    flag: "--body-memory",
    key: "retry.body_memory",
    help:
      "serve: what the requests in progress may take in memory together; half of it for those at the backend. Twice --max-body at least",
    unset: "256MiB, or twice --max-body where that is more",
  }),
} satisfies SettingTable;

/** Messages from a topic, and into one: for `run` and `serve`, beside the proxies' settings. */
export const retryTopicSettings = {
  retryFromTopic: setting(text("topic"), {
    flag: "--from-topic",
    once: true,
    key: "retry.from_topic",
    help: "take what is put into this publish/subscribe topic into the store, each message once",
    unset: "none is read",
  }),
  retryClientId: setting(text("id"), {
    flag: "--client-id",
    key: "retry.client_id",
    help: "the name towards topics: ID puts messages, ID.source gets them, ID.letters puts dead letters",
    unset: "retry-, and the name that stands in front of the ids of the store's messages",
  }),
} satisfies SettingTable;

/** All of them. */
export const retrySettings = {
  ...retryStoreSettings,
  ...retryLimitSettings,
  ...retryPolicySettings,
  ...retryProcessorSettings,
  ...retryRedactSettings,
  ...retryServeSettings,
  ...retryTopicSettings,
} satisfies SettingTable;
