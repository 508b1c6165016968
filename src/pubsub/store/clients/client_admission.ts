/**
 * Decides whether the client of a request is admitted: it must not be fenced, it must be registered, and a new client
 * needs capacity at the topic.
 */
import { type ClientOperation, type RefusedOperation, refuseOperation } from "../operations/store_operations.ts";
import { DamageError } from "../../../base/storage/damage.ts";
import type { TopicClient } from "../rows/topic_client.ts";
import type { ClientCapacity } from "./client_capacity.ts";
import type { ClientTable } from "./client_table.ts";
import { checkClientSession } from "../decisions/session_fence.ts";
import type { StoredTopic } from "../content/stored_topic.ts";

/** The registration numbers that a decision about a request needs. */
export interface RegistrationView {
  /** The topic's registration number when the client was created; null if the client is unknown. */
  readonly client: number | null;
  /** The topic's current registration number. */
  readonly topic: number;
}

/**
 * - known: the client exists and was not forgotten since the request was made
 * - new: the client is unknown, and none was forgotten since the request was made
 * - unregistered: the client may have been forgotten since; nothing is done
 */
export type RegistrationDecision = "known" | "new" | "unregistered";

/**
 * Decides whether a request with a session may come from a client that the topic has forgotten. A topic forgets
 * publishers and their counters, and must not treat a late request of such a client as new. So the topic's number grows
 * when it forgets a client, and each request carries the number that its client knows (0 for none). Pure; the model in
 * test/pubsub/model calls it.
 */
export function decideRegistration(carried: number, { client, topic }: RegistrationView): RegistrationDecision {
  if (carried < (client ?? topic)) return "unregistered";
  return client === null ? "new" : "known";
}

export type AdmissionResult =
  | RefusedOperation
  /** `isRaised`: the session is newer than the stored one and must be stored. */
  | { readonly kind: "admitted"; readonly client: TopicClient; readonly isNew: boolean; readonly isRaised: boolean };

export class ClientAdmission {
  readonly #clients: ClientTable;
  readonly #capacity: ClientCapacity;
  readonly #whyDiskFull: () => string | null;

  /** `whyDiskFull`: why no new client may be stored, or null. */
  constructor(clients: ClientTable, room: ClientCapacity, whyDiskFull: () => string | null) {
    this.#clients = clients;
    this.#capacity = room;
    this.#whyDiskFull = whyDiskFull;
  }

  /**
   * Admits the client of an operation, creates it if it is new, and raises its session. An unknown client that only
   * reads leaves no trace. `diskFull` is why nothing may change, or null. Throws DamageError.
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
    // The client with the damaged row may be this one.
    if (topic.damagedClients !== null) throw new DamageError(topic.damagedClients);
    const unregistered = this.#refuseUnregistered(operation, topic, null);
    if (unregistered !== null || diskFull !== null) return unregistered;
    const full = this.#whyDiskFull() ?? this.#capacity.whyFull(topic, operation);
    // If others were forgotten to make space, the client must register again: its own earlier requests are not valid
    // either.
    return full === null ? this.#refuseUnregistered(operation, topic, null) : refuseOperation("FULL", full);
  }

  #refuseUnregistered(
    operation: ClientOperation,
    topic: StoredTopic,
    known: TopicClient | null,
  ): AdmissionResult | null {
    if (operation.session === null) return null; // never forgotten, except by an operator
    const view = { client: known?.registration ?? null, topic: topic.registration };
    if (decideRegistration(operation.registration ?? 0, view) !== "unregistered") return null;
    const reason = "this topic may have forgotten the client since the request was made";
    return refuseOperation("UNREGISTERED", reason, { registration: topic.registration });
  }

  #create({ client, session }: ClientOperation, topic: StoredTopic): TopicClient {
    topic.clientCount++;
    if (session === null) topic.plainCount++;
    return this.#clients.create(topic.id, client, topic.registration);
  }
}
