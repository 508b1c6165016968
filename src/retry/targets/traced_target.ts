/** A target whose tries have spans: all tries of a message are in one trace. */
import type { TraceSource } from "../../trace/trace_source.ts";
import {
  formatTraceparent,
  newSpanIn,
  parseTraceparent,
  type TraceContext,
  traceIdOf,
} from "../../trace/trace_context.ts";
import type { ClaimedMessage } from "../queue/stored_message.ts";
import type { Target, TryResult } from "./target.ts";

export function tracedTarget(target: Target, source: TraceSource, storeName: string): Target {
  return {
    async deliver(message, lease) {
      const parent = parentOf(message);
      const context = newSpanIn(parent ?? trackOf(message));
      const startMs = source.now();
      const state: [string, string][] = context.state === "" ? [] : [["tracestate", context.state]];
      // A message that is not to be traced keeps its headers.
      const result = await target.deliver(message, lease, {
        environment: source.environment(context),
        headers: source.isSending && context.isSampled ? [["traceparent", formatTraceparent(context)], ...state] : [],
      });
      source.add({
        ...{ name: "retry.attempt", context, parentId: parent?.spanId ?? null, startMs, endMs: source.now() },
        attributes: {
          ...{ "baton.name": storeName, "baton.message_id": message.id, "baton.message_key": message.key },
          ...{ "baton.attempt": message.tries + 1, "baton.token": String(message.fence) },
          "baton.result": result.kind === "tried" ? result.end.outcome : result.kind,
        },
        error: errorOf(result),
      });
      return result;
    },
  };
}

/** The span in which a client has sent the message to the proxy; null: it is unknown. */
function parentOf({ head }: ClaimedMessage): TraceContext | null {
  if (head.kind !== "http") return null;
  const header = (wanted: string) => head.headers.find(([name]) => name.toLowerCase() === wanted)?.[1];
  return parseTraceparent(header("traceparent"), header("tracestate"));
}

/** The trace of a message that came without one: each processor finds the same for all of its tries. */
function trackOf({ id }: ClaimedMessage): TraceContext {
  return { traceId: traceIdOf(`baton message ${id}`), spanId: "", isSampled: true, state: "" };
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
