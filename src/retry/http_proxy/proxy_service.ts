/** The service behind the proxy: its store and, if it has one, its processor. Defines how both end after a signal. */
import { stopRequestLogger, TwoStageStopListener } from "../../base/process/supervise/two_stage_stop.ts";
import { CleanupScope, onAbort, whenAborted } from "../../base/support/abort.ts";
import { systemClock } from "../../base/support/clock.ts";
import type { Log } from "../../base/support/log.ts";
import { openServiceStore, type StoreLocation } from "../queue/open_retry_store.ts";
import type { StoreClient } from "../queue/store_methods.ts";
import type { StoreRules } from "../queue/store_rules.ts";
import type { BackendCallGate, RetryHttpProxy } from "./retry_http_proxy.ts";

const stopSignals = ["SIGTERM", "SIGINT", "SIGHUP"] as const;

export interface ProxyService extends AsyncDisposable {
  readonly store: StoreClient;
  readonly gate: BackendCallGate | null;
  /** Resolves after `stop`. Rejects when the service cannot continue. */
  run(): Promise<void>;
  stop(): void;
  /** Counts a message that was stored without being tried. */
  countUntried(): void;
}

export async function openStoreOnly(location: StoreLocation, rules: StoreRules): Promise<ProxyService> {
  const ended = Promise.withResolvers<void>();
  ended.promise.catch(() => {}); // `run` reports the error
  const store = await openServiceStore(location, { rules, hooks: { onBroken: (error) => ended.reject(error) } });
  return {
    store,
    gate: null,
    run: () => ended.promise,
    stop: () => ended.resolve(),
    countUntried() {},
    [Symbol.asyncDispose]: () => store.close(),
  };
}

/**
 * Calls `open` after the signal handlers are set. When stopping, stops the proxy before the processor, so that requests
 * in progress can still be stored.
 */
export async function serveUntilStopped(
  service: ProxyService,
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
    service.stop();
  });
  let running: Promise<void> | null = null;
  try {
    await open();
    running = service.run();
    await Promise.race([whenAborted(stop.finish), running]);
    await proxy.close(hurried.signal);
    service.stop();
    if (hurried.signal.aborted) service.stop();
    await running;
  } finally {
    await proxy.close(AbortSignal.abort());
  }
}
