/** Where a client is in a topic, and what waits for it there: as the server says it, and as its own state knows better. */
import { BatonError } from "../../src/errors.ts";
import type { PubsubClientSession } from "../../src/pubsub/client/pubsub_client_session.ts";
import type { ClientRun } from "./run_client.ts";

export interface ClientPosition {
  /** What the server says. */
  readonly info: Awaited<ReturnType<PubsubClientSession["info"]>>;
  readonly isSubscribed: boolean;
  /** The last message that was had; -1: none, or not subscribed. */
  readonly cursor: number;
  /** Messages that wait; 0 for who is not subscribed. */
  readonly pending: number;
}

/** Null where there is no such topic. Rejects with what asking fails with. */
export async function findPosition(run: ClientRun): Promise<ClientPosition | null> {
  try {
    return await requestPosition(run);
  } catch (thrown) {
    if (thrown instanceof BatonError && thrown.code === "NOT_SUBSCRIBED") return null;
    throw thrown;
  }
}

/** Rejects with NOT_SUBSCRIBED where there is no such topic, and with what asking fails with. */
export async function requestPosition({ client, target: { topic }, signal }: ClientRun): Promise<ClientPosition> {
  const info = await client.info(topic, { signal });
  const { position = -1, end = 0, pending = 0 } = info;
  const isSubscribed = position >= 0;
  // The server hears of the last ones with the next get.
  const cursor = isSubscribed ? Math.max(position, client.state.position(topic).cursor) : position;
  return { info, isSubscribed, cursor, pending: isSubscribed ? Math.max(0, Math.min(pending, end - cursor)) : 0 };
}
