/**
 * Puts each dead letter once into a publish/subscribe topic, as a line of JSON. The dead letter is durable when the
 * server has stored it on the disk. The topic needs a subscriber.
 */
import { requireOkResponse } from "../../pubsub/client/pubsub_client_session.ts";
import { TopicPutter } from "../targets/topic_putter.ts";
import type { OpenTopicClient } from "../targets/topic_clients.ts";
import { type DeadLetterFormat, deadLetterLine } from "./dead_letter_record.ts";
import type { DeadLetterSink, DeadLetterSinkSession } from "./dead_letter_forwarder.ts";

export interface TopicSinkOptions extends DeadLetterFormat {
  readonly topic: string;
  /** Acquires the forwarder lock. Returns the function that releases the lock; null if another process is sending. */
  readonly takeLock: () => (() => void) | null;
  /** Opens the client. Called while this process has the forwarder lock, so no other process uses the client. */
  readonly openClient: (signal: AbortSignal) => Promise<OpenTopicClient>;
}

export class TopicSink implements DeadLetterSink {
  readonly skipsFailed = true;
  readonly #options: TopicSinkOptions;

  constructor(options: TopicSinkOptions) {
    this.#options = options;
  }

  /** Rejects with CONFIG, REFUSED or UNREACHABLE if no dead letter could be sent now. */
  async check(signal: AbortSignal): Promise<void> {
    (await this.open(signal))?.close();
  }

  async open(signal: AbortSignal): Promise<DeadLetterSinkSession | null> {
    const { topic, takeLock, openClient } = this.#options;
    const format = this.#options;
    const release = takeLock();
    if (release === null) return null;
    let opened: OpenTopicClient | null = null;
    const close = () => {
      opened?.[Symbol.dispose]();
      release();
    };
    let putter: TopicPutter;
    try {
      opened = await openClient(signal);
      putter = new TopicPutter(opened.client, topic);
      await putter.check(signal);
    } catch (error) {
      close();
      throw error;
    }
    return {
      nextOffset: () => null,
      async send(letter, _, ending) {
        // The fencing number makes the message ID unique: a redriven message that dies again is a new dead letter.
        const messageId = `${letter.id}.${letter.fence}`;
        const body = new TextEncoder().encode(deadLetterLine(letter, format).trimEnd());
        requireOkResponse(
          `put the dead letter ${letter.id} into topic "${topic}"`,
          await putter.put(messageId, body, ending),
        );
      },
      close,
    };
  }
}
