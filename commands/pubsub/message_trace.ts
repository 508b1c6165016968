/** Sends a span for each message that a command runs for. Loaded only if traces are on. */
import type { Io } from "../../src/base/terminal/io.ts";
import type { TraceSource } from "../../src/base/trace/trace_source.ts";
import { exitCodes } from "../../src/base/exit_codes.ts";
import { openTraceSource } from "../../src/coordination/job/job_trace.ts";

export class MessageTrace implements AsyncDisposable {
  readonly #source: TraceSource;
  readonly #topic: string;

  static async open(io: Io, { topic, quiet }: { readonly topic: string; readonly quiet: boolean }) {
    return new MessageTrace(await openTraceSource(io, { quiet, passAuth: false }), topic);
  }

  private constructor(source: TraceSource, topic: string) {
    this.#source = source;
    this.#topic = topic;
  }

  /** Begins the span of a message, in this process's trace or in a new trace. */
  begin(messageId: number) {
    const context = this.#source.newSpan();
    const startMs = this.#source.now();
    return {
      /** Environment variables for the command. */
      environment: this.#source.environment(context),
      end: (exitCode: number): void => {
        const attributes = {
          "baton.name": this.#topic,
          "baton.message_id": String(messageId),
          "baton.exit_code": exitCode,
        };
        this.#source.add({
          name: "subscribe.message",
          context,
          parentId: this.#source.parent?.spanId ?? null,
          startMs,
          endMs: this.#source.now(),
          attributes,
          error: exitCode === exitCodes.SUCCESS ? null : `exit code ${exitCode}`,
        });
      },
    };
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#source.close();
  }
}
