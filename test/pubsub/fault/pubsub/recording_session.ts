/** The product's client session that writes down each request it makes and what came of it. */
import { PubsubClientSession } from "../../../../src/pubsub/client/pubsub_client_session.ts";
import type { ClientState } from "../../../../src/pubsub/client/client_state.ts";
import type { PubsubRequester, PubsubRequestOutcome as Asked } from "../../../../src/pubsub/client/requester.ts";
import type { MessageIdRange } from "../../../../src/pubsub/wire/field_types.ts";
import type { PubsubMessageOf } from "../../../../src/pubsub/wire/pubsub_messages.ts";
import type { Invocation, Outcome, Result } from "./history.ts";
import type { HistoryRecorder } from "./history_recorder.ts";
import { gotOf, putOf } from "./marked_body.ts";

type Question = Parameters<PubsubClientSession["request"]>[0];

const operations = {
  SUBSCRIBE: "subscribe",
  UNSUBSCRIBE: "unsubscribe",
  SEEK: "seek",
  PUT: "put",
  GET: "get",
} as const;

export class RecordingSession extends PubsubClientSession {
  readonly #writer: HistoryRecorder;
  /** Refused puts whose copies may still be stored, until the end of the session decides what is known of them. */
  #refusedPuts: { readonly n: number; readonly result: Result }[] = [];
  readonly #gets = new Map<string, number>();

  constructor(state: ClientState, requester: PubsubRequester, writer: HistoryRecorder) {
    super(state, requester);
    this.#writer = writer;
  }

  /** The number of the last get of a topic, for `saw` and `had`. */
  getOf(topic: string): number {
    return this.#gets.get(topic) ?? 0;
  }

  override async request(message: Question, options?: Parameters<PubsubClientSession["request"]>[1]): Promise<Asked> {
    const n = this.#writer.invoke(this.#invocationOf(message));
    if (message.name === "GET") this.#gets.set(message.topic, n);
    let asked: Asked;
    try {
      asked = await super.request(message, options);
    } catch (thrown) {
      this.#writer.return(n, { outcome: "unknown", status: "aborted" });
      throw thrown;
    }
    const result = resultOf(message, asked);
    if (message.name === "PUT" && result.outcome === "fail" && result.status === "FULL") {
      this.#refusedPuts.push({ n, result });
    } else this.#writer.return(n, result);
    return asked;
  }

  /** A publisher reports a put that was refused for want of room as failed only if a server confirms the end. */
  override async endSession(...values: Parameters<PubsubClientSession["endSession"]>) {
    let end: Awaited<ReturnType<PubsubClientSession["endSession"]>> = null;
    try {
      return end = await super.endSession(...values);
    } finally {
      for (const { n, result } of this.#refusedPuts) {
        this.#writer.return(n, end?.isStored === false ? result : { ...result, outcome: "unknown" });
      }
      this.#refusedPuts = [];
    }
  }

  #invocationOf(message: Question): Invocation {
    const { number } = this.state.currentSession();
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
  const { response } = asked;
  if (asked.kind !== "response") {
    return { outcome: asked.kind, ...(response === null ? {} : { status: response.status, by: response.sender }) };
  }
  const { status, sender: by } = asked.response;
  const outcome: Outcome = status === "OK" || (name === "GET" && status === "NO_MESSAGE") ? "ok" : "fail";
  if (outcome === "fail") return { outcome, status, by };
  if (name === "PUT") return { outcome, status, by, ids: idsOf(asked.response.headers?.ids ?? []) };
  if (name !== "GET") return { outcome, status, by };
  const missed = asked.response.headers?.missed;
  if (status !== "OK") return { outcome, status, by, ...(missed === undefined ? {} : { missed }) };
  return { outcome, status, by, ...messagesIn(asked.response) };
}

function messagesIn(
  { batch, body, messageId = 0, headers }: PubsubMessageOf<"STATUS">,
): Pick<Result, "got" | "missed"> {
  const bodies = batch ?? [body ?? new Uint8Array(0)];
  const ids = idsOf(headers?.ids ?? [{ first: messageId, last: messageId }]);
  const got = bodies.map((content, place) => gotOf(ids[place] ?? 0, content));
  return headers?.missed === undefined ? { got } : { got, missed: headers.missed };
}

function idsOf(ranges: readonly MessageIdRange[]): number[] {
  return ranges.flatMap(({ first, last }) => Array.from({ length: last - first + 1 }, (_, at) => first + at));
}
