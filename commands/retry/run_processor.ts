/** Runs the processor of a store until a signal, or until it is through. */
import process from "node:process";
import { JobTable } from "../../src/process/proc/job_table.ts";
import { processSignals } from "../../src/process/supervise/signal_source.ts";
import { startGuard } from "../../src/process/guard/guard.ts";
import { listenForStops } from "../../src/process/supervise/stop_signals.ts";
import { BatonError } from "../../src/errors.ts";
import { parseBackend, parseHeaders, parseMethod } from "../../src/retry/targets/backend_request.ts";
import { HttpTarget } from "../../src/retry/targets/http_target.ts";
import type { Target } from "../../src/retry/targets/target.ts";
import { systemClock } from "../../src/support/clock.ts";
import { type ExitCode, exitCodes } from "../exit_codes.ts";
import { checkListenAddress } from "../listen_address.ts";
import { checkLine, CommandTarget } from "./command_target.ts";
import { openTopicWay } from "./open_topic_way.ts";
import { placeOf, retryRulesOf } from "./retry_rules.ts";
import { retryStatusPage } from "./retry_metrics.ts";
import { retryLog } from "./retry_log.ts";
import { type RunCall, runSettings } from "./run.ts";
import { StoreProcessor } from "./store_processor.ts";

const stopSignals = ["SIGTERM", "SIGINT", "SIGHUP"] as const;

export async function runProcessor(call: RunCall): Promise<ExitCode> {
  const { values, sources, io } = call;
  checkWords(call);
  const { exec, topic, once, untilEmpty } = values;
  const { retryMetricsListen } = runSettings;
  checkListenAddress("retryMetricsListen", retryMetricsListen, values.retryMetricsListen, sources);
  const place = placeOf(values, sources);
  const log = retryLog(io, { format: values.log, quiet: values.quiet, verbose: values.verbose });
  if (exec !== undefined) checkLine(exec, io.env["PATH"]);
  const signals = processSignals();
  const guard = startGuard();
  let isBreached = false;
  try {
    const until = once ? "tried" : untilEmpty ? "empty" : "stopped";
    await using topics = await openTopicWay(call, place.folder, topic);
    using putter = topic === undefined || topics === null
      ? null
      : await openTopicTarget(topics, topic, { waits: until === "stopped", log });
    const target: Target = putter?.target ?? httpTarget(call) ?? new CommandTarget({
      line: exec ?? null,
      rules: retryRulesOf(values, sources),
      timeoutMs: values.retryAttemptTimeout,
      killAfterMs: values.killAfter,
      storeName: place.name,
      guard,
      beside: new JobTable(),
      clock: systemClock(),
      hangUpIgnored: signals.hangUpIgnored,
    });
    await using processor = await StoreProcessor.open({
      place,
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
      log("info", "running", `tries the messages of "${place.name}" in ${place.folder}`, {
        folder: place.folder,
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
async function openTopicTarget(...words: Parameters<typeof import("./open_topic_target.ts").openTopicTarget>) {
  return await (await import("./open_topic_target.ts")).openTopicTarget(...words);
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
