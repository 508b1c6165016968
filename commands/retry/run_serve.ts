/** Serves the HTTP door, and runs the processor of its store, until a signal. */
import process from "node:process";
import { processSignals } from "../../src/process/supervise/signal_source.ts";
import { listenForStops } from "../../src/process/supervise/stop_signals.ts";
import { retryProcessorSettings } from "../../src/config/retry_settings.ts";
import { BatonError } from "../../src/errors.ts";
import { parseBackend } from "../../src/retry/targets/backend_request.ts";
import { HttpTarget } from "../../src/retry/targets/http_target.ts";
import { RetryStore } from "../../src/retry/queue/retry_store.ts";
import { formatAddress } from "../../src/sockets/connection.ts";
import { systemClock } from "../../src/support/clock.ts";
import { type ExitCode, exitCodes } from "../exit_codes.ts";
import { checkListenAddress, listenAddress } from "../listen_address.ts";
import { type CallGate, HttpDoor } from "./http_door.ts";
import { retryStatusPage } from "./retry_metrics.ts";
import { openTopicWay } from "./open_topic_way.ts";
import { type RetryLog, retryLog } from "./retry_log.ts";
import { bodyLimitOf, placeOf, requestMemoryOf, retryRulesOf, storeRulesOf } from "./retry_rules.ts";
import type { ServeCall } from "./serve.ts";
import { StoreProcessor } from "./store_processor.ts";

const stopSignals = ["SIGTERM", "SIGINT", "SIGHUP"] as const;

export async function runServe(call: ServeCall): Promise<ExitCode> {
  const { values, names, sources, io } = call;
  if (names.length > 0) {
    throw new BatonError("USAGE", `"${names[0]}" is too much: serve takes options only; --url names the backend`);
  }
  if (values.url === undefined) {
    throw new BatonError(
      "USAGE",
      "serve needs --url, as in: baton retry-processor serve --listen :8280 --url http://backend:9000/",
    );
  }
  if (values.noProcess && values.retryElect) {
    throw new BatonError(
      "USAGE",
      "serve: with --no-process there is nothing to elect; leave one of it and --elect out",
    );
  }
  if (values.noProcess && values.retryFromTopic !== undefined) {
    throw new BatonError("USAGE", "serve: --from-topic is the processor's, and --no-process has none");
  }
  const backend = parseBackend(values.url);
  const address = listenAddress(values.listen);
  const { retryMetricsListen } = retryProcessorSettings;
  checkListenAddress("retryMetricsListen", retryMetricsListen, values.retryMetricsListen, sources);
  const place = placeOf(values, sources);
  const memoryBytes = requestMemoryOf(values, sources);
  const log = retryLog(io, { format: values.log, quiet: values.quiet, verbose: values.verbose });
  await using service =
    await (values.noProcess ? storeOnly(call, place.folder) : withProcessor(call, backend, place, log));
  const door = new HttpDoor({
    backend,
    store: service.store,
    rules: retryRulesOf(values, sources),
    timeoutMs: values.retryAttemptTimeout,
    bodyBytesMax: bodyLimitOf(values),
    bodyTimeoutMs: values.retryBodyTimeout,
    memoryBytes,
    callsMax: values.retryMaxBackendRequests,
    connectionsMax: values.retryMaxConnections,
    clock: systemClock(),
    gate: service.gate,
    onStored(id, why, isTried) {
      if (!isTried) service.countUntried();
      log("info", "stored", `stored ${id}: the first try ${why}`, { id });
    },
    onTrouble: (why) => log("error", "not_stored", why),
  });
  const open = async () => {
    const where = formatAddress(await door.listen(address));
    const facts = { listen: where, pid: process.pid };
    log("info", "serving", `serves ${backend.href} at ${where}, stores in ${place.folder}`, facts);
  };
  await untilStopped(service, door, { log, drainMs: values.retryDrainTimeout, open });
  return exitCodes.SUCCESS;
}

interface Service extends AsyncDisposable {
  readonly store: RetryStore;
  readonly gate: CallGate | null;
  /** Resolves when it was stopped; rejects when it cannot go on. */
  run(): Promise<void>;
  stop(): void;
  /** For /metrics: a message was stored without a first try. */
  countUntried(): void;
}

async function withProcessor(
  call: ServeCall,
  backend: URL,
  place: ReturnType<typeof placeOf>,
  log: RetryLog,
): Promise<Service> {
  const { values, sources } = call;
  const target = new HttpTarget({
    backend,
    method: "POST",
    headers: [],
    rules: retryRulesOf(values, sources),
    timeoutMs: values.retryAttemptTimeout,
    clock: systemClock(),
  });
  const topics = await openTopicWay(call, place.folder, undefined);
  const processor = await StoreProcessor.open({
    place,
    target,
    values,
    sources,
    log,
    killAfterMs: values.killAfter,
    until: "stopped",
    topics,
  });
  const page = await retryStatusPage(values.retryMetricsListen, processor, log);
  return {
    store: processor.store,
    gate: processor.processor,
    run: () => processor.run(),
    stop: () => processor.stop(),
    countUntried: () => void processor.counters.untried++,
    async [Symbol.asyncDispose]() {
      await page?.close();
      await processor[Symbol.asyncDispose]();
      await topics?.[Symbol.asyncDispose]();
    },
  };
}

async function storeOnly({ values, sources }: ServeCall, folder: string): Promise<Service> {
  const ended = Promise.withResolvers<void>();
  ended.promise.catch(() => {}); // who runs it hears
  const store = await RetryStore.open(folder, {
    rules: storeRulesOf(values, sources),
    hooks: { broken: (error) => ended.reject(error) },
  });
  return {
    store,
    gate: null,
    run: () => ended.promise,
    stop: () => ended.resolve(),
    countUntried() {},
    [Symbol.asyncDispose]: () => store.close(),
  };
}

/** `open` when signals are heard. At the end first the door, so that what it has in its hands can still be stored; then the processor. */
async function untilStopped(
  service: Service,
  door: HttpDoor,
  { log, drainMs, open }: {
    readonly log: RetryLog;
    readonly drainMs: number;
    readonly open: () => Promise<void>;
  },
): Promise<void> {
  const asked = Promise.withResolvers<void>();
  const hurried = new AbortController();
  let cancel = () => {};
  const unlisten = listenForStops(processSignals(), systemClock(), {
    signals: stopSignals,
    first: (signal) => {
      asked.resolve();
      cancel = systemClock().after(drainMs, () => hurried.abort());
      log("info", "stopping", `${signal}: what is under way may end; a second one ends it at once`, { signal });
    },
    again: () => {
      hurried.abort();
      service.stop();
    },
  });
  let running: Promise<void> | null = null;
  try {
    await open();
    running = service.run();
    await Promise.race([asked.promise, running]);
    await door.close(hurried.signal);
    service.stop();
    if (hurried.signal.aborted) service.stop();
    await running;
  } finally {
    await door.close(AbortSignal.abort());
    unlisten();
    cancel();
  }
}
