/** The trace of the first try of `baton retry-processor call`. Loaded only if traces are on. */
import { parseHeaders } from "../../src/retry/targets/backend_request.ts";
import { firstTrySpan, type TrySpan } from "../../src/retry/targets/try_span.ts";
import { openTraceSource } from "../../src/coordination/job/job_trace.ts";
import type { CallCall } from "./call_options.ts";
import type { FirstTryResult } from "./first_try.ts";

export interface CallTrace extends AsyncDisposable {
  readonly span: TrySpan;
  end(result: FirstTryResult): void;
}

/** Throws USAGE for headers that cannot be sent. */
export async function openCallTrace({ values, io }: CallCall, storeName: string): Promise<CallTrace> {
  const source = await openTraceSource(io, { quiet: values.quiet, passAuth: false });
  const span = firstTrySpan(source, storeName, parseHeaders(values.headers ?? []));
  return {
    span,
    end({ what, how, outcome, code }) {
      const attributes = { "baton.attempt": 1, "baton.result": outcome, "baton.exit_code": code };
      span.end(attributes, outcome === "done" ? null : `${what} ${how}`);
    },
    [Symbol.asyncDispose]: () => source.close(),
  };
}
