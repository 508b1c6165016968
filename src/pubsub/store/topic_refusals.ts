/** Refusals of requests that concern the whole topic, or its data. Pure. */
import { DamageError } from "../../base/storage/damage.ts";
import { type ClientOperation, refuse, type RefusedOperation } from "./store_operations.ts";
import { RowsUnavailable } from "./store_steps.ts";
import type { StoredTopic } from "./stored_topic.ts";

/**
 * Why a store does not serve a topic to a request; null: it does. `topic` null: it is not in memory; `isLost`: it was,
 * and has to be opened again.
 */
export function whyNotServed(
  operation: ClientOperation,
  topic: StoredTopic | null,
  isLost: boolean,
): RefusedOperation | null {
  const name = JSON.stringify(operation.topic);
  if (topic === null) {
    return isLost
      ? refuse("OVERLOADED", `topic ${name} is being opened again`)
      : refuse("NOT_OWNER", `topic ${name} is not on this server`);
  }
  if (topic.epoch !== operation.epoch) {
    const reason = `topic ${name} is at epoch ${topic.epoch}; the request is for epoch ${operation.epoch}`;
    return refuse("NOT_OWNER", reason);
  }
  return topic.sealedFor === null ? null : refuse("OVERLOADED", `topic ${name} is moving to another server`);
}

/** The refusal of a request whose data is damaged or cannot be read. Throws every other error. */
export function refusalOfError(error: unknown): RefusedOperation {
  if (error instanceof DamageError) return refuse("DAMAGED", error.message);
  if (error instanceof RowsUnavailable) return refuse("OVERLOADED", error.message);
  throw error;
}
