/** Messages into a publish/subscribe topic, each once: the message's id is the name it is put under, in all its tries. */
import { BatonError, messageOf } from "../../errors.ts";
import { bodyBytesMax } from "../../wire/pubsub/message_limits.ts";
import type { RequestOutcome } from "../../pubsub/client/requester.ts";
import { outcomeError } from "../../pubsub/client/outcome_error.ts";
import type { TryLease } from "../queue/processor_lease.ts";
import type { ClaimedMessage } from "../queue/stored_message.ts";
import type { Attempt, Target } from "./target.ts";
import type { TopicPutter } from "./topic_putter.ts";

export class TopicTarget implements Target {
  readonly #putter: TopicPutter;

  constructor(putter: TopicPutter) {
    this.#putter = putter;
  }

  async attempt({ id, body }: ClaimedMessage, lease: TryLease): Promise<Attempt> {
    if (body.byteLength > bodyBytesMax) {
      return tried("final", `its body is longer than a topic takes: ${body.byteLength} bytes`, null);
    }
    try {
      const ends = AbortSignal.any([lease.lost, lease.stopped]);
      return attemptOf(await this.#putter.put(id, body, ends), this.#putter.topic);
    } catch (error) {
      if (lease.stopped.aborted) return tried("retry", "was ended because baton was", null);
      if (lease.lost.aborted) return { kind: "lost" };
      if (!(error instanceof BatonError)) throw error;
      // The way to the proxies: they could not be looked up.
      return tried("retry", messageOf(error), false);
    }
  }
}

/** What an outcome means for its message. Pure. */
export function attemptOf(outcome: RequestOutcome, topic: string): Attempt {
  const status = outcome.kind === "response" ? outcome.response.status : null;
  if (status === "OK") return tried("done", null, true);
  const error = outcomeError(`put the message into topic "${topic}"`, outcome);
  // Not about this message: all others would end the same way.
  if (error.code === "REFUSED" || error.code === "FENCED") return { kind: "not_begun", why: error.message, error };
  const isFinal = status === "BAD_REQUEST" || status === "COUNTER_REUSE";
  return tried(isFinal ? "final" : "retry", error.message, status !== null && status !== "OVERLOADED");
}

function tried(verdict: "done" | "retry" | "final", error: string | null, works: boolean | null): Attempt {
  return { kind: "tried", end: { verdict, retryAfterMs: null }, error, works };
}
