/**
 * The publish/subscribe clients of a processor: one client for each role, over one connection to the proxies. Loaded only where a topic is
 * used. The state of each client is in the folder of the message store, as it is as valuable as the messages.
 */
import { join } from "node:path";
import { BatonError } from "../../errors.ts";
import { checkName } from "../../pubsub/client/client_limits.ts";
import { PubsubClientSession } from "../../pubsub/client/pubsub_client_session.ts";
import { ClientState } from "../../pubsub/client/client_state.ts";
import { Requester, type RequesterOptions } from "../../pubsub/client/requester.ts";
import { systemClock } from "../../support/clock.ts";
import { DirectStore, readOnlyRules } from "../queue/direct_store.ts";

/** The end of the client ID: putting messages, getting them, putting dead letters. */
export type TopicRole = "" | ".source" | ".dead-letters";

/** An open client. Its disposal closes it. */
export interface OpenTopicClient extends Disposable {
  readonly client: PubsubClientSession;
}

export interface ClientWait {
  /** How long to wait while another process of the store uses the client, in milliseconds. */
  readonly waitMs: number;
  readonly signal?: AbortSignal | undefined;
}

export interface TopicClientsOptions extends Omit<RequesterOptions, "clock"> {
  /** The folder of the message store. */
  readonly folder: string;
  /** Undefined: made from the random name of the store. */
  readonly clientId: string | undefined;
}

export class TopicClients implements AsyncDisposable {
  readonly #requester: Requester;
  readonly #folder: string;
  readonly #clientId: string;

  /** Creates the store if it does not exist, as its random name is part of the client ID. Throws as DirectStore does, and USAGE. */
  constructor({ folder, clientId, ...options }: TopicClientsOptions) {
    this.#requester = new Requester({ ...options, clock: systemClock() });
    this.#folder = join(folder, "topics");
    this.#clientId = clientId ?? `retry-${storeNameIn(folder)}`;
    checkName("client id", `${this.#clientId}.dead-letters`);
  }

  /** Rejects with LOCK_BUSY while another process of the store uses this client. */
  async open(role: TopicRole, { waitMs, signal }: ClientWait): Promise<OpenTopicClient> {
    const id = `${this.#clientId}${role}`;
    const state = await ClientState.open(this.#folder, id, { waitMs, clock: systemClock(), signal });
    return { client: new PubsubClientSession(state, this.#requester), [Symbol.dispose]: () => state[Symbol.dispose]() };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#requester[Symbol.asyncDispose]();
  }
}

function storeNameIn(folder: string): string {
  using store = new DirectStore(folder, readOnlyRules, { mustExist: false });
  return store.read("storeName");
}

/** Whether another process of the store uses the client. */
export function isClientBusy(error: unknown): boolean {
  return error instanceof BatonError && error.code === "LOCK_BUSY";
}
