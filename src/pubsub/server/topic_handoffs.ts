/** Hands topics to other servers: on request (MERGE), to balance servers, or because this server shuts down. */
import { errorMessage } from "../../base/errors.ts";
import type { PubsubMessageOf } from "../wire/pubsub_messages.ts";
import type { TopicHandoffResult } from "../ownership/topic_state.ts";
import type { TopicOwnership } from "../ownership/topic_ownership.ts";
import { makeStatusMessage, type ResponseStatusMessage } from "../status_message.ts";
import type { RequestEnvelope } from "./server_request.ts";
import { topicHandoffsMax } from "./server_limits.ts";

export interface TopicHandoffOptions {
  readonly server: string;
  readonly ownership: Pick<TopicOwnership, "handOff">;
  readonly reply: (envelope: RequestEnvelope, status: ResponseStatusMessage) => void;
}

export class TopicHandoffs {
  readonly #options: TopicHandoffOptions;
  #size = 0;

  constructor(options: TopicHandoffOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#size;
  }

  /**
   * Hands off a topic on request. Responds when the handoff has ended: with OK and the new epoch, or with OVERLOADED
   * and the reason why the topic is still here.
   */
  handle(envelope: RequestEnvelope, message: PubsubMessageOf<"MERGE">): void {
    const { server, reply } = this.#options;
    if (this.#size >= topicHandoffsMax) {
      const reason = `${topicHandoffsMax} handoffs are in progress at this server, which is the limit`;
      return reply(envelope, makeStatusMessage(server, message, "OVERLOADED", { reason }));
    }
    void this.#handOffCounted(message.topic, message.address, message.headers?.epoch ?? null).then((result) => {
      if (result.kind === "moved") {
        reply(envelope, makeStatusMessage(server, message, "OK", { headers: { epoch: result.epoch } }));
      } else reply(envelope, makeStatusMessage(server, message, "OVERLOADED", { reason: result.why }));
    }, (thrown) => {
      reply(
        envelope,
        makeStatusMessage(server, message, "ERROR", { reason: errorMessage(thrown), headers: { unknown: true } }),
      );
    });
  }

  /**
   * Hands off all topics to the other servers in turn, several at a time. Repeats this for topics that arrive later,
   * until no topic is left or none can be moved.
   */
  async handOffAll(topics: () => readonly string[], others: () => readonly string[]): Promise<void> {
    for (let moved = 1; moved > 0 && topics().length > 0;) moved = await this.#handOffRound(topics(), others);
  }

  /** Hands off these topics to a server. A topic that cannot be moved stays here. */
  async handOffSome(topics: readonly string[], to: string): Promise<void> {
    await this.#handOffRound(topics, () => [to]);
  }

  async #handOffRound(topics: readonly string[], others: () => readonly string[]): Promise<number> {
    const rest = topics.values();
    let turn = 0, moved = 0;
    const worker = async () => {
      for (const topic of rest) {
        const ids = others();
        const to = ids[turn++ % ids.length];
        if (to === undefined) return;
        const result = await this.#handOffCounted(topic, to, null).catch(() => null);
        if (result?.kind === "moved") moved++;
      }
    };
    await Promise.all(Array.from({ length: topicHandoffsMax }, worker));
    return moved;
  }

  async #handOffCounted(topic: string, to: string, epoch: number | null): Promise<TopicHandoffResult> {
    this.#size++;
    try {
      return await this.#options.ownership.handOff(topic, to, epoch);
    } finally {
      this.#size--;
    }
  }
}
