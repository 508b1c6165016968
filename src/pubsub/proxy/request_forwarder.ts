/**
 * Handles each request of a proxy from its arrival until its response: finds the server, sends the request, and carries
 * out the decisions of decide_forwarding.ts. Does not know the clients' socket.
 */
import type { ZeroMqSocketOptions } from "../../protocols/zeromq/socket_options.ts";
import { BatonError, errorMessage } from "../../base/errors.ts";
import { backoffMs, requestBackoff } from "../../base/support/backoff.ts";
import type { Clock } from "../../base/support/clock.ts";
import { CachedClock } from "../../base/support/cached_clock.ts";
import { decodePubsubMessage } from "../wire/decode_message.ts";
import type { StatusCode } from "../wire/status_codes.ts";
import {
  newRequestLatencyHistograms,
  recordRequestLatency,
  type RequestLatencyHistograms,
} from "../request_latency.ts";
import type { TopicOwner, TopicRoute } from "../ownership/topic_router.ts";
import { type ProxyResponse, readServerResponseStatus } from "./proxy_response.ts";
import { DeadlineWheel } from "./deadline_wheel.ts";
import type { TopicDirectory } from "./zookeeper_directory.ts";
import type { ProxyLimits } from "./proxy_limits.ts";
import type { ProxyRequest, ProxyRequestClient } from "./proxy_request.ts";
import {
  decideRequestForwarding,
  mayRequestBeDone,
  type ProxyOwnResponseStatus,
  type RequestForwardingEvent,
} from "./decide_forwarding.ts";
import { ServerLink, type ServerLinkHost, ServerLinks } from "./server_link.ts";
import { doesRequestCreateTopic, readPutOrder, type TopicPutOrder } from "./request_traits.ts";

export interface ProxyRequestForwarderOptions {
  readonly id: string;
  readonly directory: TopicDirectory;
  readonly clock: Clock;
  readonly limits: ProxyLimits;
  readonly counters: ProxyCounters;
  readonly socketOptions: ZeroMqSocketOptions;
  /**
   * Delivers a server's response; `respond` delivers a response of the proxy itself. Each request gets one response
   * unless its client has disconnected.
   */
  readonly forwardResponse: (request: ProxyRequest, frames: readonly Uint8Array[], status: StatusCode) => void;
  readonly respond: (request: ProxyRequest, answer: ProxyResponse) => void;
  /** Called when a server cannot be reached. Called again for the same server only after it was reached. */
  readonly onProblem: (problem: BatonError) => void;
  readonly onIdle: () => void;
  readonly random?: () => number;
}

type IncomingRequest = Pick<ProxyRequest, "client" | "envelope" | "frames" | "bytes" | "traits">;

/** How long a server must be unreachable before that is reported, in milliseconds. */
const reportAfterMs = 1000;

const decoder = new TextDecoder();

export class ProxyRequestForwarder implements ServerLinkHost {
  readonly id: string;
  readonly clock: Clock;
  readonly cachedClock: CachedClock;
  readonly limits: ProxyLimits;
  readonly socketOptions: ZeroMqSocketOptions;
  readonly #options: ProxyRequestForwarderOptions;
  readonly #admission: ProxyRequestAdmission;
  readonly #deadlines: DeadlineWheel<ProxyRequest>;
  readonly #links: ServerLinks;
  /** Requests whose server is being looked up, by topic, in the order of arrival. */
  readonly #routing = new Map<string, Set<ProxyRequest>>();
  readonly #delayed = new Set<ProxyRequest>();
  /** Delayed requests that wait for another put. */
  readonly #putDependencies = new TopicPutDependencies<ProxyRequest>();
  readonly #inFlight = new Set<ProxyRequest>();
  readonly #offDirectory: () => void;
  /** Endpoints of the servers that share their stores, as of the last list. */
  #sharedEndpoints: ReadonlySet<string> = new Set();
  #isClosed = false;

  constructor(options: ProxyRequestForwarderOptions) {
    this.#options = options;
    this.id = options.id;
    this.clock = options.clock;
    this.cachedClock = new CachedClock(options.clock);
    this.limits = options.limits;
    this.socketOptions = options.socketOptions;
    this.#admission = new ProxyRequestAdmission(options.limits);
    this.#deadlines = new DeadlineWheel(options.clock, (request) => this.#handleEvent(request, { kind: "deadline" }));
    this.#links = new ServerLinks((id, endpoint) => new ServerLink(id, endpoint, this));
    this.#offDirectory = options.directory.subscribe(() => this.#onServersChanged());
    this.#onServersChanged();
  }

  get admission(): Pick<ProxyRequestAdmission, "requests" | "bytes"> {
    return this.#admission;
  }

  get links(): Iterable<ServerLink> {
    return this.#links;
  }

  /**
   * Accepts a request, and responds to it before its deadline. Returns null; if the request is refused, a sentence that
   * says why.
   */
  acceptRequest({ client, envelope, frames, bytes, traits }: IncomingRequest): string | null {
    const refusal = this.#admission.admit(client, traits.topic, bytes);
    if (refusal !== null) return refusal;
    const arrivedMs = this.cachedClock.now();
    const request: ProxyRequest = {
      client,
      envelope,
      frames,
      bytes,
      traits,
      arrivedMs,
      tick: 0,
      tries: 0,
      connectionLosses: 0,
      delayCount: 0,
      mayBeDone: false,
      location: { kind: "over" },
      putOrder: null,
      target: null,
      pendingReason: "no server has answered",
    };
    request.tick = this.#deadlines.set(request, arrivedMs + traits.timeoutMs);
    this.#inFlight.add(request);
    this.#route(request);
    return null;
  }

  dropRequestsOf(clients: ReadonlySet<ProxyRequestClient>): void {
    for (const request of this.#inFlight) {
      if (clients.has(request.client)) this.#handleEvent(request, { kind: "client gone" });
    }
  }

  /** Ends requests as if their deadlines had passed: all requests, or only those that no server is executing. */
  endRequests(which: "all" | "waiting", why: string): void {
    for (const request of this.#inFlight) {
      const isBusy = request.location.kind === "sent" && !request.traits.mayWait;
      if (which === "waiting" && isBusy) continue;
      request.pendingReason = why;
      this.#handleEvent(request, { kind: "deadline" });
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#offDirectory();
    this.#deadlines[Symbol.dispose]();
    for (const request of this.#inFlight) this.#detach(request);
    this.#inFlight.clear();
    await this.#links.close();
  }

  /** The following methods are called by the server links. */
  onResponse(request: ProxyRequest, frames: Uint8Array[]): void {
    const status = readServerResponseStatus(frames[0]);
    if (status === null) return this.#handleEvent(request, { kind: "invalid response" });
    if (status === "ERROR" && this.#mayBeRepeated(request, frames)) {
      request.pendingReason = `server ${ownerOf(request)} does not know its outcome`;
      return this.#handleEvent(request, { kind: "server lost" });
    }
    if (status === "NOT_OWNER") this.#correctRoute(request, frames);
    if (status === "OVERLOADED") request.pendingReason = notReadyReason(request, frames);
    this.#handleEvent(request, { kind: "response", status }, frames);
  }

  onLateResponse(): void {
    this.#options.counters.lateResponses++;
  }

  onConnected(link: ServerLink): void {
    link.cancelProblemReport?.();
    link.cancelProblemReport = null;
  }

  onUnsendable(request: ProxyRequest, why: string): void {
    this.#endRequest(request);
    this.#options.respond(request, { status: "BAD_REQUEST", reason: `Cannot forward it: ${why}`, headers: {} });
    if (this.#inFlight.size === 0) this.#options.onIdle();
  }

  onLost(requests: readonly ProxyRequest[], link: ServerLink): void {
    this.#options.counters.serversLost++;
    this.#reportProblem(link, "the connection was lost");
    for (const request of requests) {
      request.pendingReason = `the connection to server ${link.id} at ${link.endpoint} was lost`;
      this.#handleEvent(request, { kind: "server lost" });
    }
    this.#links.keepOnly(this.#options.directory.servers);
  }

  /**
   * Makes requests that wait for this server look up their topic again, because an operator may have moved the topic.
   */
  onUnreachable(link: ServerLink, reason: Error): void {
    this.#reportProblem(link, `it is not reached: ${reason.message}`);
    for (const request of link.takeWaiting()) {
      request.pendingReason = `server ${link.id} at ${link.endpoint} is not reached: ${reason.message}`;
      this.#forgetRoute(request);
      this.#delay(request);
    }
    this.#links.keepOnly(this.#options.directory.servers);
  }

  /** Reports a lost server, unless it has left the service or is connected again shortly afterwards. */
  #reportProblem(link: ServerLink, what: string): void {
    link.cancelProblemReport ??= this.clock.startTimer(reportAfterMs, () => {
      const isThere = this.#options.directory.servers.get(link.id)?.endpoint === link.endpoint;
      if (isThere) {
        this.#options.onProblem(new BatonError("UNREACHABLE", `server "${link.id}" at ${link.endpoint}: ${what}`));
      } else link.cancelProblemReport = null;
    });
  }

  /** Looks up the server of the request's topic, and sends the request there. */
  #route(request: ProxyRequest): void {
    const { topic } = request.traits;
    const looking = this.#routing.get(topic);
    if (looking !== undefined) {
      request.location = { kind: "routing" };
      looking.add(request);
      return;
    }
    const route = this.#options.directory.cachedRoute(topic);
    if (route !== null) return this.#followRoute(request, route);
    request.location = { kind: "routing" };
    this.#routing.set(topic, new Set([request]));
    void this.#lookUp(topic, doesRequestCreateTopic(decodePubsubMessage(request.frames)));
  }

  async #lookUp(topic: string, creates: boolean): Promise<void> {
    let route: TopicRoute | null = null;
    let why = "";
    try {
      route = await this.#options.directory.findRoute(topic, { creates });
    } catch (thrown) {
      why = errorMessage(thrown);
    }
    const requests = this.#routing.get(topic) ?? [];
    this.#routing.delete(topic);
    if (this.#isClosed) return;
    for (const request of requests) {
      if (route === null) request.pendingReason = `the server of the topic could not be looked up: ${why}`;
      if (route === null) this.#delay(request);
      // This request creates the topic. It arrived while other requests were looking up the topic, so the topic is
      // looked up again.
      else if (route.kind === "no topic" && doesRequestCreateTopic(decodePubsubMessage(request.frames))) {
        this.#route(request);
      } else this.#followRoute(request, route);
    }
  }

  #followRoute(request: ProxyRequest, route: TopicRoute): void {
    if (route.kind === "server") {
      request.target = { owner: route.id, epoch: route.epoch };
      this.#links.get(route.id, route.endpoint).enqueue(request);
      return;
    }
    if (route.kind === "no topic") return this.#handleEvent(request, { kind: "no topic" });
    request.pendingReason = whyDelayed(request.traits.topic, route, this.#options.directory);
    this.#delay(request);
  }

  /** Delays a request. It is sent again after a back-off, or when servers join or leave. */
  #delay(request: ProxyRequest): void {
    const delayMs = backoffMs(request.delayCount++, requestBackoff, this.#options.random);
    const cancel = this.clock.startTimer(delayMs, () => this.#resume(request));
    request.location = { kind: "delayed", cancel };
    this.#delayed.add(request);
    if (request.traits.name === "PUT") request.putOrder ??= readPutOrder(decodePubsubMessage(request.frames));
    if (request.putOrder !== null) this.#putDependencies.add(request.putOrder, request);
  }

  #resume(request: ProxyRequest): void {
    if (request.location.kind !== "delayed") return;
    this.#detach(request);
    this.#route(request);
  }

  /** Sends the delayed puts that waited for this put, and their dependents. */
  #resumeDependents(stored: ProxyRequest): void {
    if (this.#putDependencies.isEmpty || stored.traits.name !== "PUT") return;
    const order = stored.putOrder ?? readPutOrder(decodePubsubMessage(stored.frames));
    if (order === null) return;
    for (const request of this.#putDependencies.putsUnblockedBy(order, ({ putOrder }) => putOrder)) {
      this.#resume(request);
    }
  }

  #onServersChanged(): void {
    const { servers } = this.#options.directory;
    for (const link of this.#links.keepOnly(servers)) {
      for (const request of link.takeWaiting()) this.#route(request);
      if (this.#sharedEndpoints.has(link.endpoint)) this.#takeBack(link);
    }
    const shared = [...servers.values()].filter(({ store }) => store !== undefined);
    this.#sharedEndpoints = new Set(shared.map(({ endpoint }) => endpoint));
    for (const request of [...this.#delayed]) this.#resume(request);
  }

  /**
   * Called when a server of a shared store has left. Other servers take over its topics, so this method treats the
   * requests at this server as if the connection were lost, and drops later responses.
   */
  #takeBack(link: ServerLink): void {
    for (const request of [...this.#inFlight]) {
      if (request.location.kind !== "sent" || request.location.link !== link) continue;
      link.drop(request);
      request.pendingReason = `server ${link.id} at ${link.endpoint} has left`;
      this.#handleEvent(request, { kind: "server lost" });
    }
  }

  #correctRoute(request: ProxyRequest, frames: readonly Uint8Array[]): void {
    const { target, traits: { topic } } = request;
    const answer = decodePubsubMessage(frames);
    const { owner, epoch } = answer.name === "STATUS" ? answer.headers ?? {} : {};
    const hint: TopicOwner | null = owner === undefined || epoch === undefined ? null : { owner, epoch };
    request.pendingReason = `server ${ownerOf(request)} does not have the topic`;
    if (target !== null) this.#options.directory.correctRoute(topic, target, hint);
  }

  /**
   * Returns true if a request with an unknown outcome may be sent again. A server that has lost its shared database
   * during a request opens the topic again, and then knows what was done.
   */
  #mayBeRepeated({ target }: ProxyRequest, frames: readonly Uint8Array[]): boolean {
    if (this.#options.directory.servers.get(target?.owner ?? "")?.store === undefined) return false;
    const answer = decodePubsubMessage(frames);
    return answer.name === "STATUS" && answer.headers?.unknown === true;
  }

  #forgetRoute({ target, traits }: ProxyRequest): void {
    if (target !== null) this.#options.directory.correctRoute(traits.topic, target, null);
  }

  /** Handles every event that moves or ends a request. `frames` are the frames of the event's response. */
  #handleEvent(request: ProxyRequest, event: RequestForwardingEvent, frames: readonly Uint8Array[] = []): void {
    const { traits, mayBeDone, tries, location } = request;
    if (location.kind === "over") return;
    if (event.kind === "server lost") request.connectionLosses++;
    const state = {
      traits,
      mayBeDone,
      tries,
      connectionLosses: request.connectionLosses,
      isSent: location.kind === "sent",
    };
    const decision = decideRequestForwarding(state, event);
    request.mayBeDone = mayRequestBeDone(state, event);
    if (decision.do === "retry") {
      this.#options.counters.retries++;
      if (decision.when === "now") this.#route(request);
      else this.#delay(request);
      return;
    }
    this.#endRequest(request);
    const { name, mayWait } = traits;
    if (decision.do !== "forget") {
      recordRequestLatency(this.#options.counters.latency, name, {
        ms: this.cachedClock.now() - request.arrivedMs,
        mayWait,
      });
    }
    if (decision.do === "forward response" && event.kind === "response") {
      this.#options.forwardResponse(request, frames, event.status);
      if (event.status === "OK") this.#resumeDependents(request);
    }
    if (decision.do === "respond") this.#options.respond(request, proxyResponseFor(request, decision.status));
    if (this.#inFlight.size === 0) this.#options.onIdle();
  }

  #endRequest(request: ProxyRequest): void {
    this.#detach(request);
    this.#deadlines.cancel(request, request.tick);
    this.#inFlight.delete(request);
    this.#admission.release(request.client, request.traits.topic, request.bytes);
  }

  #detach(request: ProxyRequest): void {
    const { location } = request;
    if (location.kind === "routing") this.#routing.get(request.traits.topic)?.delete(request);
    if (location.kind === "queued" || location.kind === "sent") location.link.drop(request);
    if (location.kind === "delayed") {
      location.cancel();
      this.#delayed.delete(request);
      if (request.putOrder !== null) this.#putDependencies.delete(request.putOrder, request);
    }
    request.location = { kind: "over" };
  }
}

/** Returns the reason why the request waits. If the server's response has a sentence, the reason contains it. */
function notReadyReason(request: ProxyRequest, frames: readonly Uint8Array[]): string {
  const answer = decodePubsubMessage(frames);
  const said = answer.name === "STATUS" && answer.body !== undefined ? `: ${decoder.decode(answer.body)}` : "";
  return `server ${ownerOf(request)} was not ready for it${said}`;
}

function ownerOf({ target }: ProxyRequest): string {
  return target?.owner ?? "?";
}

function proxyResponseFor({ traits, pendingReason }: ProxyRequest, status: ProxyOwnResponseStatus): ProxyResponse {
  if (status === "NOT_SUBSCRIBED" || status === "NOT_OWNER") {
    return { status, reason: `there is no topic ${JSON.stringify(traits.topic)}` };
  }
  if (status === "OVERLOADED") return { status, reason: `Not done: ${pendingReason}`, headers: {} };
  const tail = `${pendingReason}; ${traits.name} may have been executed`;
  return { status, reason: `outcome unknown: ${tail}`, headers: { unknown: true } };
}

function whyDelayed(
  topic: string,
  route: Exclude<TopicRoute, { kind: "server" | "no topic" }>,
  { servers, later }: Pick<TopicDirectory, "servers" | "later">,
): string {
  if (route.kind !== "unknown owner" && later.length > 0) return later.map(({ message }) => message).join("; ");
  switch (route.kind) {
    case "no servers":
      return servers.size === 0
        ? "there is no server; start one with: baton pubsub server"
        : "all servers are being drained";
    case "unavailable":
      return `server ${JSON.stringify(route.owner)}, which owns topic ${JSON.stringify(topic)}, is not connected`;
    case "unknown owner":
      return `the coordination service has lost its data; servers that may own the topic are missing: ${
        route.awaited.join(", ")
      }`;
  }
}

export interface ProxyCounters {
  /** The number of requests received, including invalid ones. */
  requests: number;
  /** The number of responses sent, by status, from servers and from the proxy itself. */
  readonly responses: Map<StatusCode, number>;
  /** The number of requests sent again: to another server, later, or because a connection was lost. */
  retries: number;
  /** The number of responses of servers that arrived after their request had ended. */
  lateResponses: number;
  /** The number of responses that were dropped because the client does not read or has disconnected. */
  undeliveredResponses: number;
  /**
   * The number of messages that were dropped without a response: STATUS messages, and messages with too many envelope
   * frames.
   */
  dropped: number;
  serversLost: number;
  /** Latency of requests about topics, including those that the proxy answered itself. */
  readonly latency: RequestLatencyHistograms;
}

export function newProxyCounters(): ProxyCounters {
  const counts = { requests: 0, retries: 0, lateResponses: 0, undeliveredResponses: 0, dropped: 0, serversLost: 0 };
  return { ...counts, responses: new Map(), latency: newRequestLatencyHistograms() };
}

/** Counts requests in flight, and refuses those above a limit. Pure. */
export class ProxyRequestAdmission {
  readonly #limits: ProxyLimits;
  readonly #topics = new Map<string, number>();
  #requests = 0;
  #bytes = 0;

  constructor(limits: ProxyLimits) {
    this.#limits = limits;
  }

  get requests(): number {
    return this.#requests;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Admits a request. Returns null, or a sentence that says which limit is reached. */
  admit(client: ProxyRequestClient, topic: string, bytes: number): string | null {
    const limits = this.#limits;
    const ofTopic = this.#topics.get(topic) ?? 0;
    const over = (what: string, limit: number) =>
      `Not now: ${what} has ${limit} requests in flight, which is the limit`;
    if (client.requests >= limits.requestsPerClient) return over("this connection", limits.requestsPerClient);
    if (ofTopic >= limits.requestsPerTopic) return over(`the topic ${JSON.stringify(topic)}`, limits.requestsPerTopic);
    if (this.#requests >= limits.requestsInAll) return over("this proxy", limits.requestsInAll);
    // A single message is always admitted: if the limit is below the largest body, that body would otherwise be refused
    // forever.
    const isOver = (present: number, limit: number) => present > 0 && present + bytes > limit;
    if (isOver(client.bytes, limits.bytesPerClient)) {
      return `Not now: this connection has ${client.bytes} bytes in flight`;
    }
    if (isOver(this.#bytes, limits.bytesInAll)) return `Not now: this proxy has ${this.#bytes} bytes in flight`;
    client.requests++;
    client.bytes += bytes;
    this.#topics.set(topic, ofTopic + 1);
    this.#requests++;
    this.#bytes += bytes;
    return null;
  }

  /** Subtracts a request that has ended from the counts. */
  release(client: ProxyRequestClient, topic: string, bytes: number): void {
    client.requests--;
    client.bytes -= bytes;
    const ofTopic = (this.#topics.get(topic) ?? 1) - 1;
    if (ofTopic > 0) this.#topics.set(topic, ofTopic);
    else this.#topics.delete(topic);
    this.#requests--;
    this.#bytes -= bytes;
  }
}

/**
 * Puts that servers have refused because the previous put is not stored yet. When that put is stored, the puts that
 * depend on it are sent immediately. Otherwise a series of puts would wait for one back-off per message.
 */
export class TopicPutDependencies<T> {
  readonly #waiting = new Map<string, Set<T>>();

  get isEmpty(): boolean {
    return this.#waiting.size === 0;
  }

  /** Adds a put that waits until the counter `after` is stored. */
  add({ stream, after }: TopicPutOrder, waits: T): void {
    if (after === null) return;
    const key = dependencyKey(stream, after);
    const others = this.#waiting.get(key);
    if (others === undefined) this.#waiting.set(key, new Set([waits]));
    else others.add(waits);
  }

  delete({ stream, after }: TopicPutOrder, waits: T): void {
    if (after === null) return;
    const key = dependencyKey(stream, after);
    const others = this.#waiting.get(key);
    if (others?.delete(waits) === true && others.size === 0) this.#waiting.delete(key);
  }

  /**
   * Returns all puts that can be sent now, in order: the puts that depend on the stored put, then the puts that depend
   * on them, and so on. The puts stay in the table until `delete` is called.
   */
  putsUnblockedBy({ stream, last }: TopicPutOrder, placeOf: (waits: T) => TopicPutOrder | null): T[] {
    const found: T[] = [];
    const met = new Set<number>();
    for (const lasts = [last]; lasts.length > 0;) {
      const after = lasts.pop() as number;
      if (met.has(after)) continue; // an invalid cycle sent by a client
      met.add(after);
      for (const waits of this.#waiting.get(dependencyKey(stream, after)) ?? []) {
        found.push(waits);
        const place = placeOf(waits);
        if (place !== null) lasts.push(place.last);
      }
    }
    return found;
  }
}

function dependencyKey(line: string, counter: number): string {
  return `${counter} ${line}`;
}
