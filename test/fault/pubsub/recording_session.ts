/** The client recipe's session that writes down each request it makes and what came of it. */
import { ClientSession } from "../../../src/pubsub/client/pubsub_client_session.ts";
import type { ClientState } from "../../../src/pubsub/client/client_state.ts";
import type { Outcome as Asked, Requester } from "../../../src/pubsub/client/requester.ts";
import type { IdRange } from "../../../src/wire/pubsub/field_types.ts";
import type { MessageOf } from "../../../src/wire/pubsub/pubsub_messages.ts";
import type { Invocation, Outcome, Result } from "./history.ts";
import type { HistoryWriter } from "./history_file.ts";
import { gotOf, putOf } from "./marked_body.ts";

type Question = Parameters<ClientSession["ask"]>[0];

const operations = {
  SUBSCRIBE: "subscribe",
  UNSUBSCRIBE: "unsubscribe",
  SEEK: "seek",
  PUT: "put",
  GET: "get",
} as const;

export class RecordingSession extends ClientSession {
  readonly #writer: HistoryWriter;
  readonly #gets = new Map<string, number>();

  constructor(state: ClientState, requester: Requester, writer: HistoryWriter) {
    super(state, requester);
    this.#writer = writer;
  }

  /** The number of the last get of a topic, for `saw` and `had`. */
  getOf(topic: string): number {
    return this.#gets.get(topic) ?? 0;
  }

  override async ask(message: Question, options?: Parameters<ClientSession["ask"]>[1]): Promise<Asked> {
    const n = this.#writer.invoke(this.#invocationOf(message));
    if (message.name === "GET") this.#gets.set(message.topic, n);
    let asked: Asked;
    try {
      asked = await super.ask(message, options);
    } catch (thrown) {
      this.#writer.return(n, { outcome: "unknown", status: "aborted" });
      throw thrown;
    }
    this.#writer.return(n, resultOf(message, asked));
    return asked;
  }

  #invocationOf(message: Question): Invocation {
    const { number } = this.state.session();
    const { name, topic } = message;
    const operation = { client: this.id, session: number, do: operations[name], topic };
    if (message.name === "GET") return { ...operation, last: message.last };
    if (message.name === "SEEK") return { ...operation, to: message.to };
    if (message.name !== "PUT") return operation;
    const bodies = message.batch ?? [message.body ?? new Uint8Array(0)];
    // Resumed by another process of the client, or by this one, which has settled all that is below.
    const isAgain = message.headers?.fromSession !== undefined;
    return { ...operation, counter: message.counter, puts: bodies.map(putOf), ...(isAgain ? { resumed: true } : {}) };
  }
}

function resultOf({ name }: Question, asked: Asked): Result {
  const { answer } = asked;
  if (asked.kind !== "answer") {
    return { outcome: asked.kind, ...(answer === null ? {} : { status: answer.status, by: answer.sender }) };
  }
  const { status, sender: by } = asked.answer;
  const outcome: Outcome = status === "OK" || (name === "GET" && status === "NO_MESSAGE") ? "ok" : "fail";
  if (outcome === "fail") return { outcome, status, by };
  if (name === "PUT") return { outcome, status, by, ids: idsOf(asked.answer.headers?.ids ?? []) };
  if (name !== "GET") return { outcome, status, by };
  const missed = asked.answer.headers?.missed;
  if (status !== "OK") return { outcome, status, by, ...(missed === undefined ? {} : { missed }) };
  return { outcome, status, by, ...messagesIn(asked.answer) };
}

function messagesIn({ batch, body, messageId = 0, headers }: MessageOf<"STATUS">): Pick<Result, "got" | "missed"> {
  const bodies = batch ?? [body ?? new Uint8Array(0)];
  const ids = idsOf(headers?.ids ?? [{ first: messageId, last: messageId }]);
  const got = bodies.map((content, place) => gotOf(ids[place] ?? 0, content));
  return headers?.missed === undefined ? { got } : { got, missed: headers.missed };
}

function idsOf(ranges: readonly IdRange[]): number[] {
  return ranges.flatMap(({ first, last }) => Array.from({ length: last - first + 1 }, (_, at) => first + at));
}
