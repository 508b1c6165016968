/** Sends the request of `baton retry-processor call --url`, which is the first try of its message. */
import { StoppedBySignal, StopRequestListener } from "../../src/base/process/supervise/signal_source.ts";
import { errorMessage } from "../../src/base/errors.ts";
import type { HttpClientResponse } from "../../src/base/http/http_client.ts";
import { parseBackend, parseHeaders, parseMethod } from "../../src/retry/targets/backend_request.ts";
import { readRetryAfter } from "../../src/retry/targets/http_target.ts";
import { isRedirectionFollowed, outcomeOfStatus, type RetryRules } from "../../src/retry/targets/outcome.ts";
import { StdoutReaderGone } from "../../src/base/terminal/io.ts";
import { newGuid } from "../../src/base/support/guid.ts";
import { type ExitCode, exitCodes } from "../../src/base/exit_codes.ts";
import type { RetryCallCommandCall } from "./call_options.ts";
import type { FirstTryResult } from "./first_try.ts";
import { openHttpClient } from "./http_options.ts";

/** The statuses that refuse the sender and not the message (RFC 9110, 15.5). */
const denied: ReadonlySet<number> = new Set([401, 403, 407]);

/**
 * Returns a function that sends a body to the URL. Throws USAGE if the URL, the method or the headers cannot be used,
 * or CONFIG for TLS files.
 */
export function makeUrlTry(
  call: RetryCallCommandCall,
  url: string,
  rules: RetryRules,
): (body: Uint8Array) => Promise<FirstTryResult> {
  const { values, io } = call;
  const target = parseBackend(url, { isWhole: true });
  const method = parseMethod(values.method);
  // The key is stored with the message, so that the backend can recognize all tries as the same message.
  const headers = [...parseHeaders(values.headers ?? []), ["Idempotency-Key", newGuid()] as const];
  const what = `${method} ${target.origin}${target.path.replace(/\?.*/s, "")}`;
  const client = openHttpClient(call, { places: [target] });
  return async (body) => {
    using _client = client;
    const head = { kind: "http", ...target, method, headers } as const;
    using stop = new StopRequestListener();
    const { signal } = stop;
    const result = await client.send({ ...target, method, headers, body }, {
      timeoutMs: values.retryAttemptTimeout,
      signal,
      mayFollow: (status) => isRedirectionFollowed(status, rules, values.follow),
    });
    const isInterrupted = () => signal.aborted && isInterruption(signal.reason);
    if (result.kind === "responded") {
      const { status, how } = result;
      const outcome = outcomeOfStatus(status, rules);
      const cut = outcome === "retry" ? null : await printBody(result, io, signal);
      result.done();
      if (cut !== null) io.err(`baton: ${what} ${how}, but ${cut}\n`);
      if (cut !== null && outcome === "done" && isInterrupted()) throw signal.reason;
      const code = outcome === "done" ? exitCodes.IO : finalCode(status);
      return { head, what, how, outcome, retryAfterMs: readRetryAfter(result.headers), code, isCut: cut !== null };
    }
    if (isInterrupted()) {
      io.err(`baton: ${what} was interrupted; NOT STORED\n`);
      throw signal.reason;
    }
    const how = signal.aborted ? "was stopped" : result.why;
    if (result.kind === "failed" && result.isMalformed) {
      return { head, what, how, outcome: "final", retryAfterMs: null, code: exitCodes.BAD_DATA };
    }
    return { head, what, how, outcome: "retry", retryAfterMs: null, code: exitCodes.UNREACHABLE };
  };
}

function finalCode(status: number): ExitCode {
  if (status >= 500 && status < 600) return exitCodes.UNREACHABLE;
  return denied.has(status) ? exitCodes.REFUSED : exitCodes.BAD_DATA;
}

/** Returns true if a user has interrupted the request. Then the message has not failed. */
function isInterruption(reason: unknown): boolean {
  return reason instanceof StoppedBySignal && (reason.signal === "SIGINT" || reason.signal === "SIGQUIT");
}

/**
 * Prints the response as it arrives. Returns why the response is incomplete; null if it is complete. An incomplete
 * response does not change what happens to the message, which the status decides.
 */
async function printBody(
  { body }: HttpClientResponse,
  io: RetryCallCommandCall["io"],
  signal: AbortSignal,
): Promise<string | null> {
  const chunks = body[Symbol.asyncIterator]();
  for (;;) {
    let next: IteratorResult<Uint8Array>;
    try {
      next = await chunks.next();
    } catch (error) {
      return `its response was cut off: ${errorMessage(error)}`;
    }
    if (next.done === true) return null;
    try {
      io.out(next.value);
      await io.written("stdout", signal);
    } catch (error) {
      if (error instanceof StdoutReaderGone) return null; // SIGPIPE ends the command when the message is stored
      io.drop();
      return `its response cannot be printed: ${errorMessage(error)}`;
    }
  }
}
