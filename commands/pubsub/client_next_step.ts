/** Adds a next step for the user to the errors of a client. */
import { BatonError } from "../../src/base/errors.ts";
import { shellQuoteIfNeeded } from "../../src/base/support/shell_quote.ts";
import { TopicDamagedError } from "../../src/pubsub/client/requester.ts";
import type { ClientOperationName } from "./client_options.ts";

export interface ClientOperationTarget {
  readonly id: string;
  readonly operation: ClientOperationName;
  readonly topic: string;
  /** True if the operation is a put with --resume that has an input. */
  readonly resumesInput: boolean;
}

/**
 * Runs an operation. If it fails and there is one clear next step for the user, the error message ends with that step.
 */
export async function addNextStepToErrors<T>(target: ClientOperationTarget, run: () => Promise<T>): Promise<T> {
  try {
    return await run();
  } catch (thrown) {
    if (!(thrown instanceof BatonError)) throw thrown;
    const step = nextStepOf(thrown, target);
    throw step === null ? thrown : new BatonError(thrown.code, `${thrown.message}; ${step}`, { cause: thrown });
  }
}

function nextStepOf(error: BatonError, { id, operation, topic, resumesInput }: ClientOperationTarget): string | null {
  const { code } = error;
  if (error instanceof TopicDamagedError) {
    const { isWholeTopic } = error;
    const name = shellQuoteIfNeeded(topic);
    if (isWholeTopic) {
      return "an operator restores its server from a backup, or deletes the topic: " +
        `baton pubsub topic delete ${name} --accept-loss`;
    }
    const isReading = operation === "get" || operation === "peek";
    const skip = `to skip it: baton pubsub client ${shellQuoteIfNeeded(id)} seek ${name} LAST-DAMAGED-ID; `;
    return `${isReading ? skip : ""}to give up the damaged data: baton pubsub topic repair ${name} --accept-loss`;
  }
  if (code === "NOT_SUBSCRIBED" && operation !== "unsubscribe") {
    return `to subscribe: baton pubsub client ${shellQuoteIfNeeded(id)} subscribe ${shellQuoteIfNeeded(topic)}`;
  }
  if (code !== "FENCED") return null;
  // Only the state of the client records how far each input was put.
  const places =
    "puts every message of the input that this state does not record as put: check first what the topic contains";
  return resumesInput ? `the next call takes over, and ${places}` : "the next call takes over";
}
