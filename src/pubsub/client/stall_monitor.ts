/** Reports a request that makes no progress: once, and again only after a response. */
import type { Clock } from "../../support/clock.ts";

/** A request in flight. */
export interface WatchedRequest {
  /** Time since which the request waits; in the future while it waits for a message at the server. */
  sinceMs: number;
}

/** Uses one timer for all requests, because thousands start and end within its period. */
export class StallMonitor<Request extends WatchedRequest> implements Disposable {
  readonly #clock: Clock;
  readonly #afterMs: number;
  readonly #report: (request: Request) => void;
  readonly #requests = new Set<Request>();
  #cancel: (() => void) | null = null;
  #isReported = false;

  constructor(
    clock: Clock,
    { afterMs, tell }: { readonly afterMs: number; readonly tell: (request: Request) => void },
  ) {
    this.#clock = clock;
    this.#afterMs = afterMs;
    this.#report = tell;
  }

  begin(request: Request): void {
    this.#requests.add(request);
    if (this.#cancel === null && !this.#isReported) this.#check();
  }

  end(request: Request): void {
    this.#requests.delete(request);
  }

  /** Called when a response has arrived. */
  progressed(): void {
    this.#isReported = false;
  }

  [Symbol.dispose](): void {
    this.#cancel?.();
    this.#requests.clear();
  }

  #check(): void {
    this.#cancel = null;
    let oldest: Request | null = null;
    for (const request of this.#requests) if (oldest === null || request.sinceMs < oldest.sinceMs) oldest = request;
    if (oldest === null) return;
    const leftMs = oldest.sinceMs + this.#afterMs - this.#clock.now();
    if (leftMs > 0) {
      // A request that waits at the server may stall earlier, if its connection is lost.
      this.#cancel = this.#clock.after(Math.min(leftMs, this.#afterMs), () => this.#check());
      return;
    }
    this.#isReported = true;
    this.#report(oldest);
  }
}
