/**
 * Sends spans to a collector, in the background: each batch once, within 2 s. Spans that it cannot send are lost, and
 * nothing waits for them; a queue that is full drops further ones.
 */
import type { Clock } from "../support/clock.ts";
import { HttpClient } from "../http/http_client.ts";
import type { ProxyEnvironment } from "../http/proxy_choice.ts";
import { splitRequestUrl } from "../http/request_target.ts";
import { resultWithin } from "../support/deadline.ts";
import { formatDuration } from "../support/duration.ts";
import { countWithNoun, printable } from "../support/text.ts";
import type { OtlpSettings } from "./otlp_settings.ts";
import { encodeOtlpRequest, type TraceSpan } from "./otlp_spans.ts";

/** Maximum number of spans that wait. */
const waitingMax = 4096;
/** Maximum number of spans of a request. */
const batchMax = 512;
/** Maximum time of `close`, in milliseconds. */
const closeMsMax = 2000;
/** Maximum size of a response that is read, in bytes. */
const responseBytesMax = 64 << 10;

export interface TraceExporterOptions {
  readonly settings: OtlpSettings;
  /** Release of baton. */
  readonly version: string;
  readonly clock: Clock;
  /** The variables that name proxies. */
  readonly env: ProxyEnvironment;
  /** Called with a sentence: once for failures that follow each other. */
  readonly onProblem: (sentence: string) => void;
}

export class TraceExporter {
  readonly #options: TraceExporterOptions;
  readonly #client: HttpClient;
  #waiting: TraceSpan[] = [];
  #dropped = 0;
  #isFailing = false;
  /** Number of spans of the request that waits for its response. */
  #sent = 0;
  #sending: Promise<void> | null = null;

  constructor(options: TraceExporterOptions) {
    this.#options = options;
    this.#client = new HttpClient({ clock: options.clock, env: options.env });
  }

  add(spans: readonly TraceSpan[]): void {
    const free = waitingMax - this.#waiting.length;
    this.#waiting.push(...spans.slice(0, free));
    this.#dropped += Math.max(0, spans.length - free);
    this.#sending ??= this.#sendAll();
  }

  /** Resolves when all spans are sent or lost, within 2 s. */
  async close(): Promise<void> {
    const { clock, onProblem, settings: { url } } = this.#options;
    await resultWithin(clock, closeMsMax, this.#sending ?? Promise.resolve());
    // The time limit of the request may end in the same moment, and then it has not been reported yet.
    if (this.#sent > 0) this.#report(`${urlWithoutSecrets(url)}: no response within ${formatDuration(closeMsMax)}`);
    const lost = this.#dropped + this.#waiting.length;
    this.#waiting = [];
    if (lost > 0) onProblem(`${countWithNoun(lost, "span was", "spans were")} not sent: the collector is too slow`);
  }

  /** Reports a problem; null means that the batch was sent. Consecutive failures are reported once. */
  #report(problem: string | null): void {
    if (problem !== null && !this.#isFailing) this.#options.onProblem(`traces were not sent: ${problem}`);
    this.#isFailing = problem !== null;
  }

  async #sendAll(): Promise<void> {
    while (this.#waiting.length > 0) {
      const batch = this.#waiting.splice(0, batchMax);
      this.#sent = batch.length;
      const problem = await this.#send(batch);
      this.#sent = 0;
      this.#report(problem);
    }
    this.#sending = null;
  }

  /** Returns the reason if the spans are lost. Redirections are not followed: another host must not get the headers. */
  async #send(spans: readonly TraceSpan[]): Promise<string | null> {
    const { settings: { url, headers, resource, timeoutMs }, version } = this.#options;
    const request = {
      ...splitRequestUrl(url, new URL(url)),
      method: "POST",
      headers: [...headers, ["content-type", "application/json"] as const],
      body: new TextEncoder().encode(JSON.stringify(encodeOtlpRequest(spans, { resource, version }))),
    };
    const result = await this.#client.send(request, { timeoutMs });
    if (result.kind === "timed_out") {
      return `${urlWithoutSecrets(url)}: no response within ${formatDuration(timeoutMs)}`;
    }
    if (result.kind === "failed") return `${urlWithoutSecrets(url)}: ${printable(result.why)}`;
    const isAccepted = result.status >= 200 && result.status < 300;
    const text = await readResponse(result.body);
    result.done();
    return isAccepted ? rejectedSpans(text) : `${urlWithoutSecrets(url)} responded with status ${result.status}`;
  }
}

/** Returns the address without parts that may be secret. */
function urlWithoutSecrets(url: string): string {
  const { protocol, host, pathname } = new URL(url);
  return `${protocol}//${host}${pathname}`;
}

/** Empty for a response that is too long, or cannot be read: its status is enough. */
async function readResponse(body: AsyncIterable<Uint8Array>): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  try {
    for await (const chunk of body) {
      bytes += chunk.byteLength;
      if (bytes > responseBytesMax) return "";
      chunks.push(chunk);
    }
  } catch {
    return "";
  }
  return Buffer.concat(chunks).toString();
}

/** The `partialSuccess` of a response: the collector took the request and refused some spans. */
function rejectedSpans(text: string): string | null {
  try {
    const { partialSuccess } = JSON.parse(text) as {
      readonly partialSuccess?: { readonly rejectedSpans?: unknown; readonly errorMessage?: unknown };
    };
    const count = Number(partialSuccess?.rejectedSpans ?? 0);
    if (!(count > 0)) return null;
    const why = typeof partialSuccess?.errorMessage === "string" ? `: ${printable(partialSuccess.errorMessage)}` : "";
    return `the collector refused ${countWithNoun(count, "span")}${why}`;
  } catch {
    return null; // status 200 is enough
  }
}
