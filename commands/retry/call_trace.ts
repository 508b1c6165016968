/** The span of the first try of `baton retry-processor call`. Loaded only if traces are on. */
import type { TryTrace } from "../../src/retry/targets/target.ts";
import { formatTraceparent, newSpanIn, parseTraceparent, type TraceContext } from "../../src/trace/trace_context.ts";
import type { TraceSource } from "../../src/trace/trace_source.ts";
import { openTraceSource } from "../job/job_trace.ts";
import type { CallCall } from "./call_options.ts";
import type { FirstTryResult } from "./first_try.ts";

export async function openCallTrace({ values, io }: CallCall): Promise<CallTrace> {
  return new CallTrace(await openTraceSource(io, { quiet: values.quiet, passAuth: false }), values.headers ?? []);
}

export class CallTrace implements TryTrace, AsyncDisposable {
  readonly environment: TryTrace["environment"];
  /** Sent with the request. */
  readonly headers: TryTrace["headers"];
  readonly #source: TraceSource;
  readonly #context: TraceContext;
  readonly #parentId: string | null;
  readonly #startMs: number;

  /** `headers`: those of the command line. A traceparent among them is the parent. */
  constructor(source: TraceSource, headers: readonly string[]) {
    const given = headers.map((line) => /^\s*traceparent\s*:(.*)$/is.exec(line)?.[1]).find((value) =>
      value !== undefined
    );
    const parent = given === undefined ? source.parent : parseTraceparent(given);
    const context = newSpanIn(parent);
    const { state } = context;
    this.#source = source;
    this.#context = context;
    this.#parentId = parent?.spanId ?? null;
    this.#startMs = source.now();
    this.environment = source.environment(context);
    this.headers = source.isSending && context.isSampled
      ? [["traceparent", formatTraceparent(context)], ...(state === "" ? [] : [["tracestate", state] as const])]
      : [];
  }

  end(storeName: string, { what, how, outcome, code }: FirstTryResult): void {
    this.#source.add({
      ...{ name: "retry.attempt", context: this.#context, parentId: this.#parentId },
      ...{ startMs: this.#startMs, endMs: this.#source.now() },
      attributes: {
        ...{ "baton.name": storeName, "baton.attempt": 1, "baton.result": outcome, "baton.exit_code": code },
      },
      error: outcome === "done" ? null : `${what} ${how}`,
    });
  }

  /** Resolves when the span is sent or lost, within 2 s. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.#source.close();
  }
}
