/**
 * Defines the settings of the retry processor: section `[retry]` of a configuration file, or BATON_RETRY_… in the
 * environment.
 */
import { BatonError } from "../../base/errors.ts";
import {
  flagSetting,
  insecureFlagHelp,
  putSettingsIntoGroup,
  sectionSettingDeclarer,
  setting,
  type SettingTable,
  toggleSetting,
} from "../../base/config/setting.ts";
import {
  choiceType,
  durationType,
  integerType,
  listType,
  type SettingValueType,
  sizeType,
  textType,
  toggleType,
} from "../../base/config/value_types.ts";

const retry = sectionSettingDeclarer("retry.");

export const retryStoreSettings = {
  retryName: retry("name", textType("name"), { help: "name of the message store", default: "default" }),
  retryStore: retry("store", textType("folder|url"), {
    help:
      "folder of the store, on a disk of this machine; or the URL of a PostgreSQL database, which several machines " +
      "share",
    unset: "~/.local/state/baton/retry/NAME; the home directory comes from the user database",
  }),
  retryRequireSync: retry("require_sync", toggleType(), {
    basic: false,
    help: "refuse a database whose commits do not wait for a synchronous standby (78)",
    default: false,
  }),
  retryMigrate: toggleSetting("--migrate", {
    basic: false,
    help: "create the tables of the database, or bring them to the format of this baton; needs a role that may do so",
  }),
  retryMoved: toggleSetting("--moved", {
    basic: false,
    help: "confirm that the database has moved to this cluster and that the original will never be used again",
  }),
} satisfies SettingTable;

/** The size of a body, which cannot exceed the largest size that a store accepts. */
const bodySizeType: SettingValueType<number> = {
  ...sizeType(),
  parse(written) {
    const bytes = sizeType().parse(written);
    if (bytes <= 256 * 1024 ** 2) return bytes;
    throw new BatonError("USAGE", `"${written}" is not a size of at most 256MiB`);
  },
};

export const retryLimitSettings = putSettingsIntoGroup("limits", {
  retryMaxMessages: retry("max_messages", integerType("count", { min: 1, max: 1_000_000_000 }), {
    help: "accept at most this many waiting, in-flight and dead messages; then exit 85",
    default: 1_000_000,
  }),
  retryMaxBytes: retry("max_bytes", sizeType(), {
    help: "maximum size of the bodies of these messages",
    default: 4 * 1024 ** 3,
  }),
  retryMaxBody: retry("max_body", bodySizeType, {
    help: "maximum size of the body of one message, up to 256MiB, in a database 64MiB",
    default: 16 * 1024 ** 2,
  }),
}) satisfies SettingTable;

/** Settings of the policy, which decides when a message is tried again and when it is given up. */
export const retryPolicySettings = putSettingsIntoGroup("policy", {
  retryPolicy: retry("policy", choiceType(["standard", "wso2"]), {
    help:
      "defaults of the next options: standard tries 25 more times in about a day, exponentially with jitter; wso2, " +
      "as WSO2 message processors do, 10 more times, every 3 s",
    default: "standard",
  }),
  retryInterval: retry("interval", durationType(), {
    help: "time between a failure and the next try, or with --backoff the first time, which grows",
    unset: "15s, growing; with wso2 3s",
  }),
  retryMaxRetries: retry("max_retries", integerType("count", { min: 0, max: 1_000_000 }), {
    basic: true,
    help: "retries after the first attempt: N+1 attempts in total",
    unset: "25; with wso2 10",
  }),
  retryBackoff: retry("backoff", choiceType(["fixed", "linear", "exponential", "list"]), {
    help: "how the time between tries grows; list uses --delays",
    unset: "exponential; fixed with --interval or --policy wso2; list with --delays",
  }),
  retryDelays: retry("delays", listType("duration", { eachCounts: true }), {
    help: "for --backoff list: the time before each redelivery; the last one repeats",
  }),
  retryMaxDelay: retry("max_delay", durationType(), {
    help: "maximum time between tries; Retry-After of the backend may be longer, up to a day",
    unset: "2h, or --interval or the longest of --delays if that is more",
  }),
  retryJitter: retry("jitter", choiceType(["none", "full", "equal"]), {
    help: "full: a random time up to the delay; equal: half of the delay and a random part of the other half",
    unset: "equal with an exponential backoff, otherwise none",
  }),
  retryMaxElapsed: retry("max_elapsed", durationType({ minMs: 1 }), {
    help: "stop retrying a message this long after it was accepted",
    unset: "no limit",
  }),
  retryOn: retry("retry_on", listType("code"), {
    help: "exit codes or HTTP statuses from 300 on that are retried, such as 65,5xx,404-410",
    unset: "all failures that --no-retry-on does not name",
  }),
  retryNoRetryOn: retry("no_retry_on", listType("code"), {
    help: "exit codes or HTTP statuses that are final: the message is dead immediately; overrides --retry-on",
    unset: "exit codes 64,65,77,78,126,127; HTTP 3xx, and 4xx except 408, 425, 429",
  }),
  retryAttemptTimeout: retry("attempt_timeout", durationType({ minMs: 1 }), {
    help: "a try that takes longer is stopped and counts as failed",
    default: 60_000,
  }),
  retryMaxCrashes: flagSetting("--max-crashes", integerType("count", { min: 1, max: 1000 }), {
    help: "a message is dead after its processor died this often during a try; counted separately from the tries",
    default: 3,
  }),
  retryDeadLetter: retry("dead_letter", textType("store|drop|file:PATH|exec:LINE|topic:NAME|kafka://BROKER/TOPIC"), {
    basic: true,
    once: true,
    help: "where dead letters go; they stay in the store, are dropped, or become a line of JSON in a file, the " +
      "stdin of a shell command, a message of a publish/subscribe topic, or a record of a Kafka topic",
    default: "store",
  }),
}) satisfies SettingTable;

/** Settings of `run` and `serve` for claiming and trying messages. */
export const retryProcessorSettings = putSettingsIntoGroup("processing", {
  retryConcurrency: flagSetting("-j, --concurrency", integerType("count", { min: 1, max: 1024 }), {
    basic: true,
    help: "maximum number of tries at the same time",
    default: 1,
  }),
  retryBatch: flagSetting("--batch", integerType("count", { min: 1, max: 1_000_000 }), {
    help: "claim at most N messages in each --interval, or at each time of --cron",
    unset: "all due messages",
  }),
  retryCron: flagSetting("--cron", textType("schedule"), {
    help: "claim due messages only at the times of this schedule, in local time: five fields as in crontab(5), or a " +
      "macro such as @daily",
    unset: "as soon as they are due",
  }),
  retryRate: flagSetting("--rate", textType("count/time"), {
    help: "start at most this many tries per second or minute, such as 10/s or 100/m",
    unset: "no limit",
  }),
  retryOrder: retry("order", choiceType(["none", "key", "fifo"]), {
    help: "none: each message when it is due; key: messages with the same --key one after the other; fifo: all one " +
      "after the other",
    default: "none",
  }),
  retryLease: flagSetting("--lease", durationType({ minMs: 2000, maxMs: 3_600_000 }), {
    help: "if a processor crashes, another one retries its in-flight messages after this time",
    default: 10_000,
  }),
  retryDrainTimeout: flagSetting("--drain-timeout", durationType(), {
    help: "how long tries may continue after SIGTERM; then they are stopped and count as failed",
    default: 10_000,
  }),
  retryMetricsListen: retry("metrics_listen", textType("host:port|unix:PATH"), {
    help: "serve /healthz and /metrics (Prometheus) by HTTP at this address; :PORT means this machine only",
    unset: "not served",
  }),
  retryInsecure: retry("insecure", toggleType(), { group: "security", help: insecureFlagHelp, default: false }),
  retryKeepDone: flagSetting("--keep-done", durationType(), {
    help:
      "how long the store keeps done messages, without their bodies, for show and ls; shorter for a busy store on a " +
      "small disk",
    default: 7 * 86_400_000,
  }),
}) satisfies SettingTable;

/** Settings that hide secrets in dead letters that leave the store, and in the output of commands for operators. */
export const retryRedactSettings = putSettingsIntoGroup("output", {
  retryRedact: retry("redact", choiceType(["secrets", "none"]), {
    help:
      "secrets: dead letters that leave the store, and output, have [redacted] instead of credentials: the headers " +
      "Authorization, Proxy-Authorization, Cookie and Set-Cookie, and user and password in a URL; none: nothing is " +
      "redacted",
    default: "secrets",
  }),
  retryRedactHeaders: setting(listType("name"), {
    flag: "--redact-header",
    once: true,
    key: "retry.redact_headers",
    help: "further headers to redact",
    unset: "no others",
  }),
  retryRedactQuery: retry("redact_query", listType("name"), {
    once: true,
    help: "query parameters to redact, in the path and in any URL",
    unset: "none",
  }),
}) satisfies SettingTable;

/** Settings that limit the simultaneous requests of `serve`. */
export const retryServeSettings = putSettingsIntoGroup("limits", {
  retryAnswerStored: retry("answer_stored", integerType("status", { min: 200, max: 599 }), {
    group: "main",
    help: "serve: status of the response to a request that was stored and will be tried again, such as 202",
    unset: "the backend's status, or 502, 503 or 504",
  }),
  retryMaxBackendRequests: flagSetting("--max-backend-requests", integerType("count", { min: 1, max: 65_536 }), {
    help:
      "serve: maximum number of requests at the backend at the same time; further ones are stored without a first try",
    default: 256,
  }),
  retryMaxConnections: flagSetting("--max-connections", integerType("count", { min: 1, max: 65_536 }), {
    help: "serve: maximum number of client connections; another one replaces the one that has been idle for longest",
    default: 1024,
  }),
  retryBodyTimeout: flagSetting("--body-timeout", durationType({ minMs: 1, maxMs: 86_400_000 }), {
    help: "serve: time limit for receiving the body of a request; then it is refused (408)",
    default: 60_000,
  }),
  retryBodyMemory: flagSetting("--body-memory", sizeType(), {
    help: "serve: maximum memory of all requests in progress, half of it for those at the backend; at least twice " +
      "--max-body",
    unset: "256MiB, or twice --max-body if that is more",
  }),
}) satisfies SettingTable;

/** Settings of `run` and `serve` for topics as source and destination. The settings of the proxies are separate. */
export const retryTopicSettings = putSettingsIntoGroup("processing", {
  retryFromTopic: flagSetting("--from-topic", textType("topic"), {
    once: true,
    help: "move the messages of this publish/subscribe topic into the store, each once",
    unset: "no topic is read",
  }),
  retryClientId: flagSetting("--client-id", textType("id"), {
    help: "client ID for topics: ID puts messages, ID.source gets them, ID.dead-letters puts dead letters",
    unset: "retry- and the random name of the store, which starts the ids of its messages",
  }),
}) satisfies SettingTable;

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

export const retryTables = { all: retrySettings };
