/**
 * Clients that know the paper and nothing more: no sessions, no operation numbers; they ask again until they are
 * answered.
 */
import { errorMessage } from "../../../../src/base/errors.ts";
import { throwIfAborted } from "../../../../src/base/support/abort.ts";
import { systemClock } from "../../../../src/base/support/clock.ts";
import { sleep } from "../../../../src/base/support/deadline.ts";
import type { PubsubMessage } from "../../../../src/pubsub/wire/pubsub_messages.ts";
import { type Answered, ProxyClient } from "../../../support/proxy_client.ts";
import type { HistoryWriter } from "./history_file.ts";
import { gotOf, markedBody, putOf } from "./marked_body.ts";

export interface PlainOptions {
  readonly topic: string;
  readonly proxies: readonly string[];
  readonly writer: HistoryWriter;
  readonly random: () => number;
  readonly phase: () => "work" | "end" | "drain";
  /** Nothing more is wanted. */
  readonly over: AbortSignal;
  readonly troubled: (why: string) => void;
}

const tryMs = 2000;
const pauseMs = 60;

/** Puts one message after the other, each with the next counter, until there is no more work. */
export async function plainPublish(client: string, options: PlainOptions): Promise<void> {
  const { topic, writer, random, phase } = options;
  await using asker = new Asker(options);
  for (let counter = 1; phase() === "work"; counter++) {
    const body = markedBody(`${client}.${counter}`, 20 + Math.floor(random() * 200));
    const n = writer.invoke({ client, session: 0, do: "put", topic, counter, puts: [putOf(body)] });
    const { status, sender } = await asker.ask({ name: "PUT", sender: client, topic, counter, body });
    writer.return(n, { outcome: status === "OK" ? "ok" : "fail", status, by: sender });
    await sleep(systemClock(), random() * pauseMs);
  }
}

/**
 * Resolves when it has subscribed; what it returns resolves when it has had all that is there after `phase` said
 * "drain".
 */
export async function plainConsume(
  client: string,
  options: PlainOptions,
): Promise<{ readonly drained: Promise<void> }> {
  const { topic, writer } = options;
  const asker = new Asker(options);
  const n = writer.invoke({ client, session: 0, do: "subscribe", topic });
  const { status, sender } = await asker.ask({ name: "SUBSCRIBE", sender: client, topic });
  writer.return(n, { outcome: status === "OK" ? "ok" : "fail", status, by: sender });
  return { drained: consumeAll(client, asker, options) };
}

async function consumeAll(client: string, asker: Asker, { topic, writer, phase }: PlainOptions): Promise<void> {
  await using _ = asker;
  for (let last = -1;;) {
    const isDraining = phase() === "drain";
    const n = writer.invoke({ client, session: 0, do: "get", topic, last });
    const { status, sender, messageId = 0, text } = await asker.ask({ name: "GET", sender: client, topic, last });
    const isMessage = status === "OK";
    const outcome = isMessage || status === "NO_MESSAGE" ? "ok" : "fail";
    const got = isMessage ? { got: [gotOf(messageId, new TextEncoder().encode(text))] } : {};
    writer.return(n, { outcome, status, by: sender, ...got });
    if (isMessage) {
      last = messageId;
      writer.saw(n, { upTo: last });
      writer.had(n, last);
    } else if (isDraining) return;
    else await sleep(systemClock(), pauseMs);
  }
}

/** The same request to one proxy after the other, until one says more than that it does not know or cannot now. */
class Asker implements AsyncDisposable {
  readonly #options: PlainOptions;
  #client: ProxyClient | null = null;
  #at = 0;

  constructor(options: PlainOptions) {
    this.#options = options;
    this.#at = Math.floor(options.random() * options.proxies.length);
  }

  async ask(message: PubsubMessage): Promise<Answered> {
    const { proxies, over, troubled } = this.#options;
    for (;;) {
      throwIfAborted(over);
      this.#client ??= new ProxyClient(proxies[this.#at % proxies.length] ?? "");
      try {
        const answer = await this.#client.say(message, tryMs);
        if (!["OVERLOADED", "ERROR", "NOT_OWNER", "FULL"].includes(answer.status)) {
          if (!["OK", "NO_MESSAGE"].includes(answer.status)) {
            troubled(`${message.name}: ${answer.status}, ${answer.text}`);
          }
          return answer;
        }
      } catch (thrown) {
        if (!errorMessage(thrown).startsWith("no answer")) troubled(errorMessage(thrown));
        await this[Symbol.asyncDispose]();
        this.#at++;
      }
      await sleep(systemClock(), pauseMs);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const client = this.#client;
    this.#client = null;
    await client?.[Symbol.asyncDispose]();
  }
}
