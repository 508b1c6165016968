/** One process of a client id: its state, its session, and the way to the proxies. Everything it says carries the session. */
import type { Lines, Message, MessageName, MessageOf } from "../../../wire/pubsub/messages.ts";
import { type ClientState } from "./client_state.ts";
import { outcomeError } from "./outcome_error.ts";
import type { Answer, Outcome, Requester, RequestOptions } from "./requester.ts";

/** What is asked; who asks, and in which session, is added. */
type Asked<N extends MessageName> = N extends MessageName ? Omit<MessageOf<N>, "sender"> : never;
type Operation = "SUBSCRIBE" | "UNSUBSCRIBE" | "SEEK";

/** How long the end of a session may take, in milliseconds. */
const endMsMax = 2000;

export class ClientSession {
  readonly state: ClientState;
  readonly #requester: Requester;
  readonly #operations = new Map<string, number>();

  constructor(state: ClientState, requester: Requester) {
    this.state = state;
    this.#requester = requester;
  }

  get id(): string {
    return this.state.id;
  }

  /** Of subscribe, unsubscribe and seek: how many there were at the topic in this session. */
  operations(topic: string): number {
    return this.#operations.get(topic) ?? 0;
  }

  /** Asks in this session. A server that knows a newer one is remembered: the next process goes beyond it. */
  async ask(
    message: Asked<Operation | "GET" | "PUT">,
    options?: RequestOptions,
  ): Promise<Outcome> {
    const lines = { ...message.lines, session: this.state.session() };
    const outcome = await this.#requester.ask({ ...message, sender: this.id, lines } as Message, options);
    const current = outcome.answer?.status === "FENCED" ? outcome.answer.lines?.currentSession : undefined;
    if (current !== undefined) this.state.sawSession(current);
    return outcome;
  }

  /**
   * Ends this session at a topic, by a put of nothing in a newer one: whatever the network still delivers of it is FENCED. And
   * says whether its message `counter` is stored; null: nobody has confirmed anything.
   */
  async endAt(
    topic: string,
    counter: number,
    { signal }: Pick<RequestOptions, "signal"> = {},
  ): Promise<{ readonly isStored: boolean } | null> {
    const { state } = this;
    const lines = { fromSession: state.session(), session: state.nextSession() };
    const end = { name: "PUT", sender: this.id, topic, counter, lines, batch: [] } as const;
    const { kind, answer } = await this.#requester.ask(end, { signal, withinMs: endMsMax });
    return kind === "answer" && answer.status === "OK" ? { isStored: answer.lines?.ids !== undefined } : null;
  }

  /** Who is subscribed already stays where he is. */
  async subscribe(topic: string, options?: RequestOptions): Promise<void> {
    await this.#operate(`subscribe to topic "${topic}"`, { name: "SUBSCRIBE", topic }, options);
    const { cursor, intent } = this.state.place(topic);
    if (cursor < 0 && intent < 0) return;
    // A topic whose server was given up has begun again at the first id: the place is another topic's.
    const { end = 0 } = await this.info(topic, options);
    if (cursor > end || intent > end) this.state.forgetPlace(topic);
  }

  /** Gives up what was not fetched. */
  async unsubscribe(topic: string, options?: RequestOptions): Promise<void> {
    await this.#operate(`unsubscribe from topic "${topic}"`, { name: "UNSUBSCRIBE", topic }, options);
    this.state.forgetPlace(topic);
  }

  async seek(topic: string, to: number | "start" | "end", options?: RequestOptions): Promise<void> {
    await this.#operate(`seek in topic "${topic}"`, { name: "SEEK", topic, to }, options);
    this.state.forgetPlace(topic); // the server's counts now
  }

  async info(topic: string, options?: RequestOptions): Promise<Lines> {
    const what = `ask about topic "${topic}"`;
    const outcome = await this.#requester.ask({ name: "INFO", sender: this.id, topic }, options);
    return requireOk(what, outcome).lines ?? {};
  }

  async #operate(
    what: string,
    message: Asked<Operation>,
    options?: RequestOptions,
  ): Promise<void> {
    const op = this.operations(message.topic) + 1;
    this.#operations.set(message.topic, op);
    requireOk(what, await this.ask({ ...message, lines: { op } }, options));
  }
}

/** Throws what the outcome is when it is not OK. */
export function requireOk(what: string, outcome: Outcome): Answer {
  if (outcome.kind === "answer" && outcome.answer.status === "OK") return outcome.answer;
  throw outcomeError(what, outcome);
}
