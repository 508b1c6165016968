/**
 * Defines `baton retry-processor run`, which tries the messages of a store until a signal arrives, or until all
 * messages were tried.
 */
import process from "node:process";
import { retryStoreSettings } from "../../src/retry/settings/retry_settings.ts";
import { type CommandCall, defineCommand } from "../command.ts";
import { flagSetting, type SettingTable, toggleSetting } from "../../src/base/config/setting.ts";
import { durationType, textType } from "../../src/base/config/value_types.ts";
import { JobTable } from "../../src/base/process/proc/job_table.ts";
import { ownSignalSource } from "../../src/base/process/supervise/signal_source.ts";
import { stopRequestLogger, TwoStageStopListener } from "../../src/base/process/supervise/two_stage_stop.ts";
import { onAbort } from "../../src/base/support/abort.ts";
import { type CommandGuard, startGuard } from "../../src/base/process/guard/guard.ts";
import { BatonError } from "../../src/base/errors.ts";
import { parseBackend, parseHeaders, parseMethod } from "../../src/retry/targets/backend_request.ts";
import type { HttpClient } from "../../src/base/http/http_client.ts";
import type { HttpRequestTarget } from "../../src/base/http/request_target.ts";
import type { RetryRules } from "../../src/retry/targets/outcome.ts";
import { HttpTarget, type HttpTargetOptions } from "../../src/retry/targets/http_target.ts";
import { perMessageTarget, type Target } from "../../src/retry/targets/target.ts";
import { systemClock } from "../../src/base/support/clock.ts";
import { type ExitCode, exitCodes, toExitCode } from "../../src/base/exit_codes.ts";
import {
  checkListenAddress,
  planStatusPageSocket,
  refuseUnprotectedSockets,
} from "../../src/base/config/listen_address.ts";
import { checkExecLine, CommandTarget } from "../../src/retry/targets/command_target.ts";
import { checkHttpOptions, httpRequestSettings, openHttpClient } from "./http_options.ts";
import { pausedHint } from "./processor_hint.ts";
import { openTopicClients, processorSettings } from "./processor_options.ts";
import { readStoreLocation } from "../../src/retry/queue/retry_store_location.ts";
import { readRetryRules } from "../../src/retry/processor/retry_rules.ts";
import { retryStatusPage } from "../../src/retry/processor/retry_metrics.ts";
import { requireStoreAt, serviceStoreOpener, type StoreLocation } from "../../src/retry/queue/open_retry_store.ts";
import type { StoreClient } from "../../src/retry/queue/store_methods.ts";
import { createProcessLog } from "../../src/base/terminal/process_log.ts";
import type { Log } from "../../src/base/support/log.ts";
import { formatDuration } from "../../src/base/support/duration.ts";
import { countWithNoun } from "../../src/base/support/text.ts";
import { StoreProcessor } from "../../src/retry/processor/store_processor.ts";

const runSettings = {
  ...retryStoreSettings,
  exec: flagSetting("--exec", textType("line"), {
    once: true,
    basic: true,
    help: "run this shell command for each message, with the body as stdin, instead of the message's own command",
  }),
  url: flagSetting("--url", textType("url"), {
    once: true,
    basic: true,
    help: "send each message to this URL by HTTP, instead of running a command",
  }),
  topic: flagSetting("--topic", textType("topic"), {
    once: true,
    help: "put each message into this publish/subscribe topic, once, instead of running a command",
  }),
  ...httpRequestSettings,
  once: toggleSetting("--once", {
    basic: true,
    help: "try each message that is due now once, then end: for a crontab",
  }),
  create: toggleSetting("--create", {
    help:
      "create the store that --store or --name names, as call, submit and serve do; otherwise a missing one exits " +
      "with 78. Without these two options, run always creates it",
  }),
  untilEmpty: toggleSetting("--until-empty", { basic: true, help: "end when no message is waiting" }),
  killAfter: flagSetting("--kill-after", durationType(), {
    help: "time between the stop signal and SIGKILL for a command",
    default: 5000,
  }),
  ...processorSettings,
} satisfies SettingTable;

type RunCall = CommandCall<typeof runSettings>;

export const retryRunCommand = defineCommand({
  name: "retry-processor run",
  summary: "try stored messages until they are delivered or dead",
  usage: "[--exec LINE | --url URL | --topic TOPIC] [--from-topic TOPIC] [options]",
  details: [
    "Tries messages of the store when they are due: with the message's own command or URL, or LINE, with the body " +
    "as stdin, or by HTTP. A message that fails N+1 times (--max-retries N), or with a final error, becomes a dead " +
    "letter. Runs until SIGTERM, SIGINT or SIGHUP; then tries in flight may end (--drain-timeout), and a second " +
    "signal stops them immediately.",
    "The environment of the command has BATON_MESSAGE_ID, BATON_MESSAGE_TRY (1 for the first), BATON_MESSAGE_KEY, " +
    "BATON_MESSAGE_STORE and BATON_MESSAGE_FENCE (increases with every try). Over HTTP the id is sent as " +
    "Idempotency-Key, unless the message has that header already, as messages stored by serve do.",
    "--topic puts each message into a publish/subscribe topic, exactly once; --from-topic moves the messages of a " +
    "topic into the store, each once. The topic of --topic needs a subscriber (otherwise 78).",
    "Any number of processors may share a store: no message has two tries at the same time. When a processor is " +
    "killed, its commands are killed, too; its messages in flight wait for the end of its --lease and count as " +
    "crashed; after --max-crashes crashes a message is dead.",
    "If the command of --exec is not found, run ends with 127 before any try; if the Kafka topic of --dead-letter " +
    "does not exist, with 78, unless ?create=yes.",
    "--once and --until-empty end with 69 if a dead letter could not be delivered to --dead-letter after all " +
    "tries: it stays in the store.",
    "A message that is damaged on the disk is not tried: --once and --until-empty try all others and end with 74. " +
    "List it with retry-processor verify, cancel it with retry-processor cancel.",
  ],
  examples: [
    ["baton retry-processor run --name propagate", "each message with its own command or URL"],
    [
      "baton retry-processor run --exec ./propagate.sh -j 4 --backoff exponential --jitter full",
      "four at the same time",
    ],
    ["baton retry-processor run --url http://backend:9000/stock --interval 3s --max-retries 10", "by HTTP"],
    [
      "baton retry-processor run --exec ./propagate.sh --dead-letter kafka://broker:9092/MdmDeadLetterQueue",
      "dead letters become records of a Kafka topic: the id as key, the body, and headers",
    ],
    [
      "baton retry-processor run --from-topic orders --exec ./deliver.sh --dead-letter topic:orders.dead",
      "from a topic; dead letters go to another topic",
    ],
    [
      "baton retry-processor run --topic orders --proxies tcp://px1:5001",
      "messages of this machine into a topic",
    ],
    ["baton retry-processor run --once --dead-letter file:dead.jsonl", "from a crontab; dead letters go to a file"],
  ],
  settings: runSettings,
  runsNothing: true,
  isService: true,
  run: runProcessor,
});

const stopSignals = ["SIGTERM", "SIGINT", "SIGHUP"] as const;

async function runProcessor(call: RunCall): Promise<ExitCode> {
  const { values, sources, io } = call;
  checkOptions(call);
  const { exec, topic, once, untilEmpty } = values;
  checkListenAddress("retryMetricsListen", runSettings.retryMetricsListen, values.retryMetricsListen, sources);
  refuseUnprotectedSockets(planStatusPageSocket(values.retryMetricsListen), values.retryInsecure);
  const location = readStoreLocation(values, sources);
  const { log: format, quiet, verbose } = values;
  const log = createProcessLog(io, { who: "baton retry-processor", format, quiet, verbose });
  if (exec !== undefined) checkExecLine(exec, io.env["PATH"]);
  const backend = values.url === undefined ? null : parseBackend(values.url);
  const rules = rulesOf(call);
  const head = { method: parseMethod(values.method), headers: parseHeaders(values.headers ?? []) };
  await requireNamedStore(call, location);
  const guard = startGuard((sentence) => log("error", "guard", sentence));
  let isBreached = false;
  try {
    const until = once ? "tried" : untilEmpty ? "empty" : "stopped";
    // If there is nothing to report, a run from a crontab prints nothing, because cron would mail the output.
    const reportsRun = until === "stopped" || values.verbose || values.log === "json" || io.stderrIsTerminal;
    await using topics = await openTopicClients(call, location, topic);
    using putter = topic === undefined || topics === null
      ? null
      : await (await import("../../src/retry/targets/topic_target.ts"))
        .openTopicTarget(topics, topic, { waits: until === "stopped", log });
    using client = openHttpClient(call, { places: backend === null ? [] : [backend], log });
    const target = putter?.target ?? targetOf(call, location.name, { guard, log, client, backend, head, rules });
    const openStore = serviceStoreOpener(location);
    const options = { location, openStore, target, values, sources, log, until, topics } as const;
    await using processor = await StoreProcessor.open(options);
    await using _page = await retryStatusPage(values.retryMetricsListen, processor, log);
    const what = "stopping after the tries in flight; a second signal stops them immediately";
    using stop = new TwoStageStopListener({ signals: stopSignals, onFirst: stopRequestLogger(log, what) });
    for (const request of [stop.finish, stop.now]) onAbort(request, () => processor.stop());
    const paused = `the store is ${pausedHint(values)}`;
    await processor.run(() =>
      reportStart(processor.store, { location, log: reportsRun ? log : null, warn: log, paused })
    );
    if (until !== "stopped" && reportsRun) await reportWaiting(processor.store, log);
    return exitCodes.SUCCESS;
  } catch (error) {
    isBreached = error instanceof BatonError && error.code === "FENCE_BREACH";
    throw error;
  } finally {
    // The guard kills a process that could not be killed when the pipe of the guard closes.
    if (!isBreached) guard.end();
  }
}

async function reportStart(
  store: StoreClient,
  { location, log, warn, paused }: {
    readonly location: StoreLocation;
    readonly log: Log | null;
    readonly warn: Log;
    /** The sentence for a paused store. */
    readonly paused: string;
  },
): Promise<void> {
  log?.("info", "running", `tries the messages of "${location.name}" in ${location.where}`, {
    folder: location.where,
    pid: process.pid,
  });
  if (await store.call("isPaused")) warn("warning", "paused", paused);
}

/**
 * Returns true if the store must exist already. Only a name on the command line may be mistyped; the environment and
 * files are the same for all commands.
 */
function mustExist({ values: { create, retryMigrate }, sources: { flags } }: RunCall): boolean {
  return (flags.has("retryStore") || flags.has("retryName")) && !create && !retryMigrate;
}

async function requireNamedStore(call: RunCall, location: StoreLocation): Promise<void> {
  if (!mustExist(call)) return;
  try {
    await requireStoreAt(location);
  } catch (error) {
    if (!(error instanceof BatonError) || !error.message.startsWith("There is no message store")) throw error;
    const how = "if its name is right: --create makes it, as call, submit and serve do";
    throw new BatonError("CONFIG", `${error.message}; ${how}`, { cause: error });
  }
}

/** Reports how many messages remain, because a user may wait for messages that are not yet due. */
async function reportWaiting(store: StoreClient, log: Log): Promise<void> {
  const { count } = (await store.call("totals")).waiting;
  const { nextMs } = await store.call("waitingTimes");
  if (count === 0 || nextMs === null) return;
  const next = formatDuration(Math.max(0, nextMs - Date.now()));
  const messages = countWithNoun(count, "message waits", "messages wait");
  log("info", "waiting", `${messages}; the next try is due in ${next}`, { messages: count });
}

/** Checks the options. Throws USAGE for options that exclude each other. */
function checkOptions({ values, names, sources }: RunCall): void {
  if (names.length > 0) {
    throw new BatonError(
      "USAGE",
      `unexpected argument "${names[0]}"; run takes options only, give the command with --exec`,
    );
  }
  const { exec, url, topic, once, untilEmpty } = values;
  if ([exec, url, topic].filter((way) => way !== undefined).length > 1) {
    throw new BatonError("USAGE", "run: use only one of --exec, --url and --topic");
  }
  checkHttpOptions("run", url, sources.flags, { sendsOwn: exec === undefined && topic === undefined });
  if (once && untilEmpty) throw new BatonError("USAGE", "run: use only one of --once and --until-empty");
  if (once && values.retryCron !== undefined) {
    throw new BatonError("USAGE", "run: use only one of --once and --cron");
  }
}

/**
 * Returns the rules for exit codes and statuses. Commands have exit codes, requests have statuses, and messages with a
 * command or URL of their own can have both.
 */
function rulesOf({ values, sources }: RunCall): RetryRules {
  const { exec, url, topic } = values;
  const isOwn = exec === undefined && url === undefined && topic === undefined;
  return readRetryRules(values, sources, { exits: isOwn || exec !== undefined, statuses: isOwn || url !== undefined });
}

interface TargetParts {
  readonly guard: CommandGuard;
  readonly log: Log;
  readonly client: HttpClient;
  /** The backend for all messages; null if each message has a URL of its own. */
  readonly backend: HttpRequestTarget | null;
  readonly head: Pick<HttpTargetOptions, "method" | "headers">;
  readonly rules: RetryRules;
}

/** Returns the target of the messages: --url, the command of --exec, or the command or URL of each message. */
function targetOf(call: RunCall, storeName: string, parts: TargetParts): Target {
  if (parts.backend !== null) return httpTarget(call, parts);
  const commands = commandTarget(call, storeName, parts);
  return call.values.exec === undefined ? perMessageTarget(commands, httpTarget(call, parts)) : commands;
}

function commandTarget({ values }: RunCall, storeName: string, { guard, log, rules }: TargetParts): Target {
  let isTold = false;
  return new CommandTarget({
    line: values.exec ?? null,
    rules,
    exitCodeOf: toExitCode,
    timeoutMs: values.retryAttemptTimeout,
    killAfterMs: values.killAfter,
    storeName,
    guard,
    jobTable: new JobTable(),
    clock: systemClock(),
    hangUpIgnored: ownSignalSource().hangUpIgnored,
    onUnstoppable: (id, what) =>
      log("error", "unstoppable", `the command for message ${id} ${what}; the message is kept until that has ended`),
    onNoCommand() {
      if (isTold) return;
      isTold = true;
      log(
        "warning",
        "no_command",
        "some messages have no command or URL of their own and are not tried: use --exec or --url",
      );
    },
  });
}

function httpTarget({ values }: RunCall, { client, backend, head, rules }: TargetParts): Target {
  return new HttpTarget({
    client,
    backend,
    ...head,
    rules,
    follow: values.follow,
    timeoutMs: values.retryAttemptTimeout,
  });
}
