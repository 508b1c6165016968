/** The span of a first try, which is made before there is a message. */
import type { SpanAttributes } from "../../trace/otlp_spans.ts";
import { formatTraceparent, newSpanIn, parseTraceparent, type TraceContext } from "../../trace/trace_context.ts";
import type { TraceSource } from "../../trace/trace_source.ts";
import { headerValue, type HttpHeaders } from "./backend_request.ts";
import type { TryTrace } from "./target.ts";

export class FirstTrySpan implements TryTrace {
  readonly environment: TryTrace["environment"];
  readonly headers: HttpHeaders;
  readonly #source: TraceSource;
  readonly #storeName: string;
  readonly #context: TraceContext;
  readonly #parentId: string | null;
  readonly #startMs: number;

  /** `headers`: those of the request, whose traceparent is the parent. Without one the parent is the span around this process. */
  constructor(source: TraceSource, storeName: string, headers: HttpHeaders) {
    const given = headerValue(headers, "traceparent") ?? undefined;
    const parent = given === undefined
      ? source.parent
      : parseTraceparent(given, headerValue(headers, "tracestate") ?? undefined);
    const context = newSpanIn(parent);
    const { state } = context;
    this.#source = source;
    this.#storeName = storeName;
    this.#context = context;
    this.#parentId = parent?.spanId ?? null;
    this.#startMs = source.now();
    this.environment = source.environment(context);
    // A request that is not to be traced keeps its headers.
    this.headers = source.isSending && context.isSampled
      ? [["traceparent", formatTraceparent(context)], ...(state === "" ? [] : [["tracestate", state] as const])]
      : [];
  }

  end(attributes: SpanAttributes, error: string | null): void {
    this.#source.add({
      ...{ name: "retry.attempt", context: this.#context, parentId: this.#parentId },
      ...{ startMs: this.#startMs, endMs: this.#source.now(), error },
      attributes: { "baton.name": this.#storeName, "baton.attempt": 1, ...attributes },
    });
  }
}
