/**
 * Requests of a shared store whose responses wait for a commit. The commit shows that no other server has opened the
 * topic before; if it fails, the responses must not be sent.
 */
import { type ClientOperation, refuse, type RefusedOperation, type StoreResponse } from "./store_operations.ts";
import type { LostTopic, TopicChange } from "./topic_rows.ts";
import type { TopicTable } from "./topic_table.ts";

export class UnconfirmedRequests {
  readonly #operations = new Map<number, ClientOperation>();

  add(operation: ClientOperation): void {
    this.#operations.set(operation.ticket, operation);
  }

  clear(): void {
    this.#operations.clear();
  }

  /** Adds the topics of these responses to a commit, also those that nothing has changed. */
  addConfirmations(
    responses: readonly StoreResponse[],
    topics: TopicTable,
    changeOf: (topicId: number) => TopicChange,
  ): void {
    for (const { ticket } of responses) {
      const topic = topics.get(this.#operations.get(ticket)?.topic ?? "");
      if (topic !== null && topic.sealedFor === null) changeOf(topic.id);
    }
  }

  /** The requests of a topic among those with these responses. */
  ofTopic(topic: string, responses: readonly StoreResponse[]): Map<number, ClientOperation> {
    const found = new Map<number, ClientOperation>();
    for (const { ticket } of responses) {
      const operation = this.#operations.get(ticket);
      if (operation?.topic === topic) found.set(ticket, operation);
    }
    return found;
  }
}

/** A request that only reads was not done, whatever the database did. The outcome of a change may be unknown. */
export function refusalOfLost({ kind }: ClientOperation, { outcome, code, reason }: LostTopic): RefusedOperation {
  if (outcome === "not_owner") return refuse("NOT_OWNER", reason);
  const changes = kind !== "get" && kind !== "info";
  if (outcome === "unknown" && changes) return refuse("ERROR", `outcome unknown: ${reason}`, { unknown: true });
  return refuse(code === "STORE_FULL" && changes ? "FULL" : "OVERLOADED", reason);
}
