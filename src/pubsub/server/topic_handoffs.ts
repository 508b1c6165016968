/** MERGE: topics that go to other servers because somebody asks for it, or because this server leaves. */
import { messageOf } from "../../errors.ts";
import type { MessageOf } from "../../wire/pubsub/pubsub_messages.ts";
import type { HandOverResult } from "../ownership/owned_topic.ts";
import { type Status, statusOf } from "./response_message.ts";
import type { Envelope } from "./server_request.ts";
import { handOversMax } from "./server_limits.ts";

export interface HandOverOptions {
  readonly server: string;
  readonly ownership: { handOver(topic: string, to: string, epoch: number | null): Promise<HandOverResult> };
  readonly reply: (envelope: Envelope, status: Status) => void;
}

export class HandOvers {
  readonly #options: HandOverOptions;
  #size = 0;

  constructor(options: HandOverOptions) {
    this.#options = options;
  }

  /** Topics on their way out. */
  get size(): number {
    return this.#size;
  }

  /** Answers when it is done: OK with the new epoch; OVERLOADED when the topic is still here, and why. */
  take(envelope: Envelope, message: MessageOf<"MERGE">): void {
    const { server, reply } = this.#options;
    if (this.#size >= handOversMax) {
      const reason = `${handOversMax} topics are on their way from this server, which is its limit`;
      return reply(envelope, statusOf(server, message, "OVERLOADED", { reason }));
    }
    void this.#handOver(message.topic, message.address, message.headers?.epoch ?? null).then((result) => {
      if (result.kind === "moved") {
        reply(envelope, statusOf(server, message, "OK", { headers: { epoch: result.epoch } }));
      } else reply(envelope, statusOf(server, message, "OVERLOADED", { reason: result.why }));
    }, (thrown) => {
      reply(envelope, statusOf(server, message, "ERROR", { reason: messageOf(thrown), headers: { unknown: true } }));
    });
  }

  /**
   * Every topic to one of the others, in turn, some at a time, and again those that came meanwhile, until none is left or none
   * of them can be moved.
   */
  async all(topics: () => readonly string[], others: () => readonly string[]): Promise<void> {
    for (let moved = 1; moved > 0 && topics().length > 0;) moved = await this.#round(topics(), others);
  }

  /** How many were moved. */
  async #round(topics: readonly string[], others: () => readonly string[]): Promise<number> {
    const rest = topics.values();
    let turn = 0, moved = 0;
    const worker = async () => {
      for (const topic of rest) {
        const ids = others();
        const to = ids[turn++ % ids.length];
        if (to === undefined) return;
        const result = await this.#handOver(topic, to, null).catch(() => null);
        if (result?.kind === "moved") moved++;
      }
    };
    await Promise.all(Array.from({ length: handOversMax }, worker));
    return moved;
  }

  async #handOver(topic: string, to: string, epoch: number | null): Promise<HandOverResult> {
    this.#size++;
    try {
      return await this.#options.ownership.handOver(topic, to, epoch);
    } finally {
      this.#size--;
    }
  }
}
