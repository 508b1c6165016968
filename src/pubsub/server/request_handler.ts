/**
 * Handles clients' requests, and gives each exactly one response. First admits a request, if this server may serve its
 * topic, then passes its frames to the store. Sends the store's response only if the lease is still held after the
 * store has committed. Does not know the socket; owns the timers of held gets.
 */
import type { Clock } from "../../base/support/clock.ts";
import { CachedClock } from "../../base/support/cached_clock.ts";
import { errorMessage } from "../../base/errors.ts";
import { totalByteLength } from "../../base/wire/bytes.ts";
import { decodePubsubMessage, type InvalidPubsubMessage } from "../wire/decode_message.ts";
import { recordRequestLatency, type RequestLatencyHistograms } from "../request_latency.ts";
import type { TopicAvailability, TopicPermit } from "../ownership/topic_state.ts";
import type { TopicOwnership } from "../ownership/topic_ownership.ts";
import { makeStatusMessage, type ResponseStatusMessage } from "../status_message.ts";
import { makeUnavailableTopicResponse, replaceUnconfirmedResponse } from "./response_message.ts";
import type { ClientRequestMessage } from "../store/thread/client_request.ts";
import { getResponseBytesMax } from "../store/limits/topic_store_limits.ts";
import type { EncodedResponse, TopicStore } from "../store/topic_store.ts";
import type { ClientRequest, RequestEnvelope } from "./server_request.ts";
import { heldGetMsMax, pendingAdmissionsMax, requestAdmissionMsMax } from "./server_limits.ts";

export interface ServerRequestHandlerOptions {
  readonly server: string;
  readonly ownership: Pick<TopicOwnership, "currentPermit" | "availability">;
  readonly store: Pick<TopicStore, "submit" | "cancel">;
  readonly clock: Clock;
  readonly reply: (envelope: RequestEnvelope, response: ResponseStatusMessage | EncodedResponse) => void;
  readonly refuseInvalid: (envelope: RequestEnvelope, message: InvalidPubsubMessage) => void;
  /** Returns a server's endpoint; null if it is not running. */
  readonly endpointOf: (id: string) => string | null;
  readonly latency?: RequestLatencyHistograms;
  /** True if a commit compares the topic's epoch (shared store). Its response is then valid without the lease. */
  readonly confirmsByCommit?: boolean;
}

interface InFlightRequest {
  readonly request: ClientRequest;
  readonly permit: TopicPermit;
  readonly arrivedAtMs: number;
  /** Stops the timer of a held get; null for other requests. */
  readonly cancelTimer: (() => void) | null;
  readonly key: string;
}

/** A request that waits until the availability of its topic is known. */
interface PendingAdmission {
  readonly request: ClientRequest;
  readonly arrivedAtMs: number;
  cancelTimer: () => void;
}

const ticketsMax = 2 ** 31;

export class ServerRequestHandler {
  readonly #options: ServerRequestHandlerOptions;
  readonly #cachedClock: CachedClock;
  readonly #inFlight = new Map<number, InFlightRequest>();
  /** The tickets of held gets, by the key of their envelope. */
  readonly #pendingGets = new Map<string, number>();
  /** The pending requests by topic, in the order of arrival. A later request for the same topic queues behind them. */
  readonly #admissions = new Map<string, Set<PendingAdmission>>();
  #admitted = 0;
  #nextTicket = 0;
  #isDraining = false;
  #onSettled: (() => void) | null = null;

  constructor(options: ServerRequestHandlerOptions) {
    this.#options = options;
    this.#cachedClock = new CachedClock(options.clock);
  }

  /** The number of requests at the store, including held gets. */
  get inFlight(): number {
    return this.#inFlight.size;
  }

  get pendingGets(): number {
    return this.#pendingGets.size;
  }

  /** The number of requests that wait until the availability of their topic is known. */
  get pendingAdmissions(): number {
    return this.#admitted;
  }

  handle(request: ClientRequest): void {
    if (this.#isDraining) return this.#refuse(request, "this server is shutting down; ask again");
    const { topic } = request;
    const queue = this.#admissions.get(topic);
    const permit = queue === undefined ? this.#options.ownership.currentPermit(topic) : null;
    if (permit !== null) return this.#submit(request, permit);
    this.#decoded(request, (message) => {
      const admissions = queue ?? new Set<PendingAdmission>();
      if (!this.#admit(admissions, request, message.headers?.deadlineMs) || queue !== undefined) return;
      this.#admissions.set(topic, admissions);
      void this.#checkAvailability(topic, admissions, message.headers?.epoch ?? null);
    });
  }

  /** Cancels the get with this envelope, because its client no longer waits for it. The get is answered immediately. */
  cancel(envelope: RequestEnvelope): void {
    const key = envelopeKey(envelope);
    const ticket = this.#pendingGets.get(key);
    if (ticket !== undefined) return this.#options.store.cancel(ticket);
    for (const queue of this.#admissions.values()) {
      for (const admission of queue) {
        if (envelopeKey(admission.request.envelope) === key) {
          this.#giveUp(queue, admission, "the client no longer waits");
        }
      }
    }
  }

  /** Cancels the gets of closed connections. */
  cancelDisconnected(isThere: (peer: Uint8Array) => boolean): void {
    for (const ticket of this.#pendingGets.values()) {
      const peer = this.#inFlight.get(ticket)?.request.envelope[0];
      if (peer !== undefined && !isThere(peer)) this.#options.store.cancel(ticket);
    }
  }

  /** Handles durable responses of the store. */
  handleStoreResponses(responses: readonly EncodedResponse[]): void {
    const nowMs = this.#options.clock.now();
    const confirmed = new Map<TopicPermit["lease"], boolean>();
    for (const response of responses) {
      const inFlight = this.#inFlight.get(response.ticket);
      if (inFlight === undefined) continue;
      this.#forgetRequest(response.ticket, inFlight);
      const { request, permit, arrivedAtMs, cancelTimer } = inFlight;
      const { server, latency, confirmsByCommit = false } = this.#options;
      let isConfirmed = confirmed.get(permit.lease);
      if (isConfirmed === undefined) {
        confirmed.set(permit.lease, isConfirmed = confirmsByCommit || permit.lease.isConfirmed());
      }
      if (latency !== undefined) {
        recordRequestLatency(latency, request.name, { ms: nowMs - arrivedAtMs, mayWait: cancelTimer !== null });
      }
      if (isConfirmed && response.frames.length > 0) this.#options.reply(request.envelope, response);
      else this.#respond(request, (message) => replaceUnconfirmedResponse(server, message, response.code));
    }
    this.#notifySettled();
  }

  /** Handles a failure of the store: the outcome of its requests is unknown. */
  handleStoreFailure(): void {
    const reason = "the server's store failed; the outcome is unknown";
    for (const [ticket, inFlight] of this.#inFlight) {
      this.#forgetRequest(ticket, inFlight);
      this.#respond(
        inFlight.request,
        (message) => makeStatusMessage(this.#options.server, message, "ERROR", { reason, headers: { unknown: true } }),
      );
    }
    this.#notifySettled();
  }

  /** Refuses new requests, completes held gets, and resolves when every request has its response. */
  drain(): Promise<void> {
    this.#isDraining = true;
    for (const queue of this.#admissions.values()) {
      for (const admission of queue) this.#giveUp(queue, admission, "this server is shutting down; ask again");
    }
    for (const [ticket, { cancelTimer }] of this.#inFlight) {
      if (cancelTimer !== null) this.#options.store.cancel(ticket);
    }
    if (this.#inFlight.size === 0) return Promise.resolve();
    return new Promise((resolve) => this.#onSettled = resolve);
  }

  /** Queues a request until its topic's availability is known. Returns false if the server refuses it as overloaded. */
  #admit(queue: Set<PendingAdmission>, request: ClientRequest, deadlineMs = requestAdmissionMsMax): boolean {
    if (this.#admitted >= pendingAdmissionsMax) {
      this.#refuse(request, `the server is overloaded: ${pendingAdmissionsMax} requests already wait; try again later`);
      return false;
    }
    const { clock } = this.#options;
    const admission: PendingAdmission = { request, arrivedAtMs: clock.now(), cancelTimer: () => {} };
    this.#admitted++;
    queue.add(admission);
    admission.cancelTimer = clock.startTimer(Math.min(deadlineMs, requestAdmissionMsMax), () => {
      const topic = JSON.stringify(request.topic);
      this.#giveUp(queue, admission, `the owner of topic ${topic} was not known in time; ask again`);
    });
    return true;
  }

  #giveUp(queue: Set<PendingAdmission>, admission: PendingAdmission, why: string): void {
    if (this.#removeAdmission(queue, admission)) this.#refuse(admission.request, why);
  }

  #removeAdmission(queue: Set<PendingAdmission>, admission: PendingAdmission): boolean {
    if (!queue.delete(admission)) return false;
    admission.cancelTimer();
    this.#admitted--;
    return true;
  }

  async #checkAvailability(topic: string, queue: Set<PendingAdmission>, epoch: number | null): Promise<void> {
    let availability: TopicAvailability | null = null;
    let why = "";
    try {
      availability = await this.#options.ownership.availability(topic, epoch);
    } catch (thrown) {
      why = errorMessage(thrown);
    }
    this.#admissions.delete(topic);
    const { server, endpointOf } = this.#options;
    for (const admission of queue) {
      this.#removeAdmission(queue, admission);
      const { request, arrivedAtMs } = admission;
      if (availability?.kind === "serving") this.#submit(request, availability.permit, arrivedAtMs);
      else {
        this.#respond(
          request,
          (message) =>
            availability === null
              ? makeStatusMessage(server, message, "ERROR", { reason: why })
              : makeUnavailableTopicResponse(server, message, availability, endpointOf),
        );
      }
    }
  }

  #submit(request: ClientRequest, permit: TopicPermit, arrivedAtMs = this.#cachedClock.now()): void {
    const { server, store, clock } = this.#options;
    const { frames, message, envelope } = request;
    const longestMs = waitMsOf(message);
    const waitMs = longestMs === 0 ? 0 : longestMs - (clock.now() - arrivedAtMs);
    const ticket = this.#takeTicket();
    const bytes = message?.name === "GET" ? getResponseBytesMax(message.headers?.maxBytes) : totalByteLength(frames);
    let taken: boolean;
    try {
      taken = store.submit({ ticket, epoch: permit.epoch, frames, wait: waitMs > 0, bytes });
    } catch (thrown) {
      return this.#respond(
        request,
        (asked) => makeStatusMessage(server, asked, "ERROR", { reason: errorMessage(thrown) }),
      );
    }
    if (!taken) return this.#refuse(request, "too many requests are in flight at this server; ask again");
    const cancelTimer = waitMs > 0 ? clock.startTimer(waitMs, () => store.cancel(ticket)) : null;
    const key = cancelTimer === null ? "" : envelopeKey(envelope);
    if (cancelTimer !== null) this.#pendingGets.set(key, ticket);
    this.#inFlight.set(ticket, { request, permit, arrivedAtMs, cancelTimer, key });
  }

  #refuse(request: ClientRequest, reason: string): void {
    this.#respond(request, (message) => makeStatusMessage(this.#options.server, message, "OVERLOADED", { reason }));
  }

  #respond(request: ClientRequest, responseTo: (message: ClientRequestMessage) => ResponseStatusMessage): void {
    this.#decoded(request, (message) => this.#options.reply(request.envelope, responseTo(message)));
  }

  /** Calls `work` with the whole message. If the message is invalid, refuses the request. */
  #decoded({ envelope, frames, message }: ClientRequest, work: (message: ClientRequestMessage) => void): void {
    const whole = message ?? decodePubsubMessage(frames);
    if (whole.name === null) this.#options.refuseInvalid(envelope, whole);
    else work(whole as ClientRequestMessage);
  }

  #forgetRequest(ticket: number, { cancelTimer, key }: InFlightRequest): void {
    this.#inFlight.delete(ticket);
    cancelTimer?.();
    if (this.#pendingGets.get(key) === ticket) this.#pendingGets.delete(key);
  }

  #takeTicket(): number {
    do {
      this.#nextTicket = (this.#nextTicket + 1) % ticketsMax;
    } while (this.#inFlight.has(this.#nextTicket));
    return this.#nextTicket;
  }

  #notifySettled(): void {
    if (this.#inFlight.size > 0) return;
    this.#onSettled?.();
    this.#onSettled = null;
  }
}

/** Returns a key that is equal only for equal frames. */
function envelopeKey(envelope: RequestEnvelope): string {
  return envelope.map((frame) => Buffer.from(frame.buffer, frame.byteOffset, frame.byteLength).toString("hex")).join(
    " ",
  );
}

/** Returns how long a get may be held, in milliseconds; 0 for other requests. */
function waitMsOf(message: ClientRequestMessage | null): number {
  if (message?.name !== "GET") return 0;
  const { waitMs = 0, deadlineMs = Infinity } = message.headers ?? {};
  return Math.min(waitMs, deadlineMs, heldGetMsMax);
}
