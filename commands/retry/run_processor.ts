/** Runs the processor of a store until a signal, or until it is through. */
import process from "node:process";
import { JobTable } from "../../src/cli/child/job_table.ts";
import { processSignals } from "../../src/cli/child/signal_source.ts";
import { startGuard } from "../../src/cli/guard/guard.ts";
import { BatonError } from "../../src/errors.ts";
import { parseBackend, parseHeaders } from "../../src/recipes/retry/http/backend_request.ts";
import { HttpTarget } from "../../src/recipes/retry/http/http_target.ts";
import type { Target } from "../../src/recipes/retry/target.ts";
import { systemClock } from "../../src/support/clock.ts";
import { type ExitCode, exitCodes } from "../exit_codes.ts";
import { checkLine, CommandTarget } from "./command_target.ts";
import { placeOf, retryRulesOf } from "./retry_rules.ts";
import { retryStatusPage } from "./retry_metrics.ts";
import { retryLog } from "./retry_log.ts";
import type { RunCall } from "./run.ts";
import { StoreProcessor } from "./store_processor.ts";

const stopSignals = ["SIGTERM", "SIGINT", "SIGHUP"] as const;

export async function runProcessor(call: RunCall): Promise<ExitCode> {
  const { values, names, sources, io } = call;
  if (names.length > 0) {
    throw new BatonError("USAGE", `"${names[0]}" is too much: run takes options only; --exec names a command`);
  }
  const { exec, url, once, untilEmpty } = values;
  if (exec !== undefined && url !== undefined) {
    throw new BatonError("USAGE", "run: only one of --exec and --url can be");
  }
  if (once && untilEmpty) throw new BatonError("USAGE", "run: only one of --once and --until-empty can be");
  if (once && values.retryCron !== undefined) {
    throw new BatonError("USAGE", "run: --once tries now, --cron at its times");
  }
  if (values.retryElect && (once || untilEmpty)) {
    const why = "waits for its turn for as long as another one leads, and --once and --until-empty end by themselves";
    throw new BatonError("USAGE", `run: --elect ${why}`);
  }
  const place = placeOf(values, sources);
  const log = retryLog(io, { format: values.log, quiet: values.quiet, verbose: values.verbose });
  if (exec !== undefined) checkLine(exec, io.env["PATH"]);
  const signals = processSignals();
  const guard = startGuard();
  let isBreached = false;
  try {
    const target: Target = url !== undefined ? httpTarget(call, url) : new CommandTarget({
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
      until: once ? "tried" : untilEmpty ? "empty" : "stopped",
    });
    await using _page = await retryStatusPage(values.retryMetricsListen, processor, log);
    const unlisten = signals.listen(stopSignals, (signal) => {
      log("info", "stopping", `${signal}: what is under way may end; a second one ends it at once`, { signal });
      processor.stop();
    });
    try {
      log("info", "running", `tries the messages of "${place.name}" in ${place.folder}`, {
        folder: place.folder,
        pid: process.pid,
      });
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

function httpTarget({ values, sources }: RunCall, url: string): Target {
  return new HttpTarget({
    backend: parseBackend(url),
    method: values.method,
    headers: parseHeaders(values.headers ?? []),
    rules: retryRulesOf(values, sources),
    timeoutMs: values.retryAttemptTimeout,
    clock: systemClock(),
  });
}
