/**
 * Sends a client's requests to the proxies, one proxy after the other, until each request has an outcome: a response,
 * certainly not executed, or unknown. Owns the connections.
 */
import type { ZeroMqSocketOptions } from "../../protocols/zeromq/socket_options.ts";
import { BatonError, type ErrorCode, errorMessage } from "../../base/errors.ts";
import { onAbort, rejectOnAbort, throwIfAborted } from "../../base/support/abort.ts";
import { backoffMs, serverBackoff } from "../../base/support/backoff.ts";
import type { Clock } from "../../base/support/clock.ts";
import { deadlineAfter, sleep } from "../../base/support/deadline.ts";
import { decodePubsubMessage } from "../wire/decode_message.ts";
import { encodePubsubMessage } from "../wire/encode_message.ts";
import type { PubsubMessage, PubsubMessageOf } from "../wire/pubsub_messages.ts";
import { decideAfterRequestAttempt, divideRequestAttemptTime, type RequestAttemptResult } from "./attempt_decision.ts";
import { ProxyLink } from "./proxy_link.ts";
import type { StatusCode } from "../wire/status_codes.ts";
import { printable } from "../../base/support/text.ts";

export type ClientResponseMessage = PubsubMessageOf<"STATUS">;

export type PubsubRequestOutcome =
  | { readonly kind: "response"; readonly response: ClientResponseMessage }
  /**
   * The request was certainly not executed. `response` is the last response. `isRefused` is true if all proxies refuse
   * this client.
   */
  | {
    readonly kind: "fail";
    readonly why: string;
    readonly response: ClientResponseMessage | null;
    readonly isRefused?: boolean;
  }
  | { readonly kind: "unknown"; readonly why: string; readonly response: ClientResponseMessage | null };

export interface PubsubRequesterOptions {
  /** Returns the proxies' endpoints in the order in which to try them. Called again if none of them responds. */
  readonly findProxies: (signal: AbortSignal) => Promise<readonly string[]>;
  readonly clock: Clock;
  /** How long to try a request in total, in milliseconds. */
  readonly timeoutMs: number;
  /**
   * How long to wait for the response of one try, in milliseconds. If `retriesMax` is undefined, the time doubles each
   * time no response arrives.
   */
  readonly attemptMs: number;
  readonly retriesMax?: number;
  readonly socket?: ZeroMqSocketOptions;
  /** Where `findProxies` looks, as part of a sentence: `in the coordination service at …`. */
  readonly lookupPlace?: () => string;
  /**
   * Called with the reason when a request has made no progress for `stallMs` (3 s by default). Called again only after
   * a response has arrived.
   */
  readonly onStall?: (why: string) => void;
  readonly stallMs?: number;
  readonly random?: () => number;
}

export interface PubsubRequestOptions {
  readonly signal?: AbortSignal | undefined;
  /** How long the server may wait for a message before it responds, in milliseconds. */
  readonly holdMs?: number;
  /** A shorter limit in place of `timeoutMs`, in milliseconds. The result is at least a fifth of `timeoutMs`. */
  readonly withinMs?: number;
  /** The time on the clock at which to stop trying the request, in place of `timeoutMs`. `holdMs` is added to it. */
  readonly endMs?: number | undefined;
  /** Called when the first try has been sent. Before that, no server can have executed the request. */
  readonly onSent?: (() => void) | undefined;
}

interface RequestProgress extends StallWatchedRequest {
  sentTo: ProxyLink | null;
  lastResult: string | null;
}

/** How long to wait for a connection before the next proxy is tried, in milliseconds. */
const connectMsMax = 2000;
/**
 * How long to wait for the only proxy before proxies are looked up again, in milliseconds: the time that a handshake
 * may take.
 */
const onlyConnectMsMax = 10_000;
/** The shortest time for another try, in milliseconds. A shorter try would only turn "not executed" into "unknown". */
const attemptMsMin = 100;
/**
 * The time without progress after which a stall is reported, in milliseconds. It is longer than `connectMsMax`, so that
 * one unreachable proxy among several is not reported.
 */
const stallMsDefault = 3000;
const noProblemYet = "no proxy was found";
const noProxySentence = "no proxy is running; to start the service on this machine: baton pubsub serve; for several " +
  "machines: baton pubsub server and baton pubsub proxy";
const temporaryCodes: ReadonlySet<ErrorCode> = new Set(["UNREACHABLE", "CONNECTION_LOST", "SESSION_EXPIRED"]);
const changing: ReadonlySet<PubsubMessage["name"]> = new Set(["PUT", "SUBSCRIBE", "UNSUBSCRIBE", "SEEK"]);

export class PubsubRequester implements AsyncDisposable {
  readonly #options: PubsubRequesterOptions;
  #proxies: readonly string[] = [];
  #proxyIndex = 0;
  #link: ProxyLink | null = null;
  #openedMs = 0;
  /** All connections, including earlier connections on which requests still wait for responses. */
  readonly #links = new Set<ProxyLink>();
  #pendingSearch: Promise<void> | null = null;
  #lastProblem = noProblemYet;
  /** The endpoints of proxies that have refused this client, since the last time that a proxy accepted it. */
  readonly #refusals = new Set<string>();
  readonly #stallMonitor: RequestStallMonitor<RequestProgress> | null;

  constructor(options: PubsubRequesterOptions) {
    this.#options = options;
    const { clock, onStall, stallMs = stallMsDefault } = options;
    const tell = (progress: RequestProgress) => onStall?.(this.#stallReason(progress));
    this.#stallMonitor = onStall === undefined ? null : new RequestStallMonitor(clock, { afterMs: stallMs, tell });
  }

  /**
   * Sends a request until it has an outcome. Rejects with the signal's reason, or with a permanent error of
   * `findProxies`.
   */
  async request(message: PubsubMessage, options: PubsubRequestOptions = {}): Promise<PubsubRequestOutcome> {
    const progress: RequestProgress = { sinceMs: this.#options.clock.now(), sentTo: null, lastResult: null };
    this.#stallMonitor?.begin(progress);
    try {
      return await this.#requestUntilOutcome(message, options, progress);
    } finally {
      this.#stallMonitor?.end(progress);
    }
  }

  async #requestUntilOutcome(
    message: PubsubMessage,
    options: PubsubRequestOptions,
    progress: RequestProgress,
  ): Promise<PubsubRequestOutcome> {
    const { clock, retriesMax = Infinity, random } = this.#options;
    let { attemptMs } = this.#options;
    const { signal, holdMs = 0 } = options;
    const timeoutMs = this.#timeoutOf(options);
    const changes = changing.has(message.name);
    const endMs = clock.now() + timeoutMs + holdMs;
    const attemptMsLeast = Math.min(attemptMsMin, timeoutMs / 10);
    let mayBeDone = false;
    let response: ClientResponseMessage | null = null;
    for (let attempts = 1;; attempts++) {
      throwIfAborted(signal);
      const link = await this.#connectedLink({ withinMs: Math.min(attemptMs + holdMs, connectMsMax), endMs }, signal);
      const isRefused = this.#proxies.length > 0 && this.#proxies.every((endpoint) => this.#refusals.has(endpoint));
      // All proxies refuse this client, so another try would also be refused.
      if (isRefused && !mayBeDone) return { kind: "fail", why: this.#lastProblem, response, isRefused };
      let end: RequestAttemptResult = { kind: "not sent" };
      // Finding a proxy may have taken all the time. The request is then not sent, because its outcome would be
      // unknown.
      const withinMs = Math.min(endMs - clock.now(), attemptMs + holdMs);
      if (link !== null && withinMs < attemptMsLeast) {
        this.#lastProblem = `no time was left when ${link.endpoint} was connected`;
      } else if (link !== null) {
        const times = divideRequestAttemptTime({ withinMs, attemptMs: Math.min(attemptMs, timeoutMs), holdMs });
        const sentMs = clock.now();
        const got = await this.#watchedAttempt(link, message, { ...options, times, withinMs, progress });
        end = got === null
          ? { kind: "not sent" }
          : got === "no response"
          ? { kind: "no response" }
          : attemptResultOf(got);
        if (got !== null && got !== "no response") response = got;
        // If the try took nearly all of its time, gives the next try more time: a long message on a slow network needs
        // it.
        const neededMore = clock.now() - sentMs >= times.deadlineMs * 0.9;
        if (neededMore && retriesMax === Infinity) attemptMs *= 2;
      }
      const waitMs = backoffMs(attempts - 1, serverBackoff, random);
      const leftMs = endMs - clock.now() - waitMs - attemptMsLeast;
      const decision = decideAfterRequestAttempt({
        changesState: changes,
        mayBeDone,
        attempts,
        attemptsMax: retriesMax + 1,
        leftMs,
      }, end);
      if (decision.do === "accept" && response !== null) {
        this.#stallMonitor?.noteProgress();
        return { kind: "response", response };
      }
      if (decision.do !== "retry") {
        return {
          kind: decision.do === "accept" ? "fail" : decision.outcome,
          why: this.#failureReason(end, response),
          response,
        };
      }
      mayBeDone = decision.mayBeDone;
      progress.lastResult = this.#failureReason(end, response);
      if (decision.elsewhere && (link === null || link === this.#link)) this.#useNextProxy(end);
      await sleep(clock, waitMs, signal);
    }
  }

  /**
   * Sends the message with the times of this try, and records the progress for the stall monitor. Returns the result of
   * `#attempt`.
   */
  async #watchedAttempt(
    link: ProxyLink,
    message: PubsubMessage,
    { times, withinMs, progress, holdMs = 0, signal, onSent }: PubsubRequestOptions & {
      readonly times: ReturnType<typeof divideRequestAttemptTime>;
      readonly withinMs: number;
      readonly progress: RequestProgress;
    },
  ): Promise<ClientResponseMessage | "no response" | null> {
    const { clock } = this.#options;
    const wait = message.headers?.waitMs === undefined ? {} : { waitMs: times.waitMs };
    progress.sentTo = link;
    if (holdMs > 0) progress.sinceMs = clock.now() + holdMs;
    const headers = { version: 1, deadlineMs: times.deadlineMs, ...message.headers, ...wait };
    const encoded = encodePubsubMessage({ ...message, headers } as PubsubMessage);
    const got = await this.#attempt(link, encoded, { withinMs, signal, onSent });
    progress.sentTo = null;
    progress.sinceMs = Math.min(progress.sinceMs, clock.now());
    return got;
  }

  #timeoutOf({ withinMs, endMs }: PubsubRequestOptions): number {
    const { timeoutMs, clock } = this.#options;
    if (endMs !== undefined) return Math.max(0, endMs - clock.now());
    return withinMs === undefined ? timeoutMs : Math.min(withinMs, timeoutMs / 5);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stallMonitor?.[Symbol.dispose]();
    await Promise.all([...this.#links].map((link) => link.close()));
  }

  /** Makes one try. Returns the response; "no response" if the request was sent; null if it was not sent. */
  #attempt(
    link: ProxyLink,
    frames: readonly Uint8Array[],
    { withinMs, signal, onSent }: Pick<PubsubRequestOptions, "signal" | "onSent"> & { readonly withinMs: number },
  ): Promise<ClientResponseMessage | "no response" | null> {
    return new Promise((resolve, reject) => {
      const finish = (result: () => void) => {
        cancelTimer();
        offAbort();
        result();
      };
      const forget = link.send(frames, (response) =>
        finish(() => {
          if (response === null) this.#lastProblem = `the connection to ${link.endpoint} was lost: ${link.lostReason}`;
          const message = response === null ? null : decodePubsubMessage(response);
          if (message !== null && message.name !== "STATUS") {
            this.#lastProblem = `${link.endpoint} sent an invalid response`;
          }
          resolve(message?.name === "STATUS" ? message : "no response");
        }));
      if (forget === null) return resolve(null);
      onSent?.();
      const cancelTimer = this.#options.clock.startTimer(withinMs, () => {
        forget();
        this.#lastProblem = `${link.endpoint} has not answered within ${Math.round(withinMs)} ms`;
        finish(() => resolve("no response"));
      });
      const offAbort = onAbort(signal, (reason) => {
        forget();
        cancelTimer();
        reject(reason);
      });
    });
  }

  /** Returns the current connection; null if it is not established in time. */
  async #connectedLink(
    { withinMs, endMs }: { readonly withinMs: number; readonly endMs: number },
    signal: AbortSignal | undefined,
  ): Promise<ProxyLink | null> {
    const leftMs = () => Math.max(1, endMs - this.#options.clock.now());
    if (this.#link?.state === "lost") this.#useNextProxy({ kind: "not sent" });
    if (this.#link === null) {
      if (this.#proxyIndex >= this.#proxies.length) await this.#findProxies(leftMs(), signal);
      const endpoint = this.#proxies[this.#proxyIndex];
      if (endpoint === undefined) return null;
      this.#link ??= this.#open(endpoint);
    }
    const link = this.#link;
    if (link.state === "connecting") await this.#waitUntilSettled(link, Math.min(withinMs, leftMs()), signal);
    if (link.state === "connected") {
      this.#refusals.clear();
      return link;
    }
    if (link.isRefused) this.#refusals.add(link.endpoint);
    this.#lastProblem = `cannot connect to the proxy at ${link.endpoint}: ${link.lostReason}`;
    return null;
  }

  #open(endpoint: string): ProxyLink {
    const link = new ProxyLink(endpoint, this.#options.socket, () => this.#links.delete(link));
    this.#openedMs = this.#options.clock.now();
    this.#links.add(link);
    return link;
  }

  async #waitUntilSettled(link: ProxyLink, withinMs: number, signal: AbortSignal | undefined): Promise<void> {
    using deadline = deadlineAfter(this.#options.clock, withinMs, { signal, reason: () => null });
    await rejectOnAbort(link.whenSettled(), deadline.signal).catch(() => throwIfAborted(signal));
  }

  /** Looks up the proxies. Records a temporary failure; rejects with other errors. */
  async #findProxies(withinMs: number, signal: AbortSignal | undefined): Promise<void> {
    const late = () =>
      new BatonError(
        "UNREACHABLE",
        `no proxy could be looked up${this.#lookupSuffix} within ${Math.round(withinMs)} ms`,
      );
    using deadline = deadlineAfter(this.#options.clock, withinMs, { signal, reason: late });
    this.#pendingSearch ??= this.#options.findProxies(deadline.signal).then((proxies) => {
      this.#proxies = proxies;
      this.#proxyIndex = 0;
    }).finally(() => this.#pendingSearch = null);
    try {
      await rejectOnAbort(this.#pendingSearch, deadline.signal);
      if (this.#proxies.length === 0) {
        this.#lastProblem = noProxySentence;
        this.#stallMonitor?.reportNow();
      }
    } catch (thrown) {
      throwIfAborted(signal);
      if (!(thrown instanceof BatonError) || !temporaryCodes.has(thrown.code)) throw thrown;
      this.#lastProblem = thrown.message;
    }
  }

  /** Switches to the next proxy. After the last proxy, proxies are looked up again. */
  #useNextProxy(end: RequestAttemptResult): void {
    if (this.#link === null) return;
    if (this.#link.state === "lost") {
      this.#lastProblem = `no connection to ${this.#link.endpoint}: ${this.#link.lostReason}`;
    }
    // If there is no other proxy, keeps a connection that works or may still be established.
    const isYoung = this.#options.clock.now() - this.#openedMs < onlyConnectMsMax;
    const isKept = end.kind === "response" || (this.#link.state === "connecting" && isYoung);
    if (isKept && this.#proxies.length === 1) return;
    this.#link.retire();
    this.#link = null;
    this.#proxyIndex++;
  }

  #stallReason({ sentTo, lastResult }: RequestProgress): string {
    if (sentTo !== null) {
      return `no response has come through ${sentTo.endpoint} yet; if a server is offline, baton doctor names it`;
    }
    if (this.#pendingSearch !== null) {
      return `the proxies are being looked up${this.#lookupSuffix}, without a response yet`;
    }
    // If this is the first try to connect, there is no earlier problem to report.
    const isFirstTry = this.#link?.state === "connecting" && this.#lastProblem === noProblemYet;
    if (lastResult !== null || this.#link === null || !isFirstTry) return lastResult ?? this.#lastProblem;
    return `cannot connect to the proxy at ${this.#link.endpoint}: ${this.#link.lostReason}`;
  }

  get #lookupSuffix(): string {
    return this.#options.lookupPlace === undefined ? "" : ` ${this.#options.lookupPlace()}`;
  }

  #failureReason(end: RequestAttemptResult, response: ClientResponseMessage | null): string {
    if (end.kind !== "response" || response === null) return this.#lastProblem;
    // The sentence alone: the status OVERLOADED says only that nothing was done, which the caller says as well.
    const isNotDone = response.status === "OVERLOADED" && response.body !== undefined;
    if (isNotDone) return responseReasonText(response).replace(/^Not done: /, "");
    return response.body === undefined ? response.status : `${response.status}, ${responseReasonText(response)}`;
  }
}

function attemptResultOf({ status, headers }: ClientResponseMessage): RequestAttemptResult {
  return { kind: "response", status, isUnknown: headers?.unknown === true };
}

/** Returns the sentence in the body of a response, for the user. */
export function responseReasonText({ body }: ClientResponseMessage): string {
  try {
    return printable(new TextDecoder("utf-8", { fatal: true }).decode(body));
  } catch (thrown) {
    return `bytes that are no text: ${errorMessage(thrown)}`;
  }
}

const codes = {
  OK: "INTERNAL",
  NO_MESSAGE: "NOT_FOUND",
  NOT_SUBSCRIBED: "NOT_SUBSCRIBED",
  NOT_OWNER: "UNREACHABLE",
  COUNTER_REUSE: "BAD_DATA",
  STALE_OP: "BAD_DATA",
  FENCED: "FENCED",
  UNREGISTERED: "BAD_DATA",
  FULL: "STORE_FULL",
  DAMAGED: "IO",
  OVERLOADED: "UNREACHABLE",
  BAD_REQUEST: "BAD_DATA",
  DENIED: "REFUSED",
  ERROR: "INTERNAL",
} as const satisfies Record<StatusCode, ErrorCode>;

/**
 * Thrown if the requested data is damaged on the server's disk. `isWholeTopic` is true if the whole topic is damaged,
 * and must be restored or deleted.
 */
export class TopicDamagedError extends BatonError {
  readonly isWholeTopic: boolean;

  constructor(message: string, { isWholeTopic }: { readonly isWholeTopic: boolean }) {
    super(codes.DAMAGED, message);
    this.isWholeTopic = isWholeTopic;
  }
}

/** Converts an outcome into an error. `what` names the request; the message is "Cannot", followed by `what`. */
export function requestOutcomeError(what: string, outcome: PubsubRequestOutcome): BatonError {
  if (outcome.kind === "unknown") {
    return new BatonError("OUTCOME_UNKNOWN", `The outcome is unknown: ${what}: ${outcome.why}`);
  }
  const { response } = outcome;
  if (outcome.kind === "fail") {
    const code = outcome.isRefused ? "REFUSED" : response?.status === "ERROR" ? "INTERNAL" : "UNREACHABLE";
    return new BatonError(code, `Cannot ${what}; definitely not done: ${outcome.why}`);
  }
  const { status, headers } = outcome.response;
  const sentence = responseReasonText(outcome.response);
  const message = `Cannot ${what}: ${status}${sentence === "" ? "" : `, ${sentence}`}`;
  if (status !== "DAMAGED") return new BatonError(codes[status], message);
  return new TopicDamagedError(message, { isWholeTopic: headers?.state === "missing" });
}

export interface StallWatchedRequest {
  /**
   * The time on the clock since which the request has made no progress. It is in the future while the server may hold
   * the request.
   */
  sinceMs: number;
}

/**
 * Reports a request that makes no progress, and then again only after a response has arrived. Uses one timer for all
 * requests, because thousands of requests start and end within the timer's period.
 */
export class RequestStallMonitor<Request extends StallWatchedRequest> implements Disposable {
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

  /** Reports the oldest request immediately. Used if the user has to act. */
  reportNow(): void {
    const [oldest] = this.#requests;
    if (this.#isReported || oldest === undefined) return;
    this.#isReported = true;
    this.#report(oldest);
  }

  /** Allows another report. Called when a response has arrived. */
  noteProgress(): void {
    this.#isReported = false;
  }

  [Symbol.dispose](): void {
    this.#cancel?.();
    this.#requests.clear();
  }

  #check(): void {
    this.#cancel = null;
    if (this.#isReported) return;
    let oldest: Request | null = null;
    for (const request of this.#requests) if (oldest === null || request.sinceMs < oldest.sinceMs) oldest = request;
    if (oldest === null) return;
    const leftMs = oldest.sinceMs + this.#afterMs - this.#clock.now();
    if (leftMs > 0) {
      // A request that waits at the server may stall earlier, if its connection is lost.
      this.#cancel = this.#clock.startTimer(Math.min(leftMs, this.#afterMs), () => this.#check());
      return;
    }
    this.#isReported = true;
    this.#report(oldest);
  }
}
