/** Fetches messages of one topic from the client's position on. Acknowledging messages advances the position. */
import { BatonError } from "../../base/errors.ts";
import { countWithNoun } from "../../base/support/text.ts";
import { type MessageIdRange, noMessageId } from "../wire/field_types.ts";
import type { PubsubClientSession } from "./pubsub_client_session.ts";
import { type MessageLossCertainty, parseMessageLoss } from "./message_loss.ts";
import { requireOkResponse } from "./pubsub_client_session.ts";
import { recoverMessageFolder } from "./message_folder.ts";

/** The most bytes of a response. If the first message is longer, it is sent alone. */
const responseBytesMax = 1 << 20;
/** How long one request waits at the server, in milliseconds. A longer wait uses several requests. */
const holdMsMax = 20_000;

export interface ReceivedMessage {
  readonly id: number;
  readonly body: Uint8Array;
  /** True if the message may have been delivered before, by a process that ended before it acknowledged the message. */
  readonly redelivered: boolean;
  readonly msgId: string | null;
}

export interface MessageFetchResult {
  readonly messages: readonly ReceivedMessage[];
  /** The number of messages that are missing before these: removed by retention, damaged, or lost in a fail-over. */
  readonly missed: number;
  /** Tells whether a fail-over has lost messages before these, certainly or possibly; null if not. */
  readonly loss: MessageLossCertainty | null;
}

export class Subscriber {
  readonly topic: string;
  readonly #client: PubsubClientSession;

  /** The constructor completes a delivery that an earlier process left unfinished in a folder. Throws IO. */
  constructor(client: PubsubClientSession, topic: string) {
    this.topic = topic;
    this.#client = client;
    recoverMessageFolder({ state: client.state, topic });
  }

  /** Returns the next messages; an empty list if none arrives within `waitMs`. If it rejects, no message is lost. */
  async fetch({ max, waitMs = 0, peek = false, signal }: {
    readonly max: number;
    readonly waitMs?: number;
    readonly peek?: boolean;
    readonly signal?: AbortSignal | undefined;
  }): Promise<MessageFetchResult> {
    for (let leftMs = waitMs;;) {
      const holdMs = Math.min(leftMs, holdMsMax);
      leftMs -= holdMs;
      const fetched = await this.#fetchOnce({ max, holdMs, peek, signal });
      if (fetched !== null) return fetched;
      if (leftMs <= 0) return { messages: [], missed: 0, loss: null };
    }
  }

  /** Records that messages up to this one are being delivered. The record survives a kill, but not a power failure. */
  recordDelivery(id: number): void {
    const { state } = this.#client;
    const { cursor } = state.subscriberPosition(this.topic);
    state.setPosition(this.topic, { cursor, intent: id, folder: null }, { durable: false });
  }

  /**
   * Acknowledges messages up to this one, so that they are never delivered again. If `durable` is false, a power
   * failure can undo this.
   */
  acknowledge(id: number, options?: { readonly durable?: boolean }): void {
    const { state } = this.#client;
    const { intent } = state.subscriberPosition(this.topic);
    state.setPosition(this.topic, { cursor: id, intent: Math.max(id, intent), folder: null }, options);
  }

  /**
   * Rejects with BAD_DATA if the stored position is beyond the end of the topic: an earlier response was wrong, or the
   * topic has lost messages. Discards that position, so that the next call continues at the server's position.
   */
  async #requireExistingPosition(cursor: number, signal: AbortSignal | undefined): Promise<void> {
    const { end } = await this.#client.info(this.topic, { signal });
    if (end === undefined || cursor <= end) return;
    this.#client.state.forgetPosition(this.topic);
    throw new BatonError(
      "BAD_DATA",
      `Cannot get from topic "${this.topic}": the last message that this client had is ${cursor}, ` +
        `but the newest is ${end}: a wrong response said so, or the topic has lost messages; ` +
        "the next call continues at the server's position",
    );
  }

  async #fetchOnce({ max, holdMs, peek, signal }: {
    readonly max: number;
    readonly holdMs: number;
    readonly peek: boolean;
    readonly signal: AbortSignal | undefined;
  }): Promise<MessageFetchResult | null> {
    const { cursor, intent } = this.#client.state.subscriberPosition(this.topic);
    const headers = {
      max,
      maxBytes: responseBytesMax,
      op: this.#client.operationCount(this.topic),
      ...(holdMs > 0 ? { waitMs: holdMs } : {}),
      ...(peek ? { peek: true as const } : {}),
    };
    const outcome = await this.#client.request({ name: "GET", topic: this.topic, last: cursor, headers }, {
      signal,
      holdMs,
    });
    if (outcome.kind === "response" && outcome.response.status === "NO_MESSAGE") return null;
    if (outcome.response?.status === "BAD_REQUEST") await this.#requireExistingPosition(cursor, signal);
    const { batch, body, messageId, headers: said = {} } = requireOkResponse(`get from topic "${this.topic}"`, outcome);
    const bodies = batch ?? [body ?? new Uint8Array(0)];
    const ids = idsOfRanges(said.ids ?? [], messageId);
    if (ids.length !== bodies.length || ids.some((id, place) => id <= (ids[place - 1] ?? noMessageId))) {
      const why = `${countWithNoun(bodies.length, "message")} with ${countWithNoun(ids.length, "id")}, or out of order`;
      throw new BatonError("PROTOCOL", `Cannot get from topic "${this.topic}": the response has ${why}`);
    }
    const messages = bodies.map((content, place) => {
      const id = ids[place] as number;
      return { id, body: content, redelivered: id <= intent, msgId: said.msgId ?? null };
    });
    return {
      messages: messages.filter(({ id }) => id > cursor),
      missed: said.missed ?? 0,
      loss: parseMessageLoss(said.loss),
    };
  }
}

function idsOfRanges(ranges: readonly MessageIdRange[], first: number | undefined): number[] {
  const ids: number[] = [];
  for (const range of ranges) for (let id = range.first; id <= range.last; id++) ids.push(id);
  return ids.length > 0 || first === undefined ? ids : [first];
}
