/** A target whose tries have spans: all tries of a message are in one trace. */
import { deriveTraceId, parseTraceparent, type TraceContext } from "../../base/trace/trace_context.ts";
import type { TraceSource } from "../../base/trace/trace_source.ts";
import type { ClaimedMessage } from "../queue/stored_message.ts";
import type { Target, TryResult } from "./target.ts";
import { parentIn, TrySpan } from "./try_span.ts";

export function tracedTarget(target: Target, source: TraceSource, storeName: string): Target {
  return {
    async deliver(message, lease) {
      const { head } = message;
      const parent = head.kind === "http"
        ? parentIn(head.headers)
        : parseTraceparent(head.trace?.traceparent, head.trace?.tracestate);
      const span = new TrySpan(source, { storeName, parent, trace: traceOf(message) });
      const result = await target.deliver(message, lease, span);
      span.end({
        "baton.message_id": message.id,
        "baton.message_key": message.key,
        "baton.attempt": message.tries + 1,
        "baton.token": String(message.fence),
        "baton.result": result.kind === "tried" ? result.end.outcome : result.kind,
      }, errorOf(result));
      return result;
    },
  };
}

/** The trace of a message that came without one: each processor finds the same for all of its tries. */
function traceOf({ id }: ClaimedMessage): TraceContext {
  return { traceId: deriveTraceId(`baton message ${id}`), spanId: "", isSampled: true, state: "" };
}

function errorOf(result: TryResult): string | null {
  switch (result.kind) {
    case "tried":
      return result.end.outcome === "done" ? null : result.error ?? result.end.outcome;
    case "not_begun":
      return result.why;
    case "lost":
      return "the lease was lost";
    case "breach":
      return result.error.message;
  }
}
