/** A client of publish/subscribe proxies in tests: any number of requests at once, each with its one answer. */
import { DealerSocket } from "../../src/protocols/zeromq/dealer_socket.ts";
import type { ZeroMqSocketOptions } from "../../src/protocols/zeromq/socket_options.ts";
import { decodePubsubMessage } from "../../src/pubsub/wire/decode_message.ts";
import { encodePubsubMessage } from "../../src/pubsub/wire/encode_message.ts";
import { pubsubSocketLimits } from "../../src/pubsub/wire/message_limits.ts";
import type { PubsubMessage, PubsubMessageOf } from "../../src/pubsub/wire/pubsub_messages.ts";
import { messagesOf } from "./messages_of.ts";
import { QuietTime } from "./quiet_time.ts";

const nothing = new Uint8Array(0);
const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** An answer as tests compare it. */
export interface Answered {
  readonly status: PubsubMessageOf<"STATUS">["status"];
  readonly sender: string;
  readonly messageId?: number;
  readonly text: string;
  readonly headers?: PubsubMessageOf<"STATUS">["headers"];
  /** From the request to the answer: `QuietTime.ms`. */
  readonly quietMs: number;
}

export class ProxyClient implements AsyncDisposable {
  /** How long an answer is waited for, in milliseconds. */
  withinMs = 40_000;
  /** Answers that nobody has asked for, or that came twice. */
  unasked = 0;
  readonly socket: DealerSocket;
  readonly #waiting = new Map<string, (frames: Uint8Array[]) => void>();
  #next = 1;

  constructor(endpoint: string, options: ZeroMqSocketOptions = {}) {
    this.socket = new DealerSocket({
      reconnect: { minMs: 20, maxMs: 200 },
      ...{ sendHighWater: 100_000, limits: pubsubSocketLimits },
      ...options,
    });
    this.socket.connect(endpoint);
    void this.#read();
  }

  /** The frames behind the empty one. Rejects when no answer comes. */
  send(frames: readonly Uint8Array[], withinMs = this.withinMs): Promise<Uint8Array[]> {
    const id = String(this.#next++);
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#waiting.delete(id);
        reject(new Error(`no answer within ${withinMs} ms to ${decoder.decode(frames[0]).slice(0, 100)}`));
      }, withinMs);
      this.#waiting.set(id, (answer) => {
        clearTimeout(timer);
        resolve(answer);
      });
      if (!this.socket.trySend([encoder.encode(id), nothing, ...frames])) reject(new Error("the socket has no room"));
    });
  }

  async ask(frames: readonly Uint8Array[], withinMs?: number): Promise<Answered> {
    const quiet = new QuietTime();
    const answer = decodePubsubMessage(await this.send(frames, withinMs));
    if (answer.name !== "STATUS") throw new Error(`the answer is no STATUS: ${JSON.stringify(answer)}`);
    const { status, sender, messageId, body, headers } = answer;
    return {
      status,
      sender,
      text: decoder.decode(body ?? nothing),
      quietMs: quiet.ms,
      ...(messageId === undefined ? {} : { messageId }),
      ...(headers === undefined ? {} : { headers }),
    };
  }

  say(message: PubsubMessage, withinMs?: number): Promise<Answered> {
    return this.ask(encodePubsubMessage(message), withinMs);
  }

  /** As the paper writes it; `\r\n\r\n` is put behind the header. */
  plain(header: string, body = ""): Promise<Answered> {
    return this.ask([encoder.encode(`${header}\r\n\r\n${body}`)]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.socket.close({ lingerMs: 0 });
  }

  async #read(): Promise<void> {
    for await (const [id = nothing, , ...frames] of messagesOf(this.socket)) {
      const key = decoder.decode(id);
      const waiting = this.#waiting.get(key);
      this.#waiting.delete(key);
      if (waiting === undefined) this.unasked++;
      else waiting(frames);
    }
  }
}
