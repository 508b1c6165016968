/**
 * Handles clients' requests; each gets exactly one response. Admits a request by its topic's permit, submits it to the
 * store, and responds OK only if the lease is still held after the store has committed. Knows no socket; owns the
 * timers of held gets.
 */
import type { Clock } from "../../support/clock.ts";
import { CachedClock } from "../../support/cached_clock.ts";
import { messageOf } from "../../errors.ts";
import { batchMessagesMax, bodyBytesMax } from "../../wire/pubsub/message_limits.ts";
import type { ClientOperation, StoreResponse } from "../../wire/pubsub/store_operations.ts";
import { recordLatency, type RequestLatency } from "../request_latency.ts";
import type { RequestAvailability, RequestPermit, TopicOwnership } from "../ownership/topic_ownership.ts";
import {
  makeStatus,
  type Status,
  statusOfStoreResponse,
  unavailableResponse,
  unconfirmedResponse,
} from "./response_message.ts";
import type { TopicStore } from "../store/topic_store.ts";
import type { ClientMessage, Envelope } from "./server_request.ts";
import { admissionMs, admissionsMax, waitMsMax } from "./server_limits.ts";

export interface RequestHandlerOptions {
  readonly server: string;
  readonly ownership: Pick<TopicOwnership, "currentPermit" | "availability">;
  readonly store: Pick<TopicStore, "submit" | "cancel">;
  readonly clock: Clock;
  readonly reply: (envelope: Envelope, status: Status) => void;
  /** A server's endpoint; null if it is not running. */
  readonly endpointOf: (id: string) => string | null;
  readonly latency?: RequestLatency;
}

/** A request that was submitted to the store. */
interface InFlightRequest {
  readonly envelope: Envelope;
  readonly message: ClientMessage;
  readonly permit: RequestPermit;
  readonly arrivedAtMs: number;
  /** Set for a held get, together with its key. */
  readonly cancelTimer: (() => void) | null;
  readonly key: string;
}

/** A request that waits until the availability of its topic is known. */
interface PendingAdmission {
  readonly envelope: Envelope;
  readonly message: ClientMessage;
  readonly arrivedAtMs: number;
  cancelTimer: () => void;
}

const nothing = new Uint8Array(0);
const ticketsMax = 2 ** 31;

export class RequestHandler {
  readonly #options: RequestHandlerOptions;
  readonly #cachedClock: CachedClock;
  readonly #inFlight = new Map<number, InFlightRequest>();
  /** Tickets of held gets by the key of their envelope. */
  readonly #pendingGets = new Map<string, number>();
  /** Pending requests by topic, in the order of arrival. A later request for the same topic queues behind them. */
  readonly #admissions = new Map<string, Set<PendingAdmission>>();
  #admitted = 0;
  #nextTicket = 0;
  #isDraining = false;
  #onSettled: (() => void) | null = null;

  constructor(options: RequestHandlerOptions) {
    this.#options = options;
    this.#cachedClock = new CachedClock(options.clock);
  }

  /** Requests submitted to the store, including held gets. */
  get inFlight(): number {
    return this.#inFlight.size;
  }

  /** Gets that are held until there is a message. */
  get pendingGets(): number {
    return this.#pendingGets.size;
  }

  /** Requests that wait until the availability of their topic is known. */
  get pendingAdmissions(): number {
    return this.#admitted;
  }

  handle(envelope: Envelope, message: ClientMessage): void {
    if (this.#isDraining) return this.#refuse(envelope, message, "this server is shutting down; ask again");
    const queue = this.#admissions.get(message.topic);
    if (queue !== undefined) return void this.#admit(queue, envelope, message);
    const permit = this.#options.ownership.currentPermit(message.topic);
    if (permit !== null) return this.#submit(envelope, message, permit);
    const admissions = new Set<PendingAdmission>();
    if (!this.#admit(admissions, envelope, message)) return;
    this.#admissions.set(message.topic, admissions);
    void this.#checkAvailability(message.topic, admissions, message.headers?.epoch ?? null);
  }

  /** Cancels the get with this envelope, because its client no longer waits: it is answered immediately. */
  cancel(envelope: Envelope): void {
    const key = envelopeKey(envelope);
    const ticket = this.#pendingGets.get(key);
    if (ticket !== undefined) return this.#options.store.cancel(ticket);
    for (const queue of this.#admissions.values()) {
      for (const admission of queue) {
        if (envelopeKey(admission.envelope) === key) this.#giveUp(queue, admission, "the client no longer waits");
      }
    }
  }

  /** Cancels the gets of closed connections. */
  cancelDisconnected(isThere: (peer: Uint8Array) => boolean): void {
    for (const ticket of this.#pendingGets.values()) {
      const peer = this.#inFlight.get(ticket)?.envelope[0];
      if (peer !== undefined && !isThere(peer)) this.#options.store.cancel(ticket);
    }
  }

  /** Handles durable responses of the store. */
  handleStoreResponses(responses: readonly StoreResponse[]): void {
    const nowMs = this.#options.clock.now();
    const confirmed = new Map<RequestPermit["lease"], boolean>();
    for (const response of responses) {
      const request = this.#inFlight.get(response.ticket);
      if (request === undefined) continue;
      this.#forgetRequest(response.ticket, request);
      const { envelope, message, permit, arrivedAtMs, cancelTimer } = request;
      const { server, reply, latency } = this.#options;
      let isConfirmed = confirmed.get(permit.lease);
      if (isConfirmed === undefined) confirmed.set(permit.lease, isConfirmed = permit.lease.isConfirmed());
      const status = isConfirmed
        ? statusOfStoreResponse(server, message, response, permit.epoch)
        : unconfirmedResponse(server, message, response.code);
      if (latency !== undefined) {
        recordLatency(latency, message.name, { ms: nowMs - arrivedAtMs, mayWait: cancelTimer !== null });
      }
      reply(envelope, status);
    }
    this.#notifySettled();
  }

  /** The store failed: the outcome of its requests is unknown. */
  handleStoreFailure(): void {
    const reason = "the server's store failed; the outcome is unknown";
    for (const [ticket, request] of this.#inFlight) {
      this.#forgetRequest(ticket, request);
      const { envelope, message } = request;
      this.#options.reply(
        envelope,
        makeStatus(this.#options.server, message, "ERROR", { reason, headers: { unknown: true } }),
      );
    }
    this.#notifySettled();
  }

  /** Refuses new requests, completes held gets, and resolves when all requests have their response. */
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

  /** Returns false if the request was refused. */
  #admit(queue: Set<PendingAdmission>, envelope: Envelope, message: ClientMessage): boolean {
    if (this.#admitted >= admissionsMax) {
      this.#refuse(
        envelope,
        message,
        `the server is overloaded: ${admissionsMax} requests already wait; try again later`,
      );
      return false;
    }
    const { clock } = this.#options;
    const admission: PendingAdmission = { envelope, message, arrivedAtMs: clock.now(), cancelTimer: () => {} };
    this.#admitted++;
    queue.add(admission);
    const withinMs = Math.min(message.headers?.deadlineMs ?? admissionMs, admissionMs);
    admission.cancelTimer = clock.startTimer(withinMs, () => {
      this.#giveUp(
        queue,
        admission,
        `the owner of topic ${JSON.stringify(message.topic)} was not known in time; ask again`,
      );
    });
    return true;
  }

  #giveUp(queue: Set<PendingAdmission>, admission: PendingAdmission, why: string): void {
    if (!this.#removeAdmission(queue, admission)) return;
    this.#refuse(admission.envelope, admission.message, why);
  }

  #removeAdmission(queue: Set<PendingAdmission>, admission: PendingAdmission): boolean {
    if (!queue.delete(admission)) return false;
    admission.cancelTimer();
    this.#admitted--;
    return true;
  }

  async #checkAvailability(topic: string, queue: Set<PendingAdmission>, epoch: number | null): Promise<void> {
    let availability: RequestAvailability | null = null;
    let why = "";
    try {
      availability = await this.#options.ownership.availability(topic, epoch);
    } catch (thrown) {
      why = messageOf(thrown);
    }
    this.#admissions.delete(topic);
    for (const admission of queue) {
      this.#removeAdmission(queue, admission);
      const { envelope, message, arrivedAtMs } = admission;
      const { server, reply, endpointOf } = this.#options;
      if (availability === null) reply(envelope, makeStatus(server, message, "ERROR", { reason: why }));
      else if (availability.kind === "serving") this.#submit(envelope, message, availability.permit, arrivedAtMs);
      else reply(envelope, unavailableResponse(server, message, availability, endpointOf));
    }
  }

  #submit(
    envelope: Envelope,
    message: ClientMessage,
    permit: RequestPermit,
    arrivedAtMs = this.#cachedClock.now(),
  ): void {
    const { server, store, reply, clock } = this.#options;
    const asked = message.headers?.epoch ?? 0;
    if (asked > permit.epoch) {
      const reason = `topic ${
        JSON.stringify(message.topic)
      } is at epoch ${permit.epoch} here; the request is for epoch ${asked}`;
      return reply(envelope, makeStatus(server, message, "NOT_OWNER", { reason }));
    }
    const longestMs = waitMsOf(message);
    const waitMs = longestMs === 0 ? 0 : longestMs - (clock.now() - arrivedAtMs);
    const ticket = this.#takeTicket();
    let taken: boolean;
    try {
      taken = store.submit(operationOf(message, { ticket, epoch: permit.epoch, wait: waitMs > 0 }));
    } catch (thrown) {
      return reply(envelope, makeStatus(server, message, "ERROR", { reason: messageOf(thrown) }));
    }
    if (!taken) return this.#refuse(envelope, message, "too many requests are in flight at this server; ask again");
    const cancelTimer = waitMs > 0 ? clock.startTimer(waitMs, () => store.cancel(ticket)) : null;
    const key = cancelTimer === null ? "" : envelopeKey(envelope);
    if (cancelTimer !== null) this.#pendingGets.set(key, ticket);
    this.#inFlight.set(ticket, { envelope, message, permit, arrivedAtMs, cancelTimer, key });
  }

  #refuse(envelope: Envelope, message: ClientMessage, reason: string): void {
    this.#options.reply(envelope, makeStatus(this.#options.server, message, "OVERLOADED", { reason }));
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

/** A key that is equal only for equal frames. */
function envelopeKey(envelope: Envelope): string {
  return envelope.map((frame) => Buffer.from(frame.buffer, frame.byteOffset, frame.byteLength).toString("hex")).join(
    " ",
  );
}

/** How long a get may be held; 0 for other requests. */
function waitMsOf(message: ClientMessage): number {
  if (message.name !== "GET") return 0;
  const { waitMs = 0, deadlineMs = Infinity } = message.headers ?? {};
  return Math.min(waitMs, deadlineMs, waitMsMax);
}

/** Converts a client's message into an operation of the store. `wait`: a get is held until there is a message. */
function operationOf(message: ClientMessage, { ticket, epoch, wait }: {
  readonly ticket: number;
  readonly epoch: number;
  readonly wait: boolean;
}): ClientOperation {
  const { topic, sender, headers } = message;
  const session = headers?.session ?? null;
  if (message.name === "PUT") {
    // Written out: spreading `common` would cost more than the rest of this function.
    return {
      kind: "put",
      ticket,
      topic,
      epoch,
      client: sender,
      session,
      registration: headers?.registration ?? 0,
      counter: message.counter,
      fromSession: headers?.fromSession ?? null,
      firstUnacked: headers?.firstUnacked ?? 0,
      after: headers?.after ?? null,
      msgId: headers?.msgId ?? null,
      bodies: message.batch ?? [message.body ?? nothing],
    };
  }
  const common = { ticket, topic, epoch, client: sender, session, registration: headers?.registration ?? 0 };
  switch (message.name) {
    case "GET":
      return {
        kind: "get",
        ...common,
        op: headers?.op ?? null,
        last: message.last,
        max: Math.min(Math.max(headers?.max ?? 1, 1), batchMessagesMax),
        maxBytes: Math.min(headers?.maxBytes ?? 0, bodyBytesMax),
        wait,
        peek: headers?.peek ?? false,
      };
    case "SEEK":
      return { kind: "seek", ...common, op: headers?.op ?? null, to: message.to };
    case "INFO":
      return { kind: "info", ...common };
    case "SUBSCRIBE":
      return { kind: "subscribe", ...common, op: headers?.op ?? null };
    case "UNSUBSCRIBE":
      return { kind: "unsubscribe", ...common, op: headers?.op ?? null };
  }
}
