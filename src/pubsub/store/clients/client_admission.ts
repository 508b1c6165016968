/**
 * Decides whether the client of a request is admitted. The client must be registered and not fenced by a newer session.
 * A new client also needs room in the topic.
 */
import { type ClientOperation, type RefusedOperation, refuseOperation } from "../operations/store_operations.ts";
import { DamageError } from "../../../base/storage/damage.ts";
import type { TopicClient } from "../rows/topic_client.ts";
import type { ClientCapacity } from "./client_capacity.ts";
import type { ClientsInMemory } from "./client_table.ts";
import { checkClientSession } from "../decisions/session_fence.ts";
import type { StoredTopic } from "../content/stored_topic.ts";

/** The registration numbers that a decision about a request needs. */
export interface ClientRegistrationNumbers {
  /** The topic's registration number when the client was created; null if the client is unknown. */
  readonly client: number | null;
  readonly topic: number;
}

/**
 * - known: the client exists and was not forgotten since the request was made
 * - new: the client is unknown, and the topic has forgotten no client since the request was made
 * - unregistered: the topic may have forgotten the client since the request was made, so the request is refused
 */
export type ClientRegistrationDecision = "known" | "new" | "unregistered";

/**
 * Decides whether the topic may have forgotten the client that sent a request. A topic forgets publishers and their
 * counters, and must not treat a late request of such a client as new. The topic's registration number therefore
 * increases when it forgets a client. Each request contains the registration number that its client knows, or 0. Pure,
 * so that the model in test/pubsub/model can call this function.
 */
export function decideClientRegistration(
  carried: number,
  { client, topic }: ClientRegistrationNumbers,
): ClientRegistrationDecision {
  if (carried < (client ?? topic)) return "unregistered";
  return client === null ? "new" : "known";
}

export type AdmissionResult =
  | RefusedOperation
  /** `isRaised` is true if the request's session is newer than the stored session and must be stored. */
  | { readonly kind: "admitted"; readonly client: TopicClient; readonly isNew: boolean; readonly isRaised: boolean };

export class ClientAdmission {
  readonly #clients: ClientsInMemory;
  readonly #capacity: ClientCapacity;
  readonly #whyDiskFull: () => string | null;

  /** `whyDiskFull` returns the reason why the disk has no room for a new client; null if it has room. */
  constructor(clients: ClientsInMemory, room: ClientCapacity, whyDiskFull: () => string | null) {
    this.#clients = clients;
    this.#capacity = room;
    this.#whyDiskFull = whyDiskFull;
  }

  /**
   * Admits the client of an operation. If the client is new, creates it; raises its session. Refuses a get or seek of
   * an unknown client. `diskFull` is the reason why nothing may be written; null if writing is possible. Throws
   * DamageError.
   */
  admit(operation: ClientOperation, topic: StoredTopic, diskFull: string | null): AdmissionResult {
    const { client: name, session } = operation;
    const known = topic.subscribers.get(name) ?? this.#clients.findUnsubscribed(topic.id, name);
    const refusal = known === null ? this.#refuseNewClient(operation, topic, diskFull) : null;
    if (refusal !== null) return refusal;
    const checked = checkClientSession(known ?? { session: 0, key: "" }, session);
    if (checked.kind === "fenced") {
      return refuseOperation("FENCED", checked.reason, { currentSession: known?.session ?? 0 });
    }
    const unregistered = known !== null && operation.kind === "put"
      ? this.#refuseUnregistered(operation, topic, known)
      : null;
    if (unregistered !== null) return unregistered;
    if (checked.raised && diskFull !== null) return refuseOperation("FULL", diskFull);
    const client = known ?? this.#create(operation, topic);
    if (checked.raised && session !== null) {
      if (known?.session === 0) topic.plainCount--;
      client.session = session.number;
      client.key = session.key;
      this.#clients.markChanged(client);
    }
    return { kind: "admitted", client, isNew: known === null, isRaised: checked.raised };
  }

  /** Removes a client that was created for a request which was then refused. */
  withdraw(client: TopicClient, topic: StoredTopic): void {
    const isPlain = client.session === 0;
    if (!this.#clients.forgetUnstored(client)) return;
    topic.clientCount--;
    if (isPlain) topic.plainCount--;
  }

  #refuseNewClient(operation: ClientOperation, topic: StoredTopic, diskFull: string | null): AdmissionResult | null {
    if (operation.kind === "get" || operation.kind === "seek") {
      return refuseOperation("NOT_SUBSCRIBED", "this client is not subscribed to the topic");
    }
    // The damaged row may belong to this client.
    if (topic.damagedClients !== null) throw new DamageError(topic.damagedClients);
    const unregistered = this.#refuseUnregistered(operation, topic, null);
    if (unregistered !== null || diskFull !== null) return unregistered;
    const full = this.#whyDiskFull() ?? this.#capacity.whyFull(topic, operation);
    // If the topic has just forgotten clients to make room, this client must also register again, because its earlier
    // requests are no longer valid.
    return full === null ? this.#refuseUnregistered(operation, topic, null) : refuseOperation("FULL", full);
  }

  #refuseUnregistered(
    operation: ClientOperation,
    topic: StoredTopic,
    known: TopicClient | null,
  ): AdmissionResult | null {
    if (operation.session === null) return null; // never forgotten, except by an operator
    const view = { client: known?.registration ?? null, topic: topic.registration };
    if (decideClientRegistration(operation.registration ?? 0, view) !== "unregistered") return null;
    const reason = "this topic may have forgotten the client since the request was made";
    return refuseOperation("UNREGISTERED", reason, { registration: topic.registration });
  }

  #create({ client, session }: ClientOperation, topic: StoredTopic): TopicClient {
    topic.clientCount++;
    if (session === null) topic.plainCount++;
    return this.#clients.create(topic.id, client, topic.registration);
  }
}
