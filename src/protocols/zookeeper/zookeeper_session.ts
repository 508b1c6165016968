/**
 * The client's side of a session. Keeps the session alive, moves it between servers, queues and sends its requests, and
 * computes its lease. server_search.ts finds another server.
 */
import type { BatonError } from "../../base/errors.ts";
import { formatAddress } from "../../base/sockets/connection.ts";
import type { Clock } from "../../base/support/clock.ts";
import { formatDuration } from "../../base/support/duration.ts";
import { FifoQueue } from "../../base/support/fifo_queue.ts";
import { type WatchEventTypeName, zooKeeperOperations } from "./jute/zookeeper_operations.ts";
import type { ZooKeeperConnector } from "./connector.ts";
import type { EstablishedConnection } from "./establish.ts";
import {
  ZooKeeperLink,
  type ZooKeeperLinkOwner,
  type ZooKeeperOperationCall,
  ZooKeeperRequest,
} from "./zookeeper_link.ts";
import {
  ServerSearch,
  type ServerSearchOwner,
  type ServerSearchResult,
  type ServerSearchRound,
} from "./server_search.ts";
import { probeShortestSessionTimeout } from "./end_session.ts";
import {
  type ConnectionLivenessFacts,
  decideSessionHeartbeat,
  deriveSessionTiming,
  isConnectionDoubtful,
  leaderRelayMs,
  leaseEndMs,
  resumeAttemptMs,
  SilencePatience,
} from "./session_timing.ts";
import type { SessionWatches } from "./watches.ts";
import type { WatchEvent, ZooKeeperSession, ZooKeeperSessionState } from "./zookeeper.ts";
import { isSessionResumable } from "./handshake.ts";
import { givenUpOperationError, ZooKeeperError } from "./zookeeper_error.ts";

/**
 * The most unanswered requests. A server stops reading at 1,000 (globalOutstandingLimit). With more requests, their age
 * would show the length of the queue, not the condition of the connection.
 */
const inFlightMax = 1000;

const queuedMax = 100_000;

/**
 * The number of consecutive connections without a response after which the user is warned. The warning is repeated
 * whenever the number has doubled.
 */
const slowRounds = 3;

export interface ZooKeeperClientSessionOptions {
  readonly clock: Clock;
  readonly connector: ZooKeeperConnector;
  /** The timeout to request on every connection, in milliseconds. */
  readonly timeoutMs: number;
  readonly watches: SessionWatches;
  /** Returns the path in an event without the chroot. */
  readonly toClientPath: (path: string) => string;
  /** How long events may wait before they are read; see ZooKeeperConnectOptions. */
  readonly gatherEventsMs?: number | undefined;
  /** Called if servers accept connections but do not answer; see ZooKeeperConnectOptions. */
  readonly onSlow?: ((sentence: string) => void) | undefined;
}

type SessionChange = "state" | "renewed";

export class ZooKeeperClientSession implements ZooKeeperSession, ZooKeeperLinkOwner, ServerSearchOwner {
  readonly #options: ZooKeeperClientSessionOptions;
  readonly #clock: Clock;
  readonly #queue = new FifoQueue<ZooKeeperRequest<unknown>>();
  readonly #listeners = new Set<(change: SessionChange) => void>();
  readonly #changes = new Set<SessionChange>();
  readonly #ended = new AbortController();
  readonly ended = this.#ended.signal;
  #established: EstablishedConnection;
  #link: ZooKeeperLink | null = null;
  state: ZooKeeperSessionState = "connecting";
  #provenMs = -Infinity;
  #lostMs = Infinity;
  #guardCount = 0;
  /** The shortest timeout that the servers grant, in milliseconds; null until a guarded session has probed it. */
  #shortestTimeoutMs: number | null = null;
  #isProbingTimeout = false;
  /** The earliest time of the next probe. The limit spares slow servers. */
  #nextProbeMs = -Infinity;
  readonly #patience = new SilencePatience();
  /** The connection that was closed because it was silent; null again after the next connection. */
  #silentLink: ZooKeeperLink | null = null;
  #hasYielded = false;
  #lastZxid = 0n;
  connections = 0;
  readonly #search: ServerSearch;
  #wakeAtMs = Infinity;
  #cancelWake: () => void = () => {};
  #closing: Promise<void> | null = null;

  constructor(established: EstablishedConnection, options: ZooKeeperClientSessionOptions) {
    this.#options = options;
    this.#clock = options.clock;
    this.#established = established;
    this.#search = new ServerSearch(this, options);
    this.#adopt(established);
  }

  get id(): bigint {
    return this.#established.accepted.identity.id;
  }

  get password(): Uint8Array {
    return this.#established.accepted.identity.password;
  }

  get timeoutMs(): number {
    return this.#established.accepted.timeoutMs;
  }

  leaseEndMs(): number {
    return leaseEndMs(this.#provenMs, this.timeoutMs);
  }

  guard(): () => void {
    this.#guardCount++;
    // Checks now, because a guarded session is less patient with a silent connection.
    if (this.#patience.rounds > 0) this.#wakeBy(this.#clock.now());
    let guarded = true;
    return () => {
      if (guarded) this.#guardCount--;
      guarded = false;
    };
  }

  describeOutage(): string {
    return this.#link === null ? this.#search.describe() : "";
  }

  subscribe(listener: (change: SessionChange) => void): () => void {
    const own = (change: SessionChange) => listener(change);
    this.#listeners.add(own);
    return () => this.#listeners.delete(own);
  }

  /** Sends a request when the session is connected, within T. See `ZooKeeper` for the errors. */
  request<T>(call: ZooKeeperOperationCall<T>, signal?: AbortSignal): Promise<T> {
    if (signal?.aborted) return Promise.reject(signal.reason);
    if (this.#closing !== null || this.state === "ended") {
      return Promise.reject(givenUpOperationError(call.label, "SESSIONEXPIRED", { cause: this.ended.reason }));
    }
    return this.#enqueue(new ZooKeeperRequest(call, this.#clock.now() + this.timeoutMs, signal));
  }

  /** Ends the session on the server after all earlier requests. Gives up after T/3. Never rejects. */
  close(): Promise<void> {
    return this.#closing ??= this.#close();
  }

  /** Disconnects without ending the session on the server. */
  leave(): void {
    this.#end(closedError());
  }

  eventReceived(type: WatchEventTypeName, path: string): void {
    const event: WatchEvent = { type, path: this.#options.toClientPath(path) };
    for (const watcher of this.#options.watches.takeWatchers(type, path)) queueMicrotask(() => watcher(event));
  }

  repliesReceived(): void {
    if (this.#link === null) return;
    this.#provenMs = Math.max(this.#provenMs, this.#link.provenMs);
    if (
      this.state === "doubtful" &&
      !isConnectionDoubtful(this.#clock.now(), this.#livenessFacts(this.#link), this.#patienceMs)
    ) {
      this.#search.stop();
      this.#setState("connected");
    }
    this.#sendQueued();
    this.#announce("renewed");
  }

  connectionLost(_error: Error | null): void {
    if (this.#link === null || this.state === "ended") return;
    this.#lastZxid = this.#link.lastZxid;
    this.#link = null;
    this.#lostMs = this.#clock.now();
    if (!isSessionResumable(this)) return this.#end(this.#notResumedError());
    this.#setState("connecting");
    this.#search.start();
  }

  #enqueue<T>(request: ZooKeeperRequest<T>): Promise<T> {
    if (this.#queue.length >= queuedMax) request.fail("THROTTLEDOP", undefined, `${queuedMax} requests are waiting`);
    else {
      this.#queue.push(request as ZooKeeperRequest<unknown>);
      this.#sendQueued();
      this.#scheduleQueue();
    }
    return request.promise;
  }

  /**
   * Sends queued requests. A doubtful session sends nothing, so that its queued requests are certainly not executed.
   */
  #sendQueued(): void {
    const link = this.#link;
    if (link === null || this.state !== "connected" || this.#queue.length === 0) return;
    const nowMs = this.#clock.now();
    while (link.inFlight < inFlightMax) {
      const request = this.#queue.shift();
      if (request === undefined) return;
      if (request.settled) continue;
      if (request.deadlineMs <= nowMs) request.fail("OPERATIONTIMEOUT");
      else link.send(request.code, request.body, request);
    }
  }

  #adopt(established: EstablishedConnection): void {
    const { accepted, connectSentMs, stream } = established;
    const old = this.#link;
    this.#countSilence(old ?? this.#silentLink);
    this.#lastZxid = this.#seenZxid;
    this.#established = established;
    this.#link = new ZooKeeperLink(stream, this, {
      clock: this.#clock,
      nextXid: accepted.nextXid,
      connectSentMs,
      // The server at a Unix socket is standalone, so it is its own leader.
      relayMs: this.#isStandalone ? 0 : leaderRelayMs(accepted.timeoutMs, this.#shortestTimeoutMs),
      lastZxid: this.#lastZxid,
      patience: this.#patience,
      gatherMs: this.#options.gatherEventsMs,
    });
    this.#provenMs = Math.max(this.#provenMs, connectSentMs);
    this.connections++;
    this.#setState("connected");
    old?.destroy(null);
    for (const batch of this.#options.watches.rearm(this.#lastZxid)) this.#link.setWatches(batch);
    this.#sendQueued();
    this.#wakeBy(connectSentMs + deriveSessionTiming(accepted.timeoutMs).pingMs);
    this.#announce("renewed");
  }

  #tick(dueMs: number): void {
    const nowMs = this.#clock.now();
    const link = this.#link;
    const timing = deriveSessionTiming(this.timeoutMs);
    // This process was stopped or busy, so replies may wait to be read. It yields to the event loop one time. It does
    // not yield a second time: a process that is always busy would never send a heartbeat.
    this.#hasYielded = !this.#hasYielded && link !== null && nowMs - dueMs > timing.pingMs / 2;
    if (this.#hasYielded) return this.#wakeBy(nowMs);
    if (link !== null) {
      const facts = this.#livenessFacts(link);
      const { action, nextCheckMs } = decideSessionHeartbeat(nowMs, facts, this.timeoutMs, this.#patienceMs);
      if (action === "ping") this.#needsLeader ? this.#pingLeader(link) : link.ping();
      if (action === "doubt" && this.state === "connected") {
        this.#setState("doubtful");
        if (isSessionResumable(this)) this.#search.start();
      }
      if (action === "drop") {
        const silence = new Error(`no response from the server for ${Math.round(this.#patienceMs)} ms`);
        this.#silentLink = link;
        link.destroy(silence);
        this.connectionLost(silence);
      } else this.#wakeBy(nextCheckMs);
    }
    this.#scheduleQueue();
  }

  /**
   * Counts a silent connection when the session continues on another connection. Its server is then slow, but alive.
   */
  #countSilence(silent: ZooKeeperLink | null): void {
    this.#silentLink = null;
    if (silent === null) return;
    const silentMs = this.#patienceMs;
    silent.gaveUp(this.timeoutMs);
    const doublings = Math.log2(this.#patience.rounds / slowRounds);
    if (!Number.isInteger(doublings) || doublings < 0) return;
    const server = formatAddress(this.#established.endpoint.address);
    this.#options.onSlow?.(
      `${server} accepts connections, but has not answered a request within ${formatDuration(silentMs)}, ` +
        `${this.#patience.rounds} times in a row: its disk may be slow; ` +
        "still trying, and a longer session timeout gives it more time",
    );
  }

  get #patienceMs(): number {
    const { timeoutMs } = this;
    const leaseMs = this.#guardCount === 0 ? Infinity : this.leaseEndMs() - (this.#link?.oldestRequestMs ?? Infinity);
    return this.#patience.limitMs(timeoutMs, leaseMs);
  }

  /**
   * Sends a heartbeat through the leader. Until the shortest session timeout is known, also probes it; it shows how
   * fast followers report to the leader.
   */
  #pingLeader(link: ZooKeeperLink): void {
    link.pingLeader();
    const nowMs = this.#clock.now();
    if (this.#shortestTimeoutMs !== null || this.#isProbingTimeout || nowMs < this.#nextProbeMs) return;
    this.#isProbingTimeout = true;
    this.#nextProbeMs = nowMs + this.timeoutMs;
    const limits = { clock: this.#clock, attemptMs: deriveSessionTiming(this.timeoutMs).doubtMs, signal: this.ended };
    void probeShortestSessionTimeout(this.#options.connector, limits).then((shortestMs) => {
      this.#isProbingTimeout = false;
      this.#shortestTimeoutMs = shortestMs;
      this.#link?.shortenRelay(leaderRelayMs(this.timeoutMs, shortestMs));
    });
  }

  #livenessFacts(link: ZooKeeperLink): ConnectionLivenessFacts {
    return link.livenessFacts(this.#needsLeader);
  }

  /**
   * True if heartbeats must go through the leader. A standalone server gets plain pings, because a sync would wait for
   * its disk.
   */
  get #needsLeader(): boolean {
    return this.#guardCount > 0 && !this.#isStandalone;
  }

  get #isStandalone(): boolean {
    return this.#established.endpoint.address.kind === "unix";
  }

  /** Fails requests that have waited too long, and schedules the next check. */
  #scheduleQueue(): void {
    if (this.state === "connected" && this.#queue.length === 0) return;
    const nowMs = this.#clock.now();
    for (let head = this.#queue.peek(); head !== undefined; head = this.#queue.peek()) {
      if (!head.settled && head.deadlineMs > nowMs) return this.#wakeBy(head.deadlineMs);
      this.#queue.shift();
      head.fail("OPERATIONTIMEOUT");
    }
  }

  #wakeBy(timeMs: number): void {
    if (timeMs >= this.#wakeAtMs || this.state === "ended") return;
    this.#cancelWake();
    this.#wakeAtMs = timeMs;
    this.#cancelWake = this.#clock.startTimer(timeMs - this.#clock.now(), () => {
      this.#wakeAtMs = Infinity;
      this.#tick(timeMs);
    });
  }

  /** Returns the parameters of the search's next round. While there is a connection, tries only the other servers. */
  nextRound(attempt: number): ServerSearchRound {
    return {
      sessionRequest: {
        identity: this.#established.accepted.identity,
        timeoutMs: this.#options.timeoutMs,
        lastZxid: attempt % 2 === 1 && this.#isSearchOverdue ? 0n : this.#seenZxid,
      },
      attemptMs: resumeAttemptMs(this.#clock.now(), this.leaseEndMs(), this.timeoutMs),
      staggerMs: deriveSessionTiming(this.timeoutMs).staggerMs,
      except: this.#link === null ? undefined : this.#established.endpoint.address,
      backoff: { firstMs: this.timeoutMs / 100, maxMs: this.timeoutMs / 40, jitter: 1 },
    };
  }

  onSearchEnded(finding: ServerSearchResult): void {
    if (finding.kind !== "accepted") {
      if (finding.kind === "refused") return this.#end(finding.error);
      return this.#end(finding.isReplaced ? this.#notResumedError() : this.#expiredError());
    }
    // The doubtful server has responded in the meantime. The new server may not know the latest changes yet.
    if (finding.established.lastZxid < this.#seenZxid) {
      finding.established.stream.destroy();
      return this.#search.start();
    }
    this.#adopt(finding.established);
  }

  /**
   * True if the search has lasted long enough for the servers to have lost their data. Such servers close the
   * connection of a client that has seen more than they know. If the client claims to have seen nothing, they respond
   * that they do not know the session. If a server does know the session, `onSearchEnded` rejects it.
   */
  get #isSearchOverdue(): boolean {
    return this.#link === null && this.#clock.now() >= this.#lostMs + 2 * this.timeoutMs;
  }

  get #seenZxid(): bigint {
    return this.#link?.lastZxid ?? this.#lastZxid;
  }

  async #close(): Promise<void> {
    if (this.state === "ended") return;
    const limitMs = deriveSessionTiming(this.timeoutMs).dropMs;
    const deadlineMs = this.#clock.now() + limitMs;
    const cancelLimit = this.#clock.startTimer(limitMs, () => this.#end(closedError()));
    const { code } = zooKeeperOperations.closeSession;
    const label = { action: "close the session", path: "/" };
    const body = new Uint8Array(0);
    while (!this.#isEnded() && this.#clock.now() < deadlineMs) {
      try {
        await this.#enqueue(new ZooKeeperRequest({ label, code, body, decode: () => {} }, deadlineMs));
        break;
      } catch (error) {
        // Closes again if a response was lost and there is time, because closing twice does no harm.
        if (!(error instanceof ZooKeeperError) || error.reason !== "CONNECTIONLOSS") break;
      }
    }
    cancelLimit();
    this.#end(closedError());
  }

  #isEnded(): boolean {
    return this.state === "ended";
  }

  #end(error: BatonError): void {
    if (this.#isEnded()) return;
    this.#setState("ended");
    this.#cancelWake();
    this.#search.stop();
    this.#link?.destroy(error);
    this.#link = null;
    for (const request of this.#queue.drain()) request.fail("SESSIONEXPIRED", error);
    this.#options.watches.clear();
    this.#ended.abort(error);
  }

  #expiredError(): ZooKeeperError {
    return new ZooKeeperError("SESSIONEXPIRED", `The session 0x${this.id.toString(16)} has expired on the server`);
  }

  #notResumedError(): ZooKeeperError {
    const what = `The session 0x${
      this.id.toString(16)
    } is lost with its connection: these servers cannot resume a session`;
    return new ZooKeeperError("SESSIONEXPIRED", what);
  }

  #setState(state: ZooKeeperSessionState): void {
    if (state === this.state) return;
    this.state = state;
    this.#announce("state");
  }

  /** Calls the listeners after the current task, when the state is consistent again. */
  #announce(change: SessionChange): void {
    if (this.#changes.size === 0) {
      queueMicrotask(() => {
        const changes = [...this.#changes];
        this.#changes.clear();
        for (const one of changes) {
          for (const listener of [...this.#listeners]) if (this.#listeners.has(listener)) listener(one);
        }
      });
    }
    this.#changes.add(change);
  }
}

function closedError(): ZooKeeperError {
  return new ZooKeeperError("SESSIONEXPIRED", "The session was closed by this client");
}
