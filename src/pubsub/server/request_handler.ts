/**
 * Takes clients' requests in and gives every one of them one answer: lets it in by the topic's permit, hands it to the store,
 * and says OK only when the lease holds after the store has answered. Knows no socket; owns the timers of what waits.
 */
import type { Clock } from "../../support/clock.ts";
import { CachedClock } from "../../support/cached_clock.ts";
import { messageOf } from "../../errors.ts";
import type { ClientOperation, StoreResponse } from "../../wire/pubsub/store_operations.ts";
import { measure, type RequestLatency } from "../request_latency.ts";
import type { RequestPermit, RequestStanding } from "../ownership/topic_ownership.ts";
import { answerOf, standingAnswer, type Status, statusOf, unconfirmedAnswer } from "./response_message.ts";
import type { ClientMessage, Envelope } from "./server_request.ts";
import { operationOf } from "./request_operation.ts";
import { admissionMs, admissionsMax, waitMsMax } from "./server_limits.ts";

export interface DeskOwnership {
  permitNow(topic: string): RequestPermit | null;
  standing(topic: string, epoch: number | null): Promise<RequestStanding>;
}

export interface DeskStore {
  submit(operation: ClientOperation): boolean;
  cancel(ticket: number): void;
}

export interface DeskOptions {
  readonly server: string;
  readonly ownership: DeskOwnership;
  readonly store: DeskStore;
  readonly clock: Clock;
  readonly reply: (envelope: Envelope, status: Status) => void;
  /** Where a server listens; null when it is not there. */
  readonly endpointOf: (id: string) => string | null;
  readonly latency?: RequestLatency;
}

/** A request that is at the store. */
interface UnderWay {
  readonly envelope: Envelope;
  readonly message: ClientMessage;
  readonly permit: RequestPermit;
  readonly arrivedAtMs: number;
  /** Of a get that waits, and what it is known by. */
  readonly cancelTimer: (() => void) | null;
  readonly key: string;
}

/** A request whose topic is being looked at. */
interface Admission {
  readonly envelope: Envelope;
  readonly message: ClientMessage;
  readonly arrivedAtMs: number;
  cancelTimer: () => void;
}

const ticketsMax = 2 ** 31;

export class RequestDesk {
  readonly #options: DeskOptions;
  readonly #cachedClock: CachedClock;
  readonly #underWay = new Map<number, UnderWay>();
  /** Gets that wait: tickets by their envelopes. */
  readonly #waitingGets = new Map<string, number>();
  /** By topic, in the order of arrival: whoever comes later for the same topic stays behind. */
  readonly #admissions = new Map<string, Set<Admission>>();
  #admitted = 0;
  #nextTicket = 0;
  #isLeaving = false;
  #settled: (() => void) | null = null;

  constructor(options: DeskOptions) {
    this.#options = options;
    this.#cachedClock = new CachedClock(options.clock);
  }

  /** Requests at the store, gets that wait included. */
  get underWay(): number {
    return this.#underWay.size;
  }

  /** Gets that are kept back until there is a message. */
  get waiting(): number {
    return this.#waitingGets.size;
  }

  /** Requests whose topic is being looked at. */
  get admissions(): number {
    return this.#admitted;
  }

  take(envelope: Envelope, message: ClientMessage): void {
    if (this.#isLeaving) return this.#refuse(envelope, message, "this server is leaving; ask again");
    const queue = this.#admissions.get(message.topic);
    if (queue !== undefined) return void this.#admit(queue, envelope, message);
    const permit = this.#options.ownership.permitNow(message.topic);
    if (permit !== null) return this.#submit(envelope, message, permit);
    const admissions = new Set<Admission>();
    if (!this.#admit(admissions, envelope, message)) return;
    this.#admissions.set(message.topic, admissions);
    void this.#look(message.topic, admissions, message.headers?.epoch ?? null);
  }

  /** Nobody waits for the answer to what came in this envelope: a get that waits is answered at once. */
  cancel(envelope: Envelope): void {
    const key = keyOf(envelope);
    const ticket = this.#waitingGets.get(key);
    if (ticket !== undefined) return this.#options.store.cancel(ticket);
    for (const queue of this.#admissions.values()) {
      for (const admission of queue) {
        if (keyOf(admission.envelope) === key) this.#giveUp(queue, admission, "nobody waits for it any more");
      }
    }
  }

  /** The same for everything that came by connections that are gone. */
  cancelGone(isThere: (peer: Uint8Array) => boolean): void {
    for (const ticket of this.#waitingGets.values()) {
      const peer = this.#underWay.get(ticket)?.envelope[0];
      if (peer !== undefined && !isThere(peer)) this.#options.store.cancel(ticket);
    }
  }

  /** What the store has answered, durably. */
  answered(answers: readonly StoreResponse[]): void {
    const nowMs = this.#options.clock.now();
    const confirmed = new Map<RequestPermit["lease"], boolean>();
    for (const answer of answers) {
      const request = this.#underWay.get(answer.ticket);
      if (request === undefined) continue;
      this.#forget(answer.ticket, request);
      const { envelope, message, permit, arrivedAtMs, cancelTimer } = request;
      const { server, reply, latency } = this.#options;
      let isConfirmed = confirmed.get(permit.lease);
      if (isConfirmed === undefined) confirmed.set(permit.lease, isConfirmed = permit.lease.isConfirmed());
      const status = isConfirmed
        ? answerOf(server, message, answer, permit.epoch)
        : unconfirmedAnswer(server, message, answer.code);
      if (latency !== undefined) {
        measure(latency, message.name, { ms: nowMs - arrivedAtMs, mayWait: cancelTimer !== null });
      }
      reply(envelope, status);
    }
    this.#tellSettled();
  }

  /** The store is broken: nobody knows what became of what it had. */
  lost(): void {
    const reason = "the server's store failed; nobody knows whether this was done";
    for (const [ticket, request] of this.#underWay) {
      this.#forget(ticket, request);
      const { envelope, message } = request;
      this.#options.reply(
        envelope,
        statusOf(this.#options.server, message, "ERROR", { reason, headers: { unknown: true } }),
      );
    }
    this.#tellSettled();
  }

  /** Takes nothing more, answers those who wait, and resolves when everything is answered. */
  leave(): Promise<void> {
    this.#isLeaving = true;
    for (const queue of this.#admissions.values()) {
      for (const admission of queue) this.#giveUp(queue, admission, "this server is leaving; ask again");
    }
    for (const [ticket, { cancelTimer }] of this.#underWay) {
      if (cancelTimer !== null) this.#options.store.cancel(ticket);
    }
    if (this.#underWay.size === 0) return Promise.resolve();
    return new Promise((resolve) => this.#settled = resolve);
  }

  /** False: it was refused. */
  #admit(queue: Set<Admission>, envelope: Envelope, message: ClientMessage): boolean {
    if (this.#admitted >= admissionsMax) {
      this.#refuse(envelope, message, `${admissionsMax} requests wait for topics that are being looked at`);
      return false;
    }
    const { clock } = this.#options;
    const admission: Admission = { envelope, message, arrivedAtMs: clock.now(), cancelTimer: () => {} };
    this.#admitted++;
    queue.add(admission);
    const withinMs = Math.min(message.headers?.deadlineMs ?? admissionMs, admissionMs);
    admission.cancelTimer = clock.after(withinMs, () => {
      this.#giveUp(queue, admission, `what becomes of topic ${JSON.stringify(message.topic)} was not known in time`);
    });
    return true;
  }

  #giveUp(queue: Set<Admission>, admission: Admission, why: string): void {
    if (!this.#release(queue, admission)) return;
    this.#refuse(admission.envelope, admission.message, why);
  }

  #release(queue: Set<Admission>, admission: Admission): boolean {
    if (!queue.delete(admission)) return false;
    admission.cancelTimer();
    this.#admitted--;
    return true;
  }

  async #look(topic: string, queue: Set<Admission>, epoch: number | null): Promise<void> {
    let standing: RequestStanding | null = null;
    let why = "";
    try {
      standing = await this.#options.ownership.standing(topic, epoch);
    } catch (thrown) {
      why = messageOf(thrown);
    }
    this.#admissions.delete(topic);
    for (const admission of queue) {
      this.#release(queue, admission);
      const { envelope, message, arrivedAtMs } = admission;
      const { server, reply, endpointOf } = this.#options;
      if (standing === null) reply(envelope, statusOf(server, message, "ERROR", { reason: why }));
      else if (standing.kind === "serving") this.#submit(envelope, message, standing.permit, arrivedAtMs);
      else reply(envelope, standingAnswer(server, message, standing, endpointOf));
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
      } is at epoch ${permit.epoch} here, and ${asked} is asked for`;
      return reply(envelope, statusOf(server, message, "NOT_OWNER", { reason }));
    }
    const longestMs = waitMsOf(message);
    const waitMs = longestMs === 0 ? 0 : longestMs - (clock.now() - arrivedAtMs);
    const ticket = this.#ticket();
    let taken: boolean;
    try {
      taken = store.submit(operationOf(message, { ticket, epoch: permit.epoch, wait: waitMs > 0 }));
    } catch (thrown) {
      return reply(envelope, statusOf(server, message, "ERROR", { reason: messageOf(thrown) }));
    }
    if (!taken) return this.#refuse(envelope, message, "too much is under way at this server; ask again");
    const cancelTimer = waitMs > 0 ? clock.after(waitMs, () => store.cancel(ticket)) : null;
    const key = cancelTimer === null ? "" : keyOf(envelope);
    if (cancelTimer !== null) this.#waitingGets.set(key, ticket);
    this.#underWay.set(ticket, { envelope, message, permit, arrivedAtMs, cancelTimer, key });
  }

  #refuse(envelope: Envelope, message: ClientMessage, reason: string): void {
    this.#options.reply(envelope, statusOf(this.#options.server, message, "OVERLOADED", { reason }));
  }

  #forget(ticket: number, { cancelTimer, key }: UnderWay): void {
    this.#underWay.delete(ticket);
    cancelTimer?.();
    if (this.#waitingGets.get(key) === ticket) this.#waitingGets.delete(key);
  }

  #ticket(): number {
    do {
      this.#nextTicket = (this.#nextTicket + 1) % ticketsMax;
    } while (this.#underWay.has(this.#nextTicket));
    return this.#nextTicket;
  }

  #tellSettled(): void {
    if (this.#underWay.size > 0) return;
    this.#settled?.();
    this.#settled = null;
  }
}

/** The same for the same frames, and for no others. */
function keyOf(envelope: Envelope): string {
  return envelope.map((frame) => Buffer.from(frame.buffer, frame.byteOffset, frame.byteLength).toString("hex")).join(
    " ",
  );
}

/** How long a get may be kept back; 0 for everything else. */
function waitMsOf(message: ClientMessage): number {
  if (message.name !== "GET") return 0;
  const { waitMs = 0, deadlineMs = Infinity } = message.headers ?? {};
  return Math.min(waitMs, deadlineMs, waitMsMax);
}
