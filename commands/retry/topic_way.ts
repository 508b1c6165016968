/**
 * The way to the topics of a processor: the proxies, and one client for each thing that is done. Loaded where there is a topic.
 * The clients' states lie in the store's folder: they are worth as much as what is in it.
 */
import { join } from "node:path";
import { BatonError } from "../../src/errors.ts";
import { checkName } from "../../src/pubsub/client/client_limits.ts";
import { PubsubClientSession } from "../../src/pubsub/client/pubsub_client_session.ts";
import { ClientState } from "../../src/pubsub/client/client_state.ts";
import { Requester } from "../../src/pubsub/client/requester.ts";
import type { OpenClient } from "../../src/retry/dead_letters/topic_sink.ts";
import { systemClock } from "../../src/support/clock.ts";
import { lookupPlaceOf, proxyFinder } from "../pubsub/find_proxies.ts";
import { clientSecurity } from "../pubsub/service_security.ts";
import { OpenStore } from "./open_store.ts";
import { idleRules } from "./retry_rules.ts";
import type { TopicCall } from "./topic_words.ts";

/** What is done at a topic, by the end of the client's id. */
export type TopicRole = "" | ".source" | ".letters";

export interface ClientWait {
  /** Another process of the store has the client; how long it is waited for, in milliseconds. */
  readonly waitMs: number;
  readonly signal?: AbortSignal | undefined;
}

export class TopicWay implements AsyncDisposable {
  readonly #requester: Requester;
  readonly #folder: string;
  readonly #clientId: string;

  /** Makes the store where it is not there: its name is the clients'. Throws as that does, USAGE and CONFIG. */
  constructor(call: TopicCall, folder: string, { timeoutMs }: { readonly timeoutMs: number }) {
    const { values } = call;
    const lookupPlace = lookupPlaceOf(call);
    const security = clientSecurity(values);
    this.#requester = new Requester({
      findProxies: proxyFinder(call),
      clock: systemClock(),
      timeoutMs,
      attemptMs: Math.min(values.pubsubRetryTimeout, timeoutMs),
      ...(security === undefined ? {} : { socket: security }),
      ...(lookupPlace === undefined ? {} : { lookupPlace }),
    });
    this.#folder = join(folder, "topics");
    this.#clientId = values.retryClientId ?? `retry-${nameIn(folder)}`;
    checkName("client id", `${this.#clientId}.letters`);
  }

  /** Rejects with LOCK_BUSY while another process of the store has this client. */
  async open(role: TopicRole, { waitMs, signal }: ClientWait): Promise<OpenClient> {
    const id = `${this.#clientId}${role}`;
    const state = await ClientState.open(this.#folder, id, { waitMs, clock: systemClock(), signal });
    return { client: new PubsubClientSession(state, this.#requester), [Symbol.dispose]: () => state[Symbol.dispose]() };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#requester[Symbol.asyncDispose]();
  }
}

/** Throws USAGE. */
export function checkTopic(topic: string): string {
  checkName("topic", topic);
  return topic;
}

function nameIn(folder: string): string {
  using store = new OpenStore(folder, idleRules, { mustExist: false });
  return store.ask("storeName");
}

/** Whether it is about another process that has the client. */
export function isTaken(error: unknown): boolean {
  return error instanceof BatonError && error.code === "LOCK_BUSY";
}
