/**
 * Limits the memory of all requests in progress of a proxy. One half is for requests that are arriving or are stored
 * without being tried; the other half is for requests at the backend. Requests can thus be stored while the backend
 * hangs. A request takes memory only for data that has arrived. When memory is short, the proxy reads only the requests
 * with the fewest missing bytes, as many as can be completed. Requests then never wait for each other, and short
 * requests pass.
 */
import { addOriginToErrors, type ConfigSources } from "../../base/config/resolve_settings.ts";
import type { SettingValues } from "../../base/config/setting.ts";
import { BatonError } from "../../base/errors.ts";
import type { Clock } from "../../base/support/clock.ts";
import { type retryLimitSettings, retryServeSettings } from "../settings/retry_settings.ts";

/** The default memory for the requests in progress, in bytes. */
const requestMemoryBytes = 256 << 20;

/** Returns the memory for requests in bytes. Throws USAGE or CONFIG. */
export function readRequestMemory(
  values: SettingValues<typeof retryLimitSettings & typeof retryServeSettings>,
  sources: ConfigSources,
): number {
  const leastBytes = 2 * values.retryMaxBody;
  const { retryBodyMemory = Math.max(requestMemoryBytes, leastBytes) } = values;
  if (retryBodyMemory >= leastBytes) return retryBodyMemory;
  return addOriginToErrors("retryBodyMemory", retryServeSettings.retryBodyMemory, sources, () => {
    const [written, least] = [retryBodyMemory, leastBytes].map(retryServeSettings.retryBodyMemory.type.format);
    throw new BatonError("USAGE", `"${written}" is less than twice --max-body (${least})`);
  });
}

export interface RequestBudgetOptions {
  readonly bytesMax: number;
  /** Maximum bytes of memory for one request; at most half of `bytesMax`. */
  readonly requestBytesMax: number;
  /** The most requests at the backend at the same time. */
  readonly callsMax: number;
  readonly clock: Clock;
}

/** The operations of a request that has not arrived completely. */
export interface ArrivingRequest {
  /** Stops reading the request until `resume`. */
  pause(): void;
  resume(): void;
  /** Refuses the request because it is too slow. */
  refuse(): void;
}

/** A request is slow if fewer than `bytes` of it arrived within `ms`, although it was being read. */
export const slowRequestLimits = { bytes: 16 << 10, ms: 5000 };
const checkEveryMs = 1000;

export class RequestBudget {
  readonly #options: RequestBudgetOptions;
  readonly #unfinished = new Set<RequestMemoryShare>();
  #calls = 0;
  /** The bytes of requests that are arriving or being stored, and of requests at the backend. */
  readonly #bytes = { received: 0, sent: 0 };
  /** True while some requests may be paused. */
  #isMemoryShort = false;
  #cancelMemoryCheck: (() => void) | null = null;

  constructor(options: RequestBudgetOptions) {
    this.#options = options;
  }

  get bytes(): number {
    return this.#bytes.received + this.#bytes.sent;
  }

  get calls(): number {
    return this.#calls;
  }

  /** Starts counting a request whose head has `bytes` bytes. `left` bytes have not arrived yet. */
  openShare(
    { bytes, left }: { readonly bytes: number; readonly left: number },
    arriving: ArrivingRequest,
  ): RequestMemoryShare {
    const share = new RequestMemoryShare({ bytes, left, nowMs: this.#options.clock.now() }, arriving);
    this.#unfinished.add(share);
    this.#bytes.received += bytes;
    this.#update();
    return share;
  }

  addReceived(share: RequestMemoryShare, bytes: number): void {
    share.addReceived(bytes, this.#options.clock.now());
    this.#bytes.received += bytes;
    this.#update();
  }

  finishReading(share: RequestMemoryShare): void {
    if (this.#unfinished.delete(share)) this.#update();
  }

  /** Returns true if the request may go to the backend now. */
  mayCall({ bytes }: RequestMemoryShare): boolean {
    const { callsMax, bytesMax } = this.#options;
    return this.#calls < callsMax && this.#bytes.sent + bytes <= bytesMax / 2;
  }

  beginCall(share: RequestMemoryShare): void {
    this.#calls++;
    this.#bytes.received -= share.bytes;
    this.#bytes.sent += share.bytes;
    share.half = "sent";
    share.isAtBackend = true;
    this.#update();
  }

  /** Ends the call of a request. Its memory stays in the backend's half. A second call changes nothing. */
  endCall(share: RequestMemoryShare): void {
    if (share.isAtBackend) this.#calls--;
    share.isAtBackend = false;
  }

  /** Frees the request's memory. A second call changes nothing. */
  release(share: RequestMemoryShare): void {
    this.endCall(share);
    this.#unfinished.delete(share);
    this.#bytes[share.half] -= share.bytes;
    share.bytes = 0;
    this.#update();
  }

  /** Refuses the request that has been slow for the longest time. Returns false if no request is slow. */
  refuseSlow(): boolean {
    const latestMs = this.#options.clock.now() - slowRequestLimits.ms;
    let slowest: RequestMemoryShare | null = null;
    for (const share of this.#unfinished) {
      if (!share.isRead || share.lastQuickMs > latestMs) continue;
      if (slowest === null || share.lastQuickMs < slowest.lastQuickMs) slowest = share;
    }
    if (slowest === null) return false;
    this.release(slowest);
    slowest.arriving.refuse();
    return true;
  }

  #update(): void {
    const { bytesMax, requestBytesMax } = this.#options;
    const { received } = this.#bytes;
    const half = bytesMax / 2;
    // If more memory than this is free, any request can be completed. While memory is short, this mark is lower, so
    // that the state changes rarely.
    const mark = half - requestBytesMax - (this.#isMemoryShort ? half / 8 : 0);
    const isShort = received > Math.max(0, mark);
    if (isShort) this.#resumeShortest(half - received);
    else if (this.#isMemoryShort) {
      const nowMs = this.#options.clock.now();
      for (const share of this.#unfinished) share.setReading(true, nowMs);
    }
    this.#isMemoryShort = isShort;
    if (isShort) return this.#scheduleMemoryCheck();
    this.#cancelMemoryCheck?.();
    this.#cancelMemoryCheck = null;
  }

  #resumeShortest(room: number): void {
    const nowMs = this.#options.clock.now();
    let left = room;
    for (const share of [...this.#unfinished].sort((one, other) => one.bytesLeft - other.bytesLeft)) {
      left -= share.bytesLeft;
      share.setReading(left >= 0 || this.#bytes.received === share.bytes, nowMs);
    }
  }

  #scheduleMemoryCheck(): void {
    this.#cancelMemoryCheck ??= this.#options.clock.startTimer(checkEveryMs, () => {
      this.#cancelMemoryCheck = null;
      while (this.#isMemoryShort && this.refuseSlow());
      if (this.#isMemoryShort) this.#scheduleMemoryCheck();
    });
  }
}

/** The memory that one request uses. Only the budget changes it. */
export class RequestMemoryShare {
  readonly arriving: ArrivingRequest;
  bytes: number;
  bytesLeft: number;
  half: "received" | "sent" = "received";
  isAtBackend = false;
  isRead = true;
  /** The last time at which the request was not slow. */
  lastQuickMs: number;
  #newBytes = 0;

  constructor(
    { bytes, left, nowMs }: { readonly bytes: number; readonly left: number; readonly nowMs: number },
    arriving: ArrivingRequest,
  ) {
    this.arriving = arriving;
    this.bytes = bytes;
    this.bytesLeft = left;
    this.lastQuickMs = nowMs;
  }

  addReceived(bytes: number, nowMs: number): void {
    this.bytes += bytes;
    this.bytesLeft -= bytes;
    this.#newBytes += bytes;
    if (this.#newBytes >= slowRequestLimits.bytes) this.#noteSpeed(nowMs);
  }

  setReading(isRead: boolean, nowMs: number): void {
    if (isRead === this.isRead) return;
    this.isRead = isRead;
    this.#noteSpeed(nowMs);
    if (isRead) this.arriving.resume();
    else this.arriving.pause();
  }

  #noteSpeed(nowMs: number): void {
    this.#newBytes = 0;
    this.lastQuickMs = nowMs;
  }
}
