/** `baton retry-processor serve`: runs the HTTP proxy and the processor of its store until a signal. */
import process from "node:process";
import { defineCommand } from "../command.ts";
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
import { type CallGate, RetryHttpProxy } from "../../src/retry/http_proxy/retry_http_proxy.ts";
import { retryStatusPage } from "../../src/retry/processor/retry_metrics.ts";
import { openTopicClients } from "./topic_options.ts";
import { type RetryLog, retryLog } from "../../src/retry/retry_log.ts";
import { bodyLimitOf, requestMemoryOf, retryRulesOf, storeRulesOf } from "../../src/retry/processor/retry_rules.ts";
import { type StoreLocation, storeLocationOf } from "./retry_store_location.ts";
import { type ServeCall, serveSettings } from "./serve_options.ts";
import { StoreProcessor } from "../../src/retry/processor/store_processor.ts";

export const retryServeCommand = defineCommand({
  name: "retry-processor serve",
  summary: "an HTTP proxy that stores what its backend could not take, and redelivers it",
  usage: "--url URL [--listen ADDRESS] [options]",
  details: [
    "Passes each request to the backend: method, path, headers, body, and its answer back. When the backend cannot be reached the " +
    "caller has a fault at once and the message is stored, on the disk before the fault is sent: 502, 504 when it did not answer within " +
    "--attempt-timeout, 503 when the breaker is open. A status that is worth another try (408, 425, 429, 5xx) is passed on as it came, and " +
    "stored. The header Baton-Message-Id has the stored message's id; without it nothing is stored.",
    "503 with `NOT STORED` in its body: the store is full, or failed. 413: the body is over --max-body. Requests that ask for nothing to be done " +
    "(GET, HEAD, OPTIONS) are passed on and never stored. A fault is JSON, or a SOAP 1.1 fault for who sends a SOAPAction.",
    "A backend that hangs delays no other caller: at most --max-backend-requests are there at the same time, and one more is stored without a " +
    "first try (503 with Baton-Message-Id). A body that does not arrive within --body-timeout is refused (408). When requests in progress take " +
    "--body-memory, no more is read from connections; one that is too slow, or gets no memory within --body-timeout, is refused (503 with Retry-After, " +
    "NOT STORED). A " +
    "connection above --max-connections takes the place of the one that has been without a request for longest.",
    "Every request gets an Idempotency-Key unless it has one, the same for all tries of it: a backend that knows it deals with no message twice.",
    "With --elect each of several answers and stores, and one of them tries what is stored, as with run --elect.",
    "Stored messages are tried again as by run, unless --no-process; with --from-topic also what is put into a topic. It runs until SIGTERM, SIGINT or SIGHUP.",
  ],
  examples: [
    [
      "baton retry-processor serve --name stock --url http://backend:9000/stock --interval 3s --max-retries 10",
      "the article's proxy service: N tries, each T later",
    ],
    [
      "baton retry-processor serve --listen :8280 --url https://backend/api --breaker-failures 5",
      "spare a backend that is down",
    ],
  ],
  settings: serveSettings,
  runsNothing: true,
  run: runServe,
});

const stopSignals = ["SIGTERM", "SIGINT", "SIGHUP"] as const;

async function runServe(call: ServeCall): Promise<ExitCode> {
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
  const location = storeLocationOf(values, sources);
  const memoryBytes = requestMemoryOf(values, sources);
  const log = retryLog(io, { format: values.log, quiet: values.quiet, verbose: values.verbose });
  await using service =
    await (values.noProcess ? storeOnly(call, location.folder) : withProcessor(call, backend, location, log));
  const door = new RetryHttpProxy({
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
    onFailure: (why) => log("error", "not_stored", why),
  });
  const open = async () => {
    const where = formatAddress(await door.listen(address));
    const facts = { listen: where, pid: process.pid };
    log("info", "serving", `serves ${backend.href} at ${where}, stores in ${location.folder}`, facts);
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
  location: StoreLocation,
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
  const topics = await openTopicClients(call, location.folder, undefined);
  const processor = await StoreProcessor.open({
    location,
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
  door: RetryHttpProxy,
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
