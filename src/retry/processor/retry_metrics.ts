/** Serves /metrics and /healthz of a processor. */
import { type Metric, metricFactory } from "../../base/terminal/metrics_text.ts";
import type { HttpService } from "../../base/http/serve_http.ts";
import { serveLoggedStatusPage } from "../../base/terminal/status_page.ts";
import { messageStates } from "../queue/message_life.ts";
import type { Log } from "../../base/support/log.ts";
import type { StoreProcessor } from "./store_processor.ts";

const { gauge, counter } = metricFactory("baton_retry");

/** Serves the page, if one was requested. */
export function retryStatusPage(
  listen: string | undefined,
  processor: StoreProcessor,
  log: Log,
): Promise<HttpService | null> {
  const page = { health: () => processor.store.call("fullReason"), metrics: () => metricsOf(processor) };
  return serveLoggedStatusPage(listen, page, log);
}

async function metricsOf({ store, processor, counters }: StoreProcessor): Promise<Metric[]> {
  const [totals, isPaused, { oldestMs }, pending, damageCount] = await Promise.all([
    store.call("totals"),
    store.call("isPaused"),
    store.call("waitingTimes"),
    store.call("deadLetterBacklog"),
    store.call("damageCount"),
  ]);
  const counts = Object.fromEntries(messageStates.map((state) => [state, totals[state].count]));
  const bytes = totals.waiting.bytes + totals.in_flight.bytes + totals.dead.bytes;
  return [
    gauge("messages", "Messages by state; done, dropped and cancelled since the store was created", { state: counts }),
    gauge("bytes", "Size of the bodies in the store", bytes),
    gauge(
      "oldest_seconds",
      "Time since the oldest waiting message was accepted",
      oldestMs === null ? 0 : Math.max(0, Date.now() - oldestMs) / 1000,
    ),
    gauge("damaged_rows", "Damaged rows of the store that this process has found", damageCount),
    gauge("paused", "1 while a pause stops all tries", isPaused ? 1 : 0),
    gauge("tries_in_flight", "Tries of this process in flight", processor.inFlight),
    counter("tries_total", "Tries of this process that ended, by the state of the message afterwards", {
      state: counters.ended,
    }),
    counter("reclaimed_total", "Messages taken back from processors that died", counters.reclaimed),
    counter("stale_total", "Tries that ended too late to count", counters.stale),
    counter("leases_lost_total", "How often this process lost its lease", counters.leasesLost),
    counter(
      "dead_letters_forwarded_total",
      "Dead letters that this process delivered to --dead-letter",
      counters.forwarded,
    ),
    counter("ingested_total", "Messages that this process moved from --from-topic into the store", counters.ingested),
    counter("stored_untried_total", "Messages that serve stored without a first try", counters.untried),
    gauge("dead_letters_pending", "Dead letters that are not delivered to --dead-letter yet", pending.count),
    counter(
      "dead_letter_failures_total",
      "How often this process failed to deliver a dead letter or to reach its destination",
      counters.forwardFailures,
    ),
  ];
}
