/**
 * Spans, and their form in OTLP's JSON: ids in lower-case hexadecimal digits, nanoseconds as decimal texts, enums as
 * numbers (https://opentelemetry.io/docs/specs/otlp/, "JSON Protobuf Encoding"). Pure.
 */
import type { TraceContext } from "./trace_context.ts";

export type SpanAttributes = Readonly<Record<string, string | number | boolean | readonly string[] | null | undefined>>;

export interface TraceSpan {
  readonly name: string;
  readonly context: TraceContext;
  /** Null for the first span of a trace. */
  readonly parentId: string | null;
  /** Wall clock, in milliseconds; may have a fraction. */
  readonly startMs: number;
  readonly endMs: number;
  /** Attributes without a value are left out. */
  readonly attributes: SpanAttributes;
  /** Why it failed, or null if it did not. */
  readonly error: string | null;
}

/** SPAN_KIND_INTERNAL and STATUS_CODE_ERROR of trace.proto. */
const spanKindInternal = 1;
const statusError = 2;

export function encodeOtlpRequest(
  spans: readonly TraceSpan[],
  { resource, version }: { readonly resource: ReadonlyMap<string, string>; readonly version: string },
): object {
  return {
    resourceSpans: [{
      resource: { attributes: attributesOf(Object.fromEntries(resource)) },
      scopeSpans: [{ scope: { name: "baton", version }, spans: spans.map(spanJson) }],
    }],
  };
}

function spanJson({ name, context, parentId, startMs, endMs, attributes, error }: TraceSpan): object {
  return {
    traceId: context.traceId,
    spanId: context.spanId,
    ...(context.state === "" ? {} : { traceState: context.state }),
    ...(parentId === null ? {} : { parentSpanId: parentId }),
    name,
    kind: spanKindInternal,
    startTimeUnixNano: nanoseconds(startMs),
    endTimeUnixNano: nanoseconds(Math.max(startMs, endMs)),
    attributes: attributesOf(attributes),
    status: error === null ? {} : { code: statusError, message: error },
  };
}

/** A number has no place for the nanoseconds of today. */
function nanoseconds(ms: number): string {
  return String(BigInt(Math.round(ms * 1000)) * 1000n);
}

function attributesOf(attributes: SpanAttributes): object[] {
  return Object.entries(attributes).flatMap(([key, value]) =>
    value === null || value === undefined ? [] : [{ key, value: valueOf(value) }]
  );
}

function valueOf(value: NonNullable<SpanAttributes[string]>): object {
  if (typeof value === "string") return { stringValue: value };
  if (typeof value === "boolean") return { boolValue: value };
  if (typeof value === "number") return Number.isInteger(value) ? { intValue: String(value) } : { doubleValue: value };
  return { arrayValue: { values: value.map((stringValue) => ({ stringValue })) } };
}
