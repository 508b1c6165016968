/**
 * Every request under way, from its arrival to its one answer: finds its server, hands it over, and does what
 * request_fate.ts decides when something happens to it. Knows nothing of the socket that clients come by.
 */
import type { SocketOptions } from "../../zeromq/socket_options.ts";
import { BatonError, messageOf } from "../../errors.ts";
import { backoffMs } from "../../support/backoff.ts";
import type { Clock } from "../../support/clock.ts";
import { CachedClock } from "../../support/cached_clock.ts";
import { decodeMessage } from "../../wire/pubsub/decode_message.ts";
import type { StatusCode } from "../../wire/pubsub/status_codes.ts";
import { measure } from "../request_latency.ts";
import type { Route } from "../ownership/topic_router.ts";
import { Admission } from "./admission.ts";
import { answerStatus } from "./response_status.ts";
import { DeadlineWheel } from "./deadline_wheel.ts";
import type { Directory, Owner } from "./topic_directory.ts";
import type { OwnAnswer } from "./proxy_response.ts";
import type { ProxyCounters } from "./proxy_counters.ts";
import type { ProxyLimits } from "./proxy_limits.ts";
import type { Client, Request } from "./proxy_request.ts";
import { PutChains } from "./put_dependencies.ts";
import { fateOf, mayBeDoneAfter, type OwnStatus, type RequestEvent } from "./decide_forwarding.ts";
import type { RequestTraits } from "./request_traits.ts";
import { type LinkHost, ServerLink } from "./server_link.ts";
import { ServerLinks } from "./server_links.ts";

export interface ForwarderOptions {
  /** The proxy's. */
  readonly id: string;
  readonly directory: Directory;
  readonly clock: Clock;
  readonly limits: ProxyLimits;
  readonly counters: ProxyCounters;
  /** For the sockets to servers. */
  readonly socketOptions: SocketOptions;
  /** A server's answer, or the proxy's own: each request gets one, unless its client is gone. */
  readonly passOn: (request: Request, frames: readonly Uint8Array[], status: StatusCode) => void;
  readonly answer: (request: Request, answer: OwnAnswer) => void;
  /** A server that is not reached: once, until it is reached again. */
  readonly onProblem: (problem: BatonError) => void;
  /** No request is under way any more. */
  readonly onIdle: () => void;
  readonly random?: () => number;
}

/** What a client has sent. */
export interface Arrival {
  readonly client: Client;
  readonly envelope: readonly Uint8Array[];
  readonly frames: readonly Uint8Array[];
  readonly bytes: number;
  readonly traits: RequestTraits;
}

/** A server is missed when it was not reached for so long, in milliseconds. */
const missedMsMin = 1000;
/** Between two tries of a request that found nobody, or was told to come later. */
const parkWait = { firstMs: 20, maxMs: 1000 };

const decoder = new TextDecoder();

export class Forwarder implements LinkHost {
  readonly id: string;
  readonly clock: Clock;
  readonly cachedClock: CachedClock;
  readonly limits: ProxyLimits;
  readonly socketOptions: SocketOptions;
  readonly #options: ForwarderOptions;
  readonly #admission: Admission;
  readonly #wheel: DeadlineWheel<Request>;
  readonly #links: ServerLinks;
  /** By topic: requests in the order in which they came, while its server is looked up. */
  readonly #looking = new Map<string, Set<Request>>();
  readonly #parked = new Set<Request>();
  /** Of those that are parked: what waits for another put. */
  readonly #chains = new PutChains<Request>();
  readonly #underWay = new Set<Request>();
  readonly #offDirectory: () => void;
  #isClosed = false;

  constructor(options: ForwarderOptions) {
    this.#options = options;
    this.id = options.id;
    this.clock = options.clock;
    this.cachedClock = new CachedClock(options.clock);
    this.limits = options.limits;
    this.socketOptions = options.socketOptions;
    this.#admission = new Admission(options.limits);
    this.#wheel = new DeadlineWheel(options.clock, (request) => this.#happened(request, { kind: "time over" }));
    this.#links = new ServerLinks((id, endpoint) => new ServerLink(id, endpoint, this));
    this.#offDirectory = options.directory.subscribe(() => this.#serversChanged());
  }

  get admission(): Pick<Admission, "requests" | "bytes"> {
    return this.#admission;
  }

  get links(): Iterable<ServerLink> {
    return this.#links;
  }

  /** Takes a request, and answers it by its deadline. Why not, as a sentence; null when it is taken. */
  take({ client, envelope, frames, bytes, traits }: Arrival): string | null {
    const refusal = this.#admission.admit(client, traits.topic, bytes);
    if (refusal !== null) return refusal;
    const arrivedMs = this.cachedClock.now();
    const request: Request = {
      ...{ client, envelope, frames, bytes, traits, arrivedMs },
      tick: 0,
      tries: 0,
      losses: 0,
      waits: 0,
      mayBeDone: false,
      at: { kind: "over" },
      asked: null,
      why: "no server has answered",
    };
    request.tick = this.#wheel.set(request, arrivedMs + traits.patienceMs);
    this.#underWay.add(request);
    this.#direct(request);
    return null;
  }

  /** Nobody waits for these clients' answers. */
  clientsGone(clients: ReadonlySet<Client>): void {
    for (const request of this.#underWay) {
      if (clients.has(request.client)) this.#happened(request, { kind: "client gone" });
    }
  }

  /** Answers what is left, as if its time were over; or only what no server is at work on: that is tried elsewhere. */
  finish(which: "all" | "what waits", why: string): void {
    for (const request of this.#underWay) {
      const isBusy = request.at.kind === "sent" && !request.traits.mayWait;
      if (which === "what waits" && isBusy) continue;
      request.why = why;
      this.#happened(request, { kind: "time over" });
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#offDirectory();
    this.#wheel[Symbol.dispose]();
    for (const request of this.#underWay) this.#leavePlace(request);
    this.#underWay.clear();
    await this.#links.close();
  }

  /** The rest is called by the links. */
  answered(request: Request, frames: Uint8Array[]): void {
    const status = answerStatus(frames[0]);
    if (status === null) return this.#happened(request, { kind: "answered with nonsense" });
    if (status === "NOT_OWNER") this.#correct(request, frames);
    if (status === "OVERLOADED") request.why = notReady(request, frames);
    this.#happened(request, { kind: "answered", status }, frames);
  }

  late(): void {
    this.#options.counters.late++;
  }

  connected(link: ServerLink): void {
    link.forgetMissed?.();
    link.forgetMissed = null;
  }

  unsendable(request: Request, why: string): void {
    this.#end(request);
    this.#options.answer(request, { status: "BAD_REQUEST", why: `Cannot pass it on: ${why}`, headers: {} });
    if (this.#underWay.size === 0) this.#options.onIdle();
  }

  lost(requests: readonly Request[], link: ServerLink): void {
    this.#options.counters.serversLost++;
    this.#tell(link, "the connection was lost");
    for (const request of requests) {
      request.why = `the connection to server ${link.id} at ${link.endpoint} was lost`;
      this.#happened(request, { kind: "server lost" });
    }
    this.#links.keepOnly(this.#options.directory.servers);
  }

  /** What waits for it looks again where its topic is: an operator may have given it to somebody else. */
  unreachable(link: ServerLink, reason: Error): void {
    this.#tell(link, `it is not reached: ${reason.message}`);
    for (const request of link.takeWaiting()) {
      request.why = `server ${link.id} at ${link.endpoint} is not reached: ${reason.message}`;
      this.#forgetRoute(request);
      this.#park(request);
    }
    this.#links.keepOnly(this.#options.directory.servers);
  }

  /** Not of a server that has left, which may be heard of a moment later, nor of one that is back at once. */
  #tell(link: ServerLink, what: string): void {
    link.forgetMissed ??= this.clock.after(missedMsMin, () => {
      const isThere = this.#options.directory.servers.get(link.id)?.endpoint === link.endpoint;
      if (isThere) {
        this.#options.onProblem(new BatonError("UNREACHABLE", `server "${link.id}" at ${link.endpoint}: ${what}`));
      } else link.forgetMissed = null;
    });
  }

  /** To where its topic is. */
  #direct(request: Request): void {
    const { topic } = request.traits;
    const looking = this.#looking.get(topic);
    if (looking !== undefined) {
      request.at = { kind: "looking" };
      looking.add(request);
      return;
    }
    const route = this.#options.directory.routeNow(topic);
    if (route !== null) return this.#follow(request, route);
    request.at = { kind: "looking" };
    this.#looking.set(topic, new Set([request]));
    void this.#look(topic, request.traits.createsTopic);
  }

  async #look(topic: string, creates: boolean): Promise<void> {
    let route: Route | null = null;
    let why = "";
    try {
      route = await this.#options.directory.route(topic, { creates });
    } catch (thrown) {
      why = messageOf(thrown);
    }
    const requests = this.#looking.get(topic) ?? [];
    this.#looking.delete(topic);
    if (this.#isClosed) return;
    for (const request of requests) {
      if (route === null) request.why = `nobody could say where the topic is: ${why}`;
      if (route === null) this.#park(request);
      // One that creates it has come while others asked.
      else if (route.kind === "no topic" && request.traits.createsTopic) this.#direct(request);
      else this.#follow(request, route);
    }
  }

  #follow(request: Request, route: Route): void {
    if (route.kind === "server") {
      request.asked = { owner: route.id, epoch: route.epoch };
      this.#links.get(route.id, route.endpoint).enqueue(request);
      return;
    }
    if (route.kind === "no topic") return this.#happened(request, { kind: "no topic" });
    request.why = whyParked(route, this.#options.directory.servers.size);
    this.#park(request);
  }

  /** Tried again in a moment, or as soon as servers have come or gone. */
  #park(request: Request): void {
    const delayMs = backoffMs(request.waits++, { ...parkWait, random: this.#options.random ?? Math.random });
    const cancel = this.clock.after(delayMs, () => this.#unpark(request));
    request.at = { kind: "parked", cancel };
    this.#parked.add(request);
    if (request.traits.chain !== null) this.#chains.add(request.traits.chain, request);
  }

  #unpark(request: Request): void {
    if (request.at.kind !== "parked") return;
    this.#leavePlace(request);
    this.#direct(request);
  }

  /** What waited for this put, and what waits for those, can come now. */
  #callBehind({ traits: { chain } }: Request): void {
    if (chain === null) return;
    for (const request of this.#chains.behind(chain, ({ traits }) => traits.chain)) this.#unpark(request);
  }

  #serversChanged(): void {
    for (const link of this.#links.keepOnly(this.#options.directory.servers)) {
      for (const request of link.takeWaiting()) this.#direct(request);
    }
    for (const request of [...this.#parked]) this.#unpark(request);
  }

  #correct(request: Request, frames: readonly Uint8Array[]): void {
    const { asked, traits: { topic } } = request;
    const answer = decodeMessage(frames);
    const { owner, epoch } = answer.name === "STATUS" ? answer.headers ?? {} : {};
    const hint: Owner | null = owner === undefined || epoch === undefined ? null : { owner, epoch };
    request.why = `server ${ownerOf(request)} does not have the topic`;
    if (asked !== null) this.#options.directory.corrected(topic, asked, hint);
  }

  #forgetRoute({ asked, traits }: Request): void {
    if (asked !== null) this.#options.directory.corrected(traits.topic, asked, null);
  }

  /** The one place where a request changes hands or ends. `frames`: of the answer that it is about. */
  #happened(request: Request, event: RequestEvent, frames: readonly Uint8Array[] = []): void {
    const { traits, mayBeDone, tries, at } = request;
    if (at.kind === "over") return;
    if (event.kind === "server lost") request.losses++;
    const state = { traits, mayBeDone, tries, losses: request.losses, isSent: at.kind === "sent" };
    const fate = fateOf(state, event);
    request.mayBeDone = mayBeDoneAfter(state, event);
    if (fate.do === "send again") {
      this.#options.counters.sentAgain++;
      if (fate.when === "now") this.#direct(request);
      else this.#park(request);
      return;
    }
    this.#end(request);
    const { name, mayWait } = traits;
    if (fate.do !== "forget") {
      measure(this.#options.counters.latency, name, { ms: this.cachedClock.now() - request.arrivedMs, mayWait });
    }
    if (fate.do === "pass on" && event.kind === "answered") {
      this.#options.passOn(request, frames, event.status);
      if (event.status === "OK") this.#callBehind(request);
    }
    if (fate.do === "answer") this.#options.answer(request, ownAnswerFor(request, fate.status));
    if (this.#underWay.size === 0) this.#options.onIdle();
  }

  #end(request: Request): void {
    this.#leavePlace(request);
    this.#wheel.cancel(request, request.tick);
    this.#underWay.delete(request);
    this.#admission.release(request.client, request.traits.topic, request.bytes);
  }

  #leavePlace(request: Request): void {
    const { at } = request;
    if (at.kind === "looking") this.#looking.get(request.traits.topic)?.delete(request);
    if (at.kind === "queued" || at.kind === "sent") at.link.drop(request);
    if (at.kind === "parked") {
      at.cancel();
      this.#parked.delete(request);
      if (request.traits.chain !== null) this.#chains.delete(request.traits.chain, request);
    }
    request.at = { kind: "over" };
  }
}

/** In the server's own words, if it has said some. */
function notReady(request: Request, frames: readonly Uint8Array[]): string {
  const answer = decodeMessage(frames);
  const said = answer.name === "STATUS" && answer.body !== undefined ? `: ${decoder.decode(answer.body)}` : "";
  return `server ${ownerOf(request)} was not ready for it${said}`;
}

function ownerOf({ asked }: Request): string {
  return asked?.owner ?? "?";
}

function ownAnswerFor({ traits, why }: Request, status: OwnStatus): OwnAnswer {
  if (status === "NOT_SUBSCRIBED" || status === "NOT_OWNER") {
    return { status, why: `there is no topic ${JSON.stringify(traits.topic)}` };
  }
  if (status === "OVERLOADED") return { status, why: `Not done: ${why}`, headers: {} };
  const tail = `${why}; whether ${traits.name} was done is not known`;
  return { status, why: `Cannot say: ${tail}`, headers: { unknown: true } };
}

function whyParked(route: Exclude<Route, { kind: "server" | "no topic" }>, servers: number): string {
  switch (route.kind) {
    case "no servers":
      return servers === 0 ? "there is no server" : "every server there is drained of its topics";
    case "unavailable":
      return `server ${route.owner}, which has the topic, is not there`;
    case "nobody knows":
      return `the coordination service has lost its data, and ${
        route.awaited.join(", ")
      }, which may have the topic, has not come back to it`;
  }
}
