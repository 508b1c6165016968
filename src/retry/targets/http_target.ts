/** Messages to a backend by HTTP. The body of the answer is not kept: its status says all. */
import { messageOf } from "../../errors.ts";
import { onAbort } from "../../support/abort.ts";
import type { Clock } from "../../support/clock.ts";
import { formatDuration } from "../../support/duration.ts";
import type { TryLease } from "../queue/processor_lease.ts";
import type { ClaimedMessage } from "../queue/stored_message.ts";
import type { Target, TryResult } from "./target.ts";
import { outcomeOfStatus, type RetryRules, type TryOutcome } from "./outcome.ts";
import { type BackendRequest, type HttpHeaders, requestOf } from "./backend_request.ts";
import { parseRetryAfter } from "./backend_request.ts";

/** What of an answer is read, so that its sender is not cut off in the middle of a short one. Bytes. */
const answerBytesMax = 256 << 10;

export interface HttpTargetOptions {
  readonly backend: URL;
  readonly method: string;
  readonly headers: HttpHeaders;
  readonly rules: RetryRules;
  readonly timeoutMs: number;
  readonly clock: Clock;
}

export class HttpTarget implements Target {
  readonly #options: HttpTargetOptions;

  constructor(options: HttpTargetOptions) {
    this.#options = options;
  }

  async deliver(message: ClaimedMessage, lease: TryLease): Promise<TryResult> {
    const { rules, timeoutMs, clock } = this.#options;
    const request = requestOf(message.head, message.id, this.#options);
    if (request === null) return tried("final", "its path leads away from --url", null);
    const answer = await callBackend(request, message.body, { timeoutMs, clock, signal: lease.lost, mayReuse: true });
    if (answer.kind === "answered") {
      await drained(answer.response);
      answer.done();
      const { status, headers } = answer.response;
      const outcome = outcomeOfStatus(status, rules);
      if (outcome === "done") return tried("done", null, true);
      const retryAfterMs = parseRetryAfter(headers.get("retry-after"), Date.now());
      return { ...tried(outcome, `was answered with ${status}`, outcome === "final"), end: { outcome, retryAfterMs } };
    }
    if (lease.lost.aborted) {
      return lease.stopped.aborted ? tried("retry", "was ended because baton was", null) : { kind: "lost" };
    }
    return tried("retry", answer.why, false);
  }
}

function tried(outcome: TryOutcome, error: string | null, isHealthy: boolean | null) {
  return { kind: "tried", end: { outcome, retryAfterMs: null }, error, isHealthy } as const;
}

export type BackendResponse =
  /** `done` ends the time limit: to be called when the body was read, or is not wanted. */
  | { readonly kind: "answered"; readonly response: Response; done(): void }
  | { readonly kind: "timed_out" | "failed"; readonly why: string };

/** Sends it, and resolves when the status is there. Never rejects; redirections are answers. */
export async function callBackend(
  { url, method, headers }: BackendRequest,
  body: Uint8Array,
  { timeoutMs, clock, signal, mayReuse = false }: {
    readonly timeoutMs: number;
    readonly clock: Clock;
    readonly signal?: AbortSignal | undefined;
    /** A connection of an earlier one may be taken: cheaper, but it may be just about to be closed. */
    readonly mayReuse?: boolean;
  },
): Promise<BackendResponse> {
  const controller = new AbortController();
  let isLate = false;
  const cancel = clock.after(timeoutMs, () => {
    isLate = true;
    controller.abort(new Error("it took too long"));
  });
  const off = onAbort(signal, (reason) => controller.abort(reason));
  const done = () => {
    cancel();
    off();
  };
  try {
    const pairs = headers.map(([name, value]) => [name, value] as [string, string]);
    const isReused = mayReuse && !resends(method);
    const hasBody = method !== "GET" && method !== "HEAD";
    const response = await fetch(url, {
      method,
      headers: isReused ? pairs : [...pairs, ["connection", "close"]],
      keepalive: isReused,
      redirect: "manual",
      signal: controller.signal,
      ...(hasBody ? { body: body as Uint8Array<ArrayBuffer> } : {}),
    });
    return { kind: "answered", response, done };
  } catch (error) {
    done();
    if (isLate) return { kind: "timed_out", why: `was not answered within ${formatDuration(timeoutMs)}` };
    return { kind: "failed", why: `could not be sent: ${whyNotSent(error)}` };
  }
}

/** With the code once, and without what is said to programmers. */
export function whyNotSent(error: unknown): string {
  const code = (error as NodeJS.ErrnoException).code;
  const message = messageOf(error).replace(/\.? For more information, pass `verbose.*$/s, "");
  return code === undefined || message.startsWith(code) ? message : `${code}: ${message}`;
}

/**
 * Whether `fetch` sends by itself once more when a connection breaks that was kept from an earlier request, so that one try would
 * be two: Bun's does so for what is idempotent, Deno's for everything.
 */
function resends(method: string): boolean {
  return !("Bun" in globalThis) || method !== "POST";
}

/** Reads a short answer to its end; gives up a long one. */
async function drained(response: Response): Promise<void> {
  const { body, headers } = response;
  if (body === null) return;
  let bytes = 0;
  try {
    // One that says how short it is need not be taken piece by piece, which costs as much as the request.
    const length = headers.get("content-length");
    if (length !== null && Number(length) <= answerBytesMax) return void await response.arrayBuffer();
    for await (const chunk of body) if ((bytes += chunk.byteLength) > answerBytesMax) break;
  } catch {
    // the status was there: what breaks off behind it changes nothing
  }
}
