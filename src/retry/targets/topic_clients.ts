/**
 * Opens the publish/subscribe clients of a processor: one client for each role, over one connection to the proxies.
 * This code is loaded only if a topic is used. The state of a client is as valuable as the messages. Therefore it is in
 * the folder of the message store, or in the database (`database_client_states.ts`).
 */
import { join } from "node:path";
import { BatonError } from "../../base/errors.ts";
import { checkPubsubName } from "../../pubsub/client/client_limits.ts";
import { PubsubClientSession } from "../../pubsub/client/pubsub_client_session.ts";
import { ClientState } from "../../pubsub/client/client_state.ts";
import { PubsubRequester, type PubsubRequesterOptions } from "../../pubsub/client/requester.ts";
import { systemClock } from "../../base/support/clock.ts";
import { DirectStore } from "../queue/sqlite/direct_store.ts";
import { readOnlyRules } from "../queue/store_rules.ts";

/** The end of the client ID shows its use: "" puts messages, ".source" gets them, ".dead-letters" puts dead letters. */
export type TopicRole = "" | ".source" | ".dead-letters";

/** An open client. Disposing this object closes the client. */
export interface OpenTopicClient extends Disposable {
  readonly client: PubsubClientSession;
}

export interface TopicClientWait {
  /** How long to wait while another process of the store uses the client, in milliseconds. */
  readonly waitMs: number;
  readonly signal?: AbortSignal | undefined;
}

/** Opens the states of the clients of one message store. */
export interface ClientStates extends AsyncDisposable {
  readonly storeName: string;
  /**
   * Opens the state of a client. Rejects with LOCK_BUSY while another process of the store uses this client. Disposing
   * the result closes the state.
   */
  open(id: string, wait: TopicClientWait): Promise<{ readonly state: ClientState } & Disposable>;
}

export interface TopicClientsOptions extends Omit<PubsubRequesterOptions, "clock"> {
  readonly states: ClientStates;
  /** The client ID without its end. If undefined, it is made from the random name of the store. */
  readonly clientId: string | undefined;
}

export class TopicClients implements AsyncDisposable {
  readonly #requester: PubsubRequester;
  readonly #states: ClientStates;
  readonly #clientId: string;

  /** Makes the clients; none is opened yet. Throws USAGE for an invalid client ID. */
  constructor({ states, clientId, ...options }: TopicClientsOptions) {
    this.#requester = new PubsubRequester({ ...options, clock: systemClock() });
    this.#states = states;
    this.#clientId = clientId ?? `retry-${states.storeName}`;
    checkPubsubName("client id", `${this.#clientId}.dead-letters`);
  }

  /** Opens the client of a role. Rejects with LOCK_BUSY while another process of the store uses it. */
  async open(role: TopicRole, wait: TopicClientWait): Promise<OpenTopicClient> {
    const open = await this.#states.open(`${this.#clientId}${role}`, wait);
    return {
      client: new PubsubClientSession(open.state, this.#requester),
      [Symbol.dispose]: () => open[Symbol.dispose](),
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#requester[Symbol.asyncDispose]();
    await this.#states[Symbol.asyncDispose]();
  }
}

export class FolderClientStates implements ClientStates {
  readonly storeName: string;
  readonly #folder: string;

  private constructor(folder: string, storeName: string) {
    this.#folder = join(folder, "topics");
    this.storeName = storeName;
  }

  /**
   * Opens the states in a folder. Creates the store if there is none, because its random name is part of the client ID.
   * Rejects with the errors of DirectStore.
   */
  static async open(folder: string): Promise<FolderClientStates> {
    await using store = new DirectStore(folder, readOnlyRules, { mustExist: false });
    return new FolderClientStates(folder, await store.read("storeName"));
  }

  async open(id: string, { waitMs, signal }: TopicClientWait): Promise<{ readonly state: ClientState } & Disposable> {
    const state = await ClientState.open(this.#folder, id, { waitMs, clock: systemClock(), signal });
    return { state, [Symbol.dispose]: () => state[Symbol.dispose]() };
  }

  async [Symbol.asyncDispose](): Promise<void> {}
}

/** Returns true if the error means that another process of the store uses the client. */
export function isTopicClientBusyError(error: unknown): boolean {
  return error instanceof BatonError && error.code === "LOCK_BUSY";
}
