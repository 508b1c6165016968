/**
 * Defines `baton retry-processor serve`, which runs the HTTP proxy and the processor of its store until a signal
 * arrives.
 */
import process from "node:process";
import { type CommandCall, defineCommand } from "../command.ts";
import { flagSetting, type SettingTable } from "../../src/base/config/setting.ts";
import { durationType, textType } from "../../src/base/config/value_types.ts";
import {
  retryProcessorSettings,
  retryServeSettings,
  retryStoreSettings,
} from "../../src/retry/settings/retry_settings.ts";
import { BatonError } from "../../src/base/errors.ts";
import type { HttpClient } from "../../src/base/http/http_client.ts";
import type { HttpRequestTarget } from "../../src/base/http/request_target.ts";
import { parseBackend } from "../../src/retry/targets/backend_request.ts";
import { HttpTarget } from "../../src/retry/targets/http_target.ts";
import type { RetryRules } from "../../src/retry/targets/outcome.ts";
import { serviceStoreOpener, type StoreLocation } from "../../src/retry/queue/open_retry_store.ts";
import { formatAddress } from "../../src/base/sockets/connection.ts";
import { systemClock } from "../../src/base/support/clock.ts";
import { type ExitCode, exitCodes } from "../../src/base/exit_codes.ts";
import {
  checkListenAddress,
  parseListenAddressFlag,
  planStatusPageSocket,
  refuseUnprotectedSockets,
} from "../../src/base/config/listen_address.ts";
import { readRequestMemory } from "../../src/retry/http_proxy/request_budget.ts";
import { RetryHttpProxy } from "../../src/retry/http_proxy/retry_http_proxy.ts";
import { retryStatusPage } from "../../src/retry/processor/retry_metrics.ts";
import { openTopicClients, processorSettings } from "./processor_options.ts";
import { httpClientSettings, openHttpClient } from "./http_options.ts";
import { createProcessLog } from "../../src/base/terminal/process_log.ts";
import type { Log } from "../../src/base/support/log.ts";
import { readRetryRules } from "../../src/retry/processor/retry_rules.ts";
import { readStoreLocation } from "../../src/retry/queue/retry_store_location.ts";
import { StoreProcessor } from "../../src/retry/processor/store_processor.ts";
import { describeWhoReachesSocket } from "../../src/base/sockets/socket_reach.ts";
import { stopRequestLogger, TwoStageStopListener } from "../../src/base/process/supervise/two_stage_stop.ts";
import { CleanupScope, onAbort, whenAborted } from "../../src/base/support/abort.ts";

const serveSettings = {
  ...retryStoreSettings,
  listen: flagSetting("--listen", textType("host:port|unix:PATH"), {
    once: true,
    basic: true,
    help: "listen address; :PORT means this machine only, port 0 any free port",
    default: "127.0.0.1:0",
  }),
  url: flagSetting("--url", textType("url"), {
    once: true,
    basic: true,
    help: "URL of the backend; the path of a request is appended",
  }),
  killAfter: flagSetting("--kill-after", durationType(), {
    help: "time between the stop signal and SIGKILL for the command of --dead-letter exec:",
    default: 5000,
  }),
  ...httpClientSettings,
  ...retryServeSettings,
  ...processorSettings,
} satisfies SettingTable;

type ServeCall = CommandCall<typeof serveSettings>;

export const retryServeCommand = defineCommand({
  name: "retry-processor serve",
  summary: "an HTTP proxy that stores requests its backend could not process, and retries them",
  usage: "--url URL [--listen ADDRESS] [options]",
  details: [
    "Forwards each request to the backend (method, path, headers, body) and its response to the client. If the " +
    "backend cannot be reached, the message is stored on the disk, and then the client gets a fault immediately: " +
    "502, or 504 without a response within --attempt-timeout. A temporary status (408, 425, 429, 5xx) is forwarded, " +
    "and the message is stored. The redirections 307 and 308 of a request that could be stored are followed; others " +
    "are forwarded. The response header Baton-Message-Id has the id of the stored message; without it nothing is " +
    "stored.",
    "503 with `NOT STORED` in its body: the store is full; with `MAY BE STORED`: the store failed. 413: the body " +
    "is larger than --max-body. Requests that request no action (GET, HEAD, OPTIONS) are forwarded and never " +
    "stored. A fault is JSON, or a SOAP 1.1 fault if the request has a SOAPAction.",
    "A backend that hangs does not delay other clients: requests above --max-backend-requests are stored without a " +
    "first try (503 with Baton-Message-Id). When requests in progress use --body-memory, connections are not read; a " +
    "request that is too slow, or gets no memory within --body-timeout, is rejected (503 with Retry-After, NOT " +
    "STORED).",
    "Every request gets an Idempotency-Key unless it has one, the same for all its tries: a backend that checks it " +
    "processes no message twice.",
    "Stored messages are tried as by run; with --from-topic also messages of a topic. Runs until SIGTERM, SIGINT or " +
    "SIGHUP.",
  ],
  examples: [
    [
      "baton retry-processor serve --name stock --url http://backend:9000/stock --policy wso2",
      "up to 10 redeliveries, one every 3 s",
    ],
    [
      "baton retry-processor serve --listen :8280 --url http://backend:9000/stock --answer-stored 202",
      "clients get 202 for a request that is tried again later",
    ],
  ],
  settings: serveSettings,
  runsNothing: true,
  isService: true,
  run: runServe,
});

/** Checks the options, and returns the backend. Throws USAGE for options that exclude each other. */
function checkOptions({ values, names }: ServeCall): HttpRequestTarget {
  if (names.length > 0) {
    throw new BatonError(
      "USAGE",
      `unexpected argument "${names[0]}"; serve takes options only, name the backend with --url`,
    );
  }
  if (values.url === undefined) {
    throw new BatonError(
      "USAGE",
      "serve needs --url, as in: baton retry-processor serve --listen :8280 --url http://backend:9000/",
    );
  }
  return parseBackend(values.url);
}

async function runServe(call: ServeCall): Promise<ExitCode> {
  const { values, sources, io } = call;
  const backend = checkOptions(call);
  const address = parseListenAddressFlag(values.listen);
  const { retryMetricsListen } = retryProcessorSettings;
  checkListenAddress("retryMetricsListen", retryMetricsListen, values.retryMetricsListen, sources);
  const sockets = [
    { address, protection: null, isProtected: false },
    ...planStatusPageSocket(values.retryMetricsListen),
  ];
  refuseUnprotectedSockets(sockets, values.retryInsecure);
  const location = readStoreLocation(values, sources);
  const memoryBytes = readRequestMemory(values, sources);
  const log = createProcessLog(io, {
    who: "baton retry-processor",
    format: values.log,
    quiet: values.quiet,
    verbose: values.verbose,
  });
  const rules = readRetryRules(values, sources, { exits: false, statuses: true });
  using client = openHttpClient(call, { places: [backend], log });
  await using service = await openService(call, { backend, location, log, client, rules });
  const { processor } = service;
  const proxy = new RetryHttpProxy({
    client,
    backend,
    store: processor.store,
    rules,
    follow: values.follow,
    timeoutMs: values.retryAttemptTimeout,
    bodyBytesMax: values.retryMaxBody,
    bodyTimeoutMs: values.retryBodyTimeout,
    memoryBytes,
    callsMax: values.retryMaxBackendRequests,
    connectionsMax: values.retryMaxConnections,
    storedStatus: values.retryAnswerStored ?? null,
    clock: systemClock(),
    onStored(id, why, isTried) {
      if (!isTried) processor.counters.untried++;
      log("info", "stored", `stored ${id}: the first try ${why}`, { id });
    },
    onFailure: (why) => log("error", "not_stored", why),
    onCut: (why) => log("warning", "response_cut", why),
  });
  const open = async () => {
    const bound = await proxy.listen(address);
    const where = formatAddress(bound);
    const facts = { listen: where, pid: process.pid };
    const sentence = `serves ${backend.origin}${backend.path} at ${where}, stores in ${location.where}, for ${
      describeWhoReachesSocket(bound, false)
    }`;
    log("info", "serving", sentence, facts);
  };
  await serveUntilStopped(processor, proxy, { log, drainMs: values.retryDrainTimeout, open });
  return exitCodes.SUCCESS;
}

/** The processor of the stored messages, which ends with its status page and its clients of topics. */
interface ServedProcessor extends AsyncDisposable {
  readonly processor: StoreProcessor;
}

async function openService(
  call: ServeCall,
  { backend, location, log, client, rules }: {
    readonly backend: HttpRequestTarget;
    readonly location: StoreLocation;
    readonly log: Log;
    readonly client: HttpClient;
    readonly rules: RetryRules;
  },
): Promise<ServedProcessor> {
  const { values, sources } = call;
  const target = new HttpTarget({
    client,
    backend,
    method: "POST",
    headers: [],
    rules,
    follow: values.follow,
    timeoutMs: values.retryAttemptTimeout,
  });
  const topics = await openTopicClients(call, location, undefined);
  const openStore = serviceStoreOpener(location);
  const processor = await StoreProcessor.open({
    location,
    openStore,
    target,
    values,
    sources,
    log,
    until: "stopped",
    topics,
  });
  const page = await retryStatusPage(values.retryMetricsListen, processor, log);
  return {
    processor,
    async [Symbol.asyncDispose]() {
      await page?.close();
      await processor[Symbol.asyncDispose]();
      await topics?.[Symbol.asyncDispose]();
    },
  };
}

const stopSignals = ["SIGTERM", "SIGINT", "SIGHUP"] as const;

/**
 * Calls `open` after the signal handlers are set. When stopping, stops the proxy before the processor, so that requests
 * in progress can still be stored.
 */
async function serveUntilStopped(
  processor: StoreProcessor,
  proxy: RetryHttpProxy,
  { log, drainMs, open }: {
    readonly log: Log;
    readonly drainMs: number;
    readonly open: () => Promise<void>;
  },
): Promise<void> {
  const what = "stopping after the requests and tries in flight; a second signal stops them immediately";
  using stop = new TwoStageStopListener({ signals: stopSignals, onFirst: stopRequestLogger(log, what) });
  const hurried = new AbortController();
  using waits = new CleanupScope();
  onAbort(stop.finish, () => waits.add(systemClock().startTimer(drainMs, () => hurried.abort())));
  onAbort(stop.now, () => {
    hurried.abort();
    processor.stop();
  });
  let running: Promise<void> | null = null;
  try {
    await open();
    running = processor.run();
    await Promise.race([whenAborted(stop.finish), running]);
    await proxy.close(hurried.signal);
    processor.stop();
    if (hurried.signal.aborted) processor.stop();
    await running;
  } finally {
    await proxy.close(AbortSignal.abort());
  }
}
