/**
 * The traces of a process: the span around it, the variables that it must not pass on, and the exporter. Loaded only if
 * traces are on.
 */
import { hostname } from "node:os";
import process from "node:process";
import { traceSecrets } from "../config/trace_settings.ts";
import type { Clock } from "../support/clock.ts";
import { readOtlpSettings, type TraceVariables } from "./otlp_settings.ts";
import type { TraceSpan } from "./otlp_spans.ts";
import { formatTraceparent, newSpanContext, parseTraceparent, type TraceContext } from "./trace_context.ts";
import { TraceExporter } from "./trace_exporter.ts";

export interface TraceSourceOptions {
  readonly env: TraceVariables;
  /** Release of baton. */
  readonly version: string;
  readonly clock: Clock;
  /** True: commands inherit variables with credentials. */
  readonly passAuth: boolean;
  readonly onProblem: (sentence: string) => void;
}

export class TraceSource {
  readonly clock: Clock;
  /** The span around this process; null if there is none. */
  readonly parent: TraceContext | null;
  readonly #exporter: TraceExporter | null;
  readonly #withheld: Readonly<Record<string, undefined>>;
  /** Wall clock at time 0 of `clock`. */
  readonly #offsetMs: number;

  constructor({ env, version, clock, passAuth, onProblem }: TraceSourceOptions) {
    this.clock = clock;
    this.parent = parseTraceparent(env["TRACEPARENT"], env["TRACESTATE"]);
    this.#offsetMs = Date.now() - clock.now();
    this.#withheld = passAuth ? {} : Object.fromEntries(traceSecrets.map((name) => [name, undefined]));
    const own = { "service.name": "baton", "service.version": version };
    const host = { "host.name": hostname(), "process.pid": String(process.pid) };
    const settings = readOtlpSettings(env, new Map(Object.entries({ ...own, ...host })));
    const isOn = this.parent?.isSampled !== false;
    if (typeof settings === "string") onProblem(`traces are not sent: ${settings}`);
    this.#exporter = isOn && typeof settings !== "string"
      ? new TraceExporter({ settings, version, clock, env, onProblem })
      : null;
  }

  /** False: no span is sent, and none may become a parent. */
  get isSending(): boolean {
    return this.#exporter !== null;
  }

  /** A new span in the trace of the span around this process. */
  newSpan(): TraceContext {
    return newSpanContext(this.parent);
  }

  /** Variables for a command inside a span. */
  environment(span: TraceContext): Record<string, string | undefined> {
    return {
      ...this.#withheld,
      // A span that is not sent is no parent.
      ...(!this.isSending ? {} : { TRACEPARENT: formatTraceparent(span), TRACESTATE: span.state || undefined }),
    };
  }

  /** The wall clock, which no step of the system's clock disturbs within a span. */
  now(): number {
    return this.#offsetMs + this.clock.now();
  }

  add(...spans: readonly TraceSpan[]): void {
    const sampled = spans.filter(({ context }) => context.isSampled);
    if (sampled.length > 0) this.#exporter?.add(sampled);
  }

  /** Resolves when all spans are sent or lost, within 2 s. */
  async close(): Promise<void> {
    await this.#exporter?.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}
