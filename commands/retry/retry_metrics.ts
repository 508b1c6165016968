/** What /metrics and /healthz say of a processor. */
import { labelled, type Metric, metricsNamed } from "../../src/terminal/metrics_text.ts";
import { serveStatusPage, type StatusPage } from "../../src/terminal/status_page.ts";
import { messageStates } from "../../src/retry/queue/message_life.ts";
import type { ProcessorEvent } from "../../src/retry/processor/retry_processor.ts";
import { formatAddress } from "../../src/sockets/connection.ts";
import type { RetryLog } from "./retry_log.ts";
import type { StoreProcessor } from "./store_processor.ts";

const { named, gauge, counter } = metricsNamed("baton_retry");

/** Since the process started. */
export class RetryCounters {
  /** Ends of tries, by what became of the message. */
  readonly ended = { done: 0, waiting: 0, dead: 0, dropped: 0 };
  stale = 0;
  reclaimed = 0;
  leasesLost = 0;
  letters = 0;
  taken = 0;
  untried = 0;
  letterTroubles = 0;

  count(event: ProcessorEvent): void {
    if (event.kind === "ended" && event.life.state in this.ended) {
      this.ended[event.life.state as keyof typeof this.ended]++;
    } else if (event.kind === "stale") this.stale++;
    else if (event.kind === "reclaimed") this.reclaimed += event.count;
    else if (event.kind === "lost") this.leasesLost++;
  }
}

/** Null when nothing is to be served. The page says at the log where it is. */
export async function retryStatusPage(
  listen: string | undefined,
  processor: StoreProcessor,
  log: RetryLog,
): Promise<StatusPage | null> {
  if (listen === undefined) return null;
  const page = await serveStatusPage(listen, {
    health: () => healthOf(processor),
    metrics: () => metricsOf(processor),
  });
  log("info", "metrics", `/healthz and /metrics are at ${formatAddress(page.address)}`);
  return page;
}

async function healthOf({ processor, store }: StoreProcessor): Promise<string | null> {
  if (processor.breaker.kind !== "closed") return "the breaker is open: the backend has failed too often";
  return await store.call("whyFull");
}

async function metricsOf({ store, processor, counters, leads }: StoreProcessor): Promise<Metric[]> {
  const [totals, isPaused, { oldestMs }, owed, damages] = await Promise.all([
    store.call("totals"),
    store.call("isPaused"),
    store.call("outlook"),
    store.call("lettersOwed"),
    store.call("damages"),
  ]);
  const counts = Object.fromEntries(messageStates.map((state) => [state, totals[state].count]));
  const bytes = totals.waiting.bytes + totals.in_flight.bytes + totals.dead.bytes;
  return [
    labelled(
      "gauge",
      named("messages"),
      "Messages by their state; done, dropped and cancelled since the store was made",
      "state",
      counts,
    ),
    gauge("bytes", "What the bodies in the store take", bytes),
    gauge(
      "oldest_seconds",
      "How long ago the oldest message that waits was accepted",
      oldestMs === null ? 0 : Math.max(0, Date.now() - oldestMs) / 1000,
    ),
    gauge("damaged_rows", "Rows of the store that this process has found damaged", damages),
    gauge("paused", "1 while nothing is tried because of a pause", isPaused ? 1 : 0),
    gauge("breaker_closed", "0 while the breaker keeps tries back", processor.breaker.kind === "closed" ? 1 : 0),
    gauge("leading", "0 while another process of the store tries what is due (--elect)", leads ? 1 : 0),
    gauge("tries_under_way", "Tries of this process now", processor.inFlight),
    labelled(
      "counter",
      named("tries_total"),
      "Tries of this process that ended, by the state of the message after it",
      "state",
      counters.ended,
    ),
    counter("reclaimed_total", "Messages taken back from processors that died", counters.reclaimed),
    counter("stale_total", "Tries whose end came too late to count", counters.stale),
    counter("leases_lost_total", "How often this process lost its lease", counters.leasesLost),
    counter("letters_total", "Dead letters that this process has sent elsewhere", counters.letters),
    counter("taken_total", "Messages that this process has taken into the store from --from-topic", counters.taken),
    counter("stored_untried_total", "Messages that serve has stored without a first try", counters.untried),
    gauge("letters_owed", "Dead letters that are still to be sent elsewhere", owed.count),
    counter(
      "letter_troubles_total",
      "How often this process could not send a dead letter, or not reach its place",
      counters.letterTroubles,
    ),
  ];
}
