/** Notices that a request has made no progress for a while, and says so: once, and not again before there was an answer. */
import type { Clock } from "../../support/clock.ts";

/** A request that is under way. */
export interface WatchedRequest {
  /** Since when it has waited for what should be there by now; in the future while it is held back on purpose. */
  sinceMs: number;
}

/** One timer for all requests: thousands are begun and answered within its time. */
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

  /** Whoever was waited for is there. */
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
      // What is held back now may be in trouble sooner: its connection may be lost.
      this.#cancel = this.#clock.after(Math.min(leftMs, this.#afterMs), () => this.#check());
      return;
    }
    this.#isReported = true;
    this.#report(oldest);
  }
}
