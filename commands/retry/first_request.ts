/** The first try of `baton retry-processor call --url`. */
import { processSignals, StoppedBySignal, StopRequest } from "../../src/process/supervise/signal_source.ts";
import { messageOf } from "../../src/errors.ts";
import { parseBackend, parseHeaders, parseMethod, parseRetryAfter } from "../../src/retry/targets/backend_request.ts";
import { callBackend, replaceHeaders } from "../../src/retry/targets/http_target.ts";
import { outcomeOfStatus, type RetryRules } from "../../src/retry/targets/outcome.ts";
import type { TryTrace } from "../../src/retry/targets/target.ts";
import { systemClock } from "../../src/support/clock.ts";
import { newGuid } from "../../src/support/guid.ts";
import { writeWhole } from "../../src/support/write_whole.ts";
import { type ExitCode, exitCodes } from "../exit_codes.ts";
import type { CallCall } from "./call_options.ts";
import type { FirstTryResult } from "./first_try.ts";

/** Statuses that refuse the sender, not the message (RFC 9110, 15.5). */
const denied: ReadonlySet<number> = new Set([401, 403, 407]);

/** Returns the function that sends the body. Throws USAGE for a URL, a method or headers that cannot be sent. */
export function makeUrlTry(
  call: CallCall,
  url: string,
  rules: RetryRules,
): (body: Uint8Array, trace: Pick<TryTrace, "headers"> | null) => Promise<FirstTryResult> {
  const { values, io } = call;
  const target = parseBackend(url, { isWhole: true });
  const method = parseMethod(values.method);
  // The key is stored, too, so that all tries are one message for the backend.
  const given = [...parseHeaders(values.headers ?? []), ["Idempotency-Key", newGuid()] as const];
  const path = `${target.pathname}${target.search}`;
  const what = `${method} ${target.origin}${target.pathname}`;
  return async (body, trace) => {
    const sent = replaceHeaders(given, trace?.headers ?? []);
    // The later tries of a request that came with a trace are beside this one, not below it.
    const headers = given.some(([name]) => name.toLowerCase() === "traceparent") ? given : sent;
    const head = { kind: "http", origin: target.origin, method, path, headers } as const;
    using stop = new StopRequest(processSignals());
    const { signal } = stop;
    const options = { timeoutMs: values.retryAttemptTimeout, clock: systemClock(), signal };
    const answer = await callBackend({ url: target.href, method, headers: sent }, body, options);
    if (answer.kind === "responded") {
      const { status, headers: said } = answer.response;
      const outcome = outcomeOfStatus(status, rules);
      const retryAfterMs = parseRetryAfter(said.get("retry-after"), Date.now());
      if (outcome !== "retry") await printBody(answer.response, io);
      else await answer.response.body?.cancel();
      answer.done();
      return { head, what, how: `got status ${status}`, outcome, retryAfterMs, code: finalCode(status) };
    }
    if (signal.aborted && isInterruption(signal.reason)) {
      io.err(`baton: ${what} was interrupted; NOT STORED\n`);
      throw signal.reason;
    }
    const how = signal.aborted ? "was stopped" : answer.why;
    return { head, what, how, outcome: "retry", retryAfterMs: null, code: exitCodes.UNREACHABLE };
  };
}

function finalCode(status: number): ExitCode {
  if (status >= 500) return exitCodes.UNREACHABLE;
  return denied.has(status) ? exitCodes.REFUSED : exitCodes.BAD_DATA;
}

/** A user has interrupted the request, which is not a failure of the message. */
function isInterruption(reason: unknown): boolean {
  return reason instanceof StoppedBySignal && (reason.signal === "SIGINT" || reason.signal === "SIGQUIT");
}

/** Prints the response. The status has arrived, so a failure changes nothing for the message. */
async function printBody(response: Response, io: CallCall["io"]): Promise<void> {
  try {
    writeWhole(1, new Uint8Array(await response.arrayBuffer()));
  } catch (error) {
    io.err(`baton: Cannot read or print the response: ${messageOf(error)}\n`);
  }
}
