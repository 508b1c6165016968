/** `baton retry-processor run`: tries the messages of a store until a signal, or until all are tried. */
import process from "node:process";
import { defineCommand } from "../command.ts";
import { JobTable } from "../../src/process/proc/job_table.ts";
import { processSignals } from "../../src/process/supervise/signal_source.ts";
import { startGuard } from "../../src/process/guard/guard.ts";
import { listenForStops } from "../../src/process/supervise/stop_signals.ts";
import { BatonError } from "../../src/errors.ts";
import { parseBackend, parseHeaders, parseMethod } from "../../src/retry/targets/backend_request.ts";
import { HttpTarget } from "../../src/retry/targets/http_target.ts";
import type { Target } from "../../src/retry/targets/target.ts";
import { systemClock } from "../../src/support/clock.ts";
import { type ExitCode, exitCodeOf, exitCodes } from "../exit_codes.ts";
import { checkListenAddress } from "../listen_address.ts";
import { checkExecLine, CommandTarget } from "../../src/retry/targets/command_target.ts";
import { openTopicClients } from "./topic_options.ts";
import { storeLocationOf } from "./retry_store_location.ts";
import { retryRulesOf } from "../../src/retry/processor/retry_rules.ts";
import { retryStatusPage } from "../../src/retry/processor/retry_metrics.ts";
import { retryLog } from "../../src/retry/retry_log.ts";
import { type RunCall, runSettings } from "./run_options.ts";
import { StoreProcessor } from "../../src/retry/processor/store_processor.ts";

export const retryRunCommand = defineCommand({
  name: "retry-processor run",
  summary: "try stored messages again, until they are delivered or dead",
  usage: "[--exec LINE | --url URL | --topic TOPIC] [--from-topic TOPIC] [options]",
  details: [
    "Takes messages from the store when they are due and tries them: the message's own command, or LINE, with the body as stdin, " +
    "or by HTTP. A message that fails N+1 times (--max-retries N), or in a way that no repetition mends, is a dead letter. Runs until " +
    "SIGTERM, SIGINT or SIGHUP; then what is under way may end (--drain-timeout), and a second signal ends it at once.",
    "The command finds BATON_MESSAGE_ID, BATON_MESSAGE_TRY (1 for the first), BATON_MESSAGE_KEY, BATON_MESSAGE_STORE and " +
    "BATON_MESSAGE_FENCE (grows with every try) in its environment. By HTTP the id is the Idempotency-Key, unless the message has one, as those of serve do.",
    "--topic puts each message into a publish/subscribe topic under its id, exactly once; --from-topic takes in what is put into one, and so each " +
    "message once. Somebody has to subscribe to the topic that is put into (else 78). Proxies are named as for baton pubsub client.",
    "No message is tried twice at once, by whatever number of processors. A processor that is killed takes its commands with " +
    "it; what it had in flight waits for the end of its --lease, and is counted as crashed: --max-crashes times, then it is dead.",
    "With --elect several processors of one store elect one that begins tries, and the others wait: killed, another goes on when its " +
    "--session-timeout has ended; told to end, at once. Servers that never answered end it with 69; those that go away later are waited " +
    "for, and nothing is begun meanwhile. The election is called retry- and the store's own name, which baton leader and baton resign take.",
    "A line for --exec that is not found ends run with 127, with no message touched; a Kafka topic for --dead-letter that is not there " +
    "with 78, unless it says ?create=yes. Brokers that are down keep dead letters in the store, and nothing else.",
    "--once and --until-empty end with 69 when all is tried and a dead letter could not be delivered to --dead-letter: it stays in the store. " +
    "What passes by itself, as a Kafka broker that is no longer the leader, is tried again within the run first.",
    "A message whose row is damaged on the disk is not tried: --once and --until-empty try all others, and end with 74. retry-processor " +
    "verify names it, cancel gives it up.",
  ],
  examples: [
    ["baton retry-processor run --name propagate", "each message by its own command, as it was called"],
    ["baton retry-processor run --exec ./propagate.sh -j 4 --backoff exponential --jitter full", "four at once"],
    ["baton retry-processor run --url http://backend:9000/stock --interval 3s --max-retries 10", "by HTTP"],
    ["baton retry-processor run --name stock --elect", "started twice: one tries, the other one waits for its end"],
    [
      "baton retry-processor run --exec ./propagate.sh --dead-letter kafka://broker:9092/MdmDeadLetterQueue",
      "dead letters become records of a Kafka topic: the id as key, the body, and headers",
    ],
    [
      "baton retry-processor run --from-topic orders --exec ./deliver.sh --dead-letter topic:orders.dead",
      "from a topic; what is never delivered into another one",
    ],
    [
      "baton retry-processor run --topic orders --proxies tcp://px1:5001",
      "what was stored on this machine, into a topic",
    ],
    ["baton retry-processor run --once --dead-letter file:dead.jsonl", "from a crontab; dead letters go to a file"],
  ],
  settings: runSettings,
  runsNothing: true,
  run: runProcessor,
});

const stopSignals = ["SIGTERM", "SIGINT", "SIGHUP"] as const;

async function runProcessor(call: RunCall): Promise<ExitCode> {
  const { values, sources, io } = call;
  checkWords(call);
  const { exec, topic, once, untilEmpty } = values;
  const { retryMetricsListen } = runSettings;
  checkListenAddress("retryMetricsListen", retryMetricsListen, values.retryMetricsListen, sources);
  const location = storeLocationOf(values, sources);
  const log = retryLog(io, { format: values.log, quiet: values.quiet, verbose: values.verbose });
  if (exec !== undefined) checkExecLine(exec, io.env["PATH"]);
  const signals = processSignals();
  const guard = startGuard();
  let isBreached = false;
  try {
    const until = once ? "tried" : untilEmpty ? "empty" : "stopped";
    await using topics = await openTopicClients(call, location.folder, topic);
    using putter = topic === undefined || topics === null
      ? null
      : await openTopicTarget(topics, topic, { waits: until === "stopped", log });
    const target: Target = putter?.target ?? httpTarget(call) ?? new CommandTarget({
      line: exec ?? null,
      rules: retryRulesOf(values, sources),
      exitCodeOf,
      timeoutMs: values.retryAttemptTimeout,
      killAfterMs: values.killAfter,
      storeName: location.name,
      guard,
      jobTable: new JobTable(),
      clock: systemClock(),
      hangUpIgnored: signals.hangUpIgnored,
    });
    await using processor = await StoreProcessor.open({
      location,
      target,
      values,
      sources,
      log,
      killAfterMs: values.killAfter,
      until,
      topics,
    });
    await using _page = await retryStatusPage(values.retryMetricsListen, processor, log);
    const unlisten = listenForStops(signals, systemClock(), {
      signals: stopSignals,
      first: (signal) => {
        log("info", "stopping", `${signal}: what is under way may end; a second one ends it at once`, { signal });
        processor.stop();
      },
      again: () => processor.stop(),
    });
    try {
      log("info", "running", `tries the messages of "${location.name}" in ${location.folder}`, {
        folder: location.folder,
        pid: process.pid,
      });
      if (await processor.store.call("isPaused")) {
        log("warning", "paused", "it is paused: nothing is tried until baton retry-processor resume");
      }
      await processor.run();
      return exitCodes.SUCCESS;
    } finally {
      unlisten();
    }
  } catch (error) {
    isBreached = error instanceof BatonError && error.code === "FENCE_BREACH";
    throw error;
  } finally {
    // What could not be killed is left to the guard: the end of its pipe sets it on that.
    if (!isBreached) guard.done();
  }
}

/** Throws USAGE for what does not go together. */
function checkWords({ values, names, sources }: RunCall): void {
  if (names.length > 0) {
    throw new BatonError("USAGE", `"${names[0]}" is too much: run takes options only; --exec names a command`);
  }
  const { exec, url, topic, once, untilEmpty } = values;
  if ([exec, url, topic].filter((way) => way !== undefined).length > 1) {
    throw new BatonError("USAGE", "run: only one of --exec, --url and --topic can be");
  }
  for (const name of ["method", "headers"] as const) {
    if (url !== undefined || !sources.flags.has(name)) continue;
    throw new BatonError("USAGE", `run: ${runSettings[name].flag} is about requests by HTTP, and there is no --url`);
  }
  if (once && untilEmpty) throw new BatonError("USAGE", "run: only one of --once and --until-empty can be");
  if (once && values.retryCron !== undefined) {
    throw new BatonError("USAGE", "run: --once tries now, --cron at its times");
  }
  if (values.retryElect && (once || untilEmpty)) {
    const why = "waits for its turn for as long as another one leads, and --once and --until-empty end by themselves";
    throw new BatonError("USAGE", `run: --elect ${why}`);
  }
}

/** Loaded where there is one. */
async function openTopicTarget(
  ...words: Parameters<typeof import("../../src/retry/targets/topic_target.ts").openTopicTarget>
) {
  return await (await import("../../src/retry/targets/topic_target.ts")).openTopicTarget(...words);
}

/** Null where there is no --url. */
function httpTarget({ values, sources }: RunCall): Target | null {
  if (values.url === undefined) return null;
  return new HttpTarget({
    backend: parseBackend(values.url),
    method: parseMethod(values.method),
    headers: parseHeaders(values.headers ?? []),
    rules: retryRulesOf(values, sources),
    timeoutMs: values.retryAttemptTimeout,
    clock: systemClock(),
  });
}
