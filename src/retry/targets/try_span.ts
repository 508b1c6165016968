/** The span of a try, as it is passed on and sent. */
import type { SpanAttributes } from "../../base/trace/otlp_spans.ts";
import {
  formatTraceparent,
  newSpanContext,
  parseTraceparent,
  type TraceContext,
} from "../../base/trace/trace_context.ts";
import type { TraceSource } from "../../base/trace/trace_source.ts";
import { type HttpHeaders, httpHeaderValue } from "../../base/http/http_headers.ts";
import type { TryTrace } from "./target.ts";

export interface TrySpanOptions {
  readonly storeName: string;
  /** The span around the try; null: there is none. */
  readonly parent: TraceContext | null;
  /** The trace of a try without a parent; a new one when left out. */
  readonly trace?: TraceContext;
}

export class TrySpan implements TryTrace {
  readonly environment: TryTrace["environment"];
  readonly headers: HttpHeaders;
  readonly #source: TraceSource;
  readonly #options: TrySpanOptions;
  readonly #context: TraceContext;
  readonly #startMs: number;

  constructor(source: TraceSource, options: TrySpanOptions) {
    const context = newSpanContext(options.parent ?? options.trace ?? null);
    const { state } = context;
    this.#source = source;
    this.#options = options;
    this.#context = context;
    this.#startMs = source.now();
    this.environment = source.environment(context);
    // A message that is not to be traced keeps its headers.
    this.headers = source.isSending && context.isSampled
      ? [["traceparent", formatTraceparent(context)], ...(state === "" ? [] : [["tracestate", state] as const])]
      : [];
  }

  end(attributes: SpanAttributes, error: string | null): void {
    const { storeName, parent } = this.#options;
    this.#source.add({
      name: "retry.attempt",
      context: this.#context,
      parentId: parent?.spanId ?? null,
      startMs: this.#startMs,
      endMs: this.#source.now(),
      error,
      attributes: { "baton.name": storeName, ...attributes },
    });
  }
}

/** The span that a request came from; null if its headers name none. */
export function parentIn(headers: HttpHeaders): TraceContext | null {
  const value = (name: string) => httpHeaderValue(headers, name) ?? undefined;
  return parseTraceparent(value("traceparent"), value("tracestate"));
}

/**
 * A first try, which is made before there is a message. `headers`: those of the request, whose traceparent is the
 * parent. Without one the parent is the span around this process.
 */
export function firstTrySpan(source: TraceSource, storeName: string, headers: HttpHeaders): TrySpan {
  const isGiven = httpHeaderValue(headers, "traceparent") !== null;
  return new TrySpan(source, { storeName, parent: isGiven ? parentIn(headers) : source.parent });
}
