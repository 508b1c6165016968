/**
 * The trace of a call that runs a command under a lease: a span for the call, one for its wait, one for the hold.
 * Loaded only if traces are on.
 */
import type { Lease } from "../../base/process/lease.ts";
import { systemClock } from "../../base/support/clock.ts";
import type { Io } from "../../base/terminal/io.ts";
import type { SpanAttributes } from "../../base/trace/otlp_spans.ts";
import { newSpanContext, type TraceContext } from "../../base/trace/trace_context.ts";
import { TraceSource } from "../../base/trace/trace_source.ts";
import { exitCodes } from "../../base/exit_codes.ts";
import { readBuildFacts } from "../../base/support/build.ts";

export interface TracedJobEnd {
  readonly exit_code: number | null;
  readonly signal?: string | null;
  /** Text for people. */
  readonly message: string | null;
}

interface TracedTick {
  readonly tickMs: number;
  readonly attempt: number;
}

export function openTraceSource(
  io: Io,
  { quiet, passAuth }: { readonly quiet: boolean; readonly passAuth: boolean },
): TraceSource {
  const { release: version } = readBuildFacts();
  const onProblem = (sentence: string) => quiet || io.err(`baton: ${sentence}\n`);
  return new TraceSource({ env: io.env, version, clock: systemClock(), passAuth, onProblem });
}

/** The trace span of one item's command in a pool. */
export class ItemTrace {
  readonly #source: TraceSource;
  readonly #context: TraceContext;
  readonly #parentId: string;
  readonly #attributes: SpanAttributes;
  #startMs: number;

  constructor(source: TraceSource, parent: TraceContext, attributes: SpanAttributes) {
    this.#source = source;
    this.#context = newSpanContext(parent);
    this.#parentId = parent.spanId;
    this.#attributes = attributes;
    this.#startMs = source.now();
  }

  /** Returns the variables of the command. */
  startCommand(): Record<string, string | undefined> {
    return this.#source.environment(this.#context);
  }

  start(): void {
    this.#startMs = this.#source.now();
  }

  /** Ends the span. Null means that the command was not started; then there is no span. */
  end(ending: { readonly exitCode: number; readonly message: string | null } | null): void {
    if (ending === null) return;
    const { exitCode, message } = ending;
    this.#source.add({
      name: "pool.item",
      context: this.#context,
      parentId: this.#parentId,
      startMs: this.#startMs,
      endMs: this.#source.now(),
      attributes: { ...this.#attributes, "baton.exit_code": exitCode },
      error: exitCode === exitCodes.SUCCESS ? null : message ?? `exit code ${exitCode}`,
    });
  }
}

export async function openJobTrace({ io, verb, names, quiet, values }: {
  readonly io: Io;
  readonly verb: string;
  readonly names: readonly string[];
  readonly quiet: boolean;
  readonly values: { readonly passAuth?: boolean };
}): Promise<JobTrace> {
  return new JobTrace(await openTraceSource(io, { quiet, passAuth: values.passAuth === true }), verb, { names });
}

export class JobTrace {
  readonly source: TraceSource;
  readonly #name: string;
  readonly #attributes: SpanAttributes;
  readonly #call: TraceContext;
  readonly #hold: TraceContext;
  readonly #startMs: number;
  #heldMs: number | null = null;
  #found: SpanAttributes = {};
  #isTick = false;

  /** `name` is the command's verb. `beganMsAgo` says how long ago its wait began, in milliseconds. */
  constructor(source: TraceSource, name: string, { names, beganMsAgo = 0 }: {
    readonly names: readonly string[];
    readonly beganMsAgo?: number;
  }) {
    this.source = source;
    this.#name = name;
    const [only, ...others] = names;
    this.#attributes = { "baton.name": others.length === 0 ? only : names };
    this.#call = source.newSpan();
    this.#hold = newSpanContext(this.#call);
    this.#startMs = source.now() - beganMsAgo;
  }

  /** Call this when the lease is granted and its command is about to start. Returns the variables of the command. */
  startCommand(
    { leases, tick }: { readonly leases: readonly Lease[]; readonly tick?: TracedTick | undefined },
  ): Record<string, string | undefined> {
    this.#heldMs ??= this.source.now();
    const [token, ...more] = leases.map(({ fencingToken }) => fencingToken.toString());
    this.#found = { "baton.token": more.length === 0 ? token : [token ?? "", ...more] };
    if (tick !== undefined) {
      this.#isTick = true;
      const at = new Date(tick.tickMs).toISOString().replace(".000Z", "Z");
      this.#found = { ...this.#found, "baton.tick": at, "baton.attempt": tick.attempt };
    }
    return this.source.environment(this.#hold);
  }

  startItem(attributes: SpanAttributes): ItemTrace {
    return new ItemTrace(this.source, this.#call, { ...this.#attributes, ...attributes });
  }

  /** Ends all spans. It is not a failure if another host has the tick. */
  end({ exit_code: exitCode, signal = null, message }: TracedJobEnd): void {
    const endMs = this.source.now();
    const isGood = exitCode === exitCodes.SUCCESS || exitCode === exitCodes.SKIPPED;
    const error = isGood ? null : message ?? endText(exitCode, signal);
    const startMs = this.#startMs;
    const heldMs = this.#heldMs;
    const name = this.#isTick ? "tick" : this.#name;
    const kind = this.#isTick || name === "hold" ? "lock" : this.#name;
    const attributes = { ...this.#attributes, ...this.#found };
    const inside = { parentId: this.#call.spanId, attributes };
    const exit = { ...attributes, "baton.exit_code": exitCode, "baton.signal": signal };
    const wait = newSpanContext(this.#call);
    this.source.add(
      {
        name,
        context: this.#call,
        parentId: this.source.parent?.spanId ?? null,
        startMs,
        endMs,
        attributes: exit,
        error,
      },
      ...(name === "pool" ? [] : [{
        ...inside,
        name: `${kind}.wait`,
        context: wait,
        startMs,
        endMs: heldMs ?? endMs,
        error: heldMs === null ? error : null,
      }]),
      ...(heldMs === null
        ? []
        : [{ ...inside, name: `${kind}.hold`, context: this.#hold, startMs: heldMs, endMs, attributes: exit, error }]),
    );
  }

  /** Ends all spans, and sends them. */
  async sendEnd(end: TracedJobEnd): Promise<void> {
    this.end(end);
    await this.source.close();
  }

  /** Ends the spans of a term, and begins the next one. */
  next(end: TracedJobEnd, names: readonly string[]): JobTrace {
    this.end(end);
    return new JobTrace(this.source, this.#name, { names });
  }
}

function endText(exitCode: number | null, signal: string | null): string {
  if (signal !== null) return `ended by ${signal}`;
  return exitCode === null ? "the command was not started" : `exit code ${exitCode}`;
}
