/** W3C Trace Context: the identity of a span, as variables and headers carry it. Pure, except for new ids. */
import { createHash, randomBytes } from "node:crypto";

export interface TraceContext {
  /** 32 hexadecimal digits. */
  readonly traceId: string;
  /** 16 hexadecimal digits. */
  readonly spanId: string;
  /** Whether spans of this trace are recorded. */
  readonly isSampled: boolean;
  /** The TRACESTATE, which other systems have added; may be empty. */
  readonly state: string;
}

/**
 * Returns null for an invalid text. A later version begins with the fields of version 00, and may have more after a
 * dash (https://www.w3.org/TR/trace-context/, "Versioning of traceparent").
 */
export function parseTraceparent(text: string | undefined, state = ""): TraceContext | null {
  const [, version, traceId = "", spanId = "", flags = "", more = ""] =
    /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/s.exec(text?.trim() ?? "") ?? [];
  if (version === undefined || version === "ff" || (version === "00" && more !== "")) return null;
  if (/^0+$/.test(traceId) || /^0+$/.test(spanId)) return null;
  return { traceId, spanId, isSampled: (parseInt(flags, 16) & 1) === 1, state };
}

/** A span as the variables TRACEPARENT and TRACESTATE have it. */
export interface SpanVariables {
  readonly traceparent: string;
  readonly tracestate?: string;
}

/** Returns null if the variables name no span. */
export function readSpanVariables(
  { TRACEPARENT, TRACESTATE }: Readonly<Record<string, string | undefined>>,
): SpanVariables | null {
  const context = parseTraceparent(TRACEPARENT, TRACESTATE);
  if (context === null) return null;
  return { traceparent: formatTraceparent(context), ...(context.state === "" ? {} : { tracestate: context.state }) };
}

export function formatTraceparent({ traceId, spanId, isSampled }: TraceContext): string {
  return `00-${traceId}-${spanId}-${isSampled ? "01" : "00"}`;
}

/** A new span in the trace of `parent`; without one in a new trace, which is sampled. */
export function newSpanContext(parent: TraceContext | null): TraceContext {
  const spanId = newId(8);
  return parent === null ? { traceId: newId(16), spanId, isSampled: true, state: "" } : { ...parent, spanId };
}

/** Derives a trace ID from a text. Processes that know only this text then share a trace. */
export function deriveTraceId(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 32);
}

function newId(bytes: number): string {
  const id = randomBytes(bytes).toString("hex");
  return /^0+$/.test(id) ? newId(bytes) : id;
}
