/**
 * Puts each message once into a publish/subscribe topic. All tries of a message use its id in the store as message ID.
 */
import { BatonError, errorMessage } from "../../base/errors.ts";
import { bodyBytesMax } from "../../pubsub/wire/message_limits.ts";
import { type PubsubRequestOutcome, requestOutcomeError } from "../../pubsub/client/requester.ts";
import type { TryLease } from "../queue/processor_lease.ts";
import type { ClaimedMessage } from "../queue/stored_message.ts";
import { checkDestination } from "../check_destination.ts";
import type { Log } from "../../base/support/log.ts";
import { type Target, type TryResult, tryResult } from "./target.ts";
import { isTopicClientBusyError, type OpenTopicClient, type TopicClients } from "./topic_clients.ts";
import { TopicPutter } from "./topic_putter.ts";

/**
 * How long to wait for another processor at first, in milliseconds. Then a processor that ends by itself gives up, and
 * any other processor logs that it waits.
 */
const busyNoticeMs = 1000;

export class TopicTarget implements Target {
  readonly #putter: TopicPutter;

  constructor(putter: TopicPutter) {
    this.#putter = putter;
  }

  async deliver({ id, body }: ClaimedMessage, lease: TryLease): Promise<TryResult> {
    if (body.byteLength > bodyBytesMax) {
      return tryResult("final", `was too long for a topic: ${body.byteLength} bytes, at most ${bodyBytesMax}`);
    }
    try {
      const ends = AbortSignal.any([lease.lost, lease.stopped]);
      return putTryResult(await this.#putter.put(id, body, ends), this.#putter.topic);
    } catch (error) {
      if (lease.stopped.aborted) return tryResult("retry", "was stopped because baton was stopped");
      if (lease.lost.aborted) return { kind: "lost" };
      if (!(error instanceof BatonError)) throw error;
      // The addresses of the proxies are not known.
      return tryResult("retry", errorMessage(error));
    }
  }
}

/** Returns the result of a try, from the outcome of its put. */
export function putTryResult(outcome: PubsubRequestOutcome, topic: string): TryResult {
  const status = outcome.kind === "response" ? outcome.response.status : null;
  if (status === "OK") return tryResult("done", null);
  const error = requestOutcomeError(`put the message into topic "${topic}"`, outcome);
  // The server refuses the client, so every other message would fail in the same way.
  if (error.code === "REFUSED" || error.code === "FENCED") return { kind: "not_begun", why: error.message, error };
  const isFinal = status === "BAD_REQUEST" || status === "COUNTER_REUSE";
  return tryResult(isFinal ? "final" : "retry", error.message);
}

/**
 * Opens a topic as a target. Only one processor of a store puts into topics at a time. If `waits` is true, waits until
 * another processor ends; otherwise rejects with LOCK_BUSY. Rejects with CONFIG if the topic has no subscriber, or with
 * REFUSED.
 */
export async function openTopicTarget(
  clients: TopicClients,
  topic: string,
  { waits, log }: { readonly waits: boolean; readonly log: Log },
): Promise<Disposable & { readonly target: TopicTarget }> {
  const open = await openClient(clients, { waits, log });
  try {
    const putter = new TopicPutter(open.client, topic);
    const meanwhile = "messages are tried according to their policy until there is a response";
    await checkDestination((signal) => putter.check(signal), { option: "--topic", meanwhile, log });
    return { target: new TopicTarget(putter), [Symbol.dispose]: () => open[Symbol.dispose]() };
  } catch (error) {
    open[Symbol.dispose]();
    throw error;
  }
}

async function openClient(
  clients: TopicClients,
  { waits, log }: { readonly waits: boolean; readonly log: Log },
): Promise<OpenTopicClient> {
  try {
    return await clients.open("", { waitMs: busyNoticeMs });
  } catch (error) {
    if (!waits || !isTopicClientBusyError(error)) throw error;
    log("info", "target_busy", "another processor of this store puts messages into topics; waiting until it ends");
    return await clients.open("", { waitMs: Infinity });
  }
}
