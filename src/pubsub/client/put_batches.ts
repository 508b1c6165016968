/** Groups messages into requests. Pure. */
import { BatonError } from "../../errors.ts";
import { bodyBytesMax } from "../../wire/pubsub/message_limits.ts";
import type { PutIntents } from "./client_state.ts";

/** Maximum messages and bytes of one request; a single message may be longer. */
const batchMessages = 64;
const batchBytes = 1 << 20;

export function asBody(bodies: readonly Uint8Array[]): { body: Uint8Array } | { batch: readonly Uint8Array[] } {
  const [first] = bodies;
  return bodies.length === 1 && first !== undefined ? { body: first } : { batch: bodies };
}

export function bytesOf(bodies: readonly Uint8Array[]): number {
  return bodies.reduce((sum, { byteLength }) => sum + byteLength, 0);
}

/** Splits messages into batches for requests. Throws BAD_DATA for a message over the limit. */
export function* batchesOf(items: readonly Uint8Array[]): Generator<Uint8Array[], void, void> {
  let batch: Uint8Array[] = [];
  let bytes = 0;
  for (const item of items) {
    if (item.byteLength > bodyBytesMax) {
      throw new BatonError("BAD_DATA", `A message of ${item.byteLength} bytes is over the limit of ${bodyBytesMax}`);
    }
    if (batch.length > 0 && (batch.length >= batchMessages || bytes + item.byteLength > batchBytes)) {
      yield batch;
      [batch, bytes] = [[], 0];
    }
    batch.push(item);
    bytes += item.byteLength;
  }
  if (batch.length > 0) yield batch;
}

/** Joins intents that fit into one request: the same session, consecutive counters, no message ID. */
export function runsOf(intents: readonly PutIntents[]): PutIntents[] {
  const runs: PutIntents[] = [];
  for (const next of intents) {
    const run = runs.at(-1);
    const follows = run !== undefined && run.counter + run.bodies.length === next.counter &&
      run.session.number === next.session.number && run.session.key === next.session.key &&
      run.registration === next.registration &&
      run.msgId === null && next.msgId === null && run.bodies.length + next.bodies.length <= batchMessages &&
      bytesOf(run.bodies) + bytesOf(next.bodies) <= batchBytes;
    if (follows) runs[runs.length - 1] = { ...run, bodies: [...run.bodies, ...next.bodies] };
    else runs.push(next);
  }
  return runs;
}
