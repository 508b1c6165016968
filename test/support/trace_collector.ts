/** A collector for OTLP over HTTP that accepts JSON, checks each request strictly, and keeps the spans. */
import { z } from "zod";
import { HttpBackend, type Received } from "./http_backend.ts";

const value = z.union([
  z.strictObject({ stringValue: z.string() }),
  z.strictObject({ boolValue: z.boolean() }),
  z.strictObject({ intValue: z.string().regex(/^-?\d+$/) }),
  z.strictObject({ doubleValue: z.number() }),
  z.strictObject({ arrayValue: z.strictObject({ values: z.array(z.strictObject({ stringValue: z.string() })) }) }),
]);
const attributes = z.array(z.strictObject({ key: z.string().min(1), value }));
const nanoseconds = z.string().regex(/^\d{19}$/);
const spanId = z.string().regex(/^(?!0+$)[0-9a-f]{16}$/);

/** ExportTraceServiceRequest of opentelemetry-proto, in JSON; only what is known is accepted. */
const exportRequest = z.strictObject({
  resourceSpans: z.array(z.strictObject({
    resource: z.strictObject({ attributes }),
    scopeSpans: z.array(z.strictObject({
      scope: z.strictObject({ name: z.string(), version: z.string() }),
      spans: z.array(z.strictObject({
        traceId: z.string().regex(/^(?!0+$)[0-9a-f]{32}$/),
        spanId,
        parentSpanId: spanId.optional(),
        traceState: z.string().min(1).optional(),
        name: z.string().min(1),
        kind: z.number().int().min(1).max(5),
        startTimeUnixNano: nanoseconds,
        endTimeUnixNano: nanoseconds,
        attributes,
        status: z.strictObject({ code: z.number().int().min(0).max(2).optional(), message: z.string().optional() }),
      })).min(1),
    })).length(1),
  })).length(1),
});

type SpanJson = z.infer<typeof exportRequest>["resourceSpans"][number]["scopeSpans"][number]["spans"][number];

export interface SeenSpan {
  readonly name: string;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId: string | null;
  readonly state: string | null;
  readonly attributes: Readonly<Record<string, unknown>>;
  readonly error: string | null;
  readonly startNs: bigint;
  readonly endNs: bigint;
  readonly resource: Readonly<Record<string, unknown>>;
}

export class TraceCollector extends HttpBackend {
  readonly problems: string[] = [];
  readonly spans: SeenSpan[] = [];

  constructor() {
    super((request, response) => {
      this.#take(request);
      response.setHeader("content-type", "application/json");
      response.end("{}");
    });
  }

  named(name: string): SeenSpan[] {
    return this.spans.filter((span) => span.name === name);
  }

  #take({ method, headers, body }: Received): void {
    if (method !== "POST" || headers["content-type"] !== "application/json") {
      this.problems.push(`${method} with content-type ${headers["content-type"]}`);
      return;
    }
    const parsed = exportRequest.safeParse(JSON.parse(body));
    if (!parsed.success) {
      this.problems.push(z.prettifyError(parsed.error));
      return;
    }
    for (const { resource, scopeSpans: [scope] } of parsed.data.resourceSpans) {
      for (const span of scope?.spans ?? []) this.spans.push(seen(span, record(resource.attributes)));
    }
  }
}

function seen(span: SpanJson, resource: Readonly<Record<string, unknown>>): SeenSpan {
  const { name, traceId, spanId, parentSpanId = null, traceState = null, status } = span;
  return {
    ...{ name, traceId, spanId, parentSpanId, state: traceState, attributes: record(span.attributes), resource },
    error: status.code === 2 ? status.message ?? "" : null,
    ...{ startNs: BigInt(span.startTimeUnixNano), endNs: BigInt(span.endTimeUnixNano) },
  };
}

function record(list: z.infer<typeof attributes>): Record<string, unknown> {
  return Object.fromEntries(list.map(({ key, value }) => [key, Object.values(value)[0]]));
}
