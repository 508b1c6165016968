/** Histories made by hand, for tests of the judge: what happened, one thing after another, a millisecond each. */
import type { Got, History, HistoryEvent, Invocation, NodeSeen, Outcome, Put, Result, Sample } from "./history.ts";
import { historyOf } from "./history_recorder.ts";

export class Story {
  readonly #events: HistoryEvent[] = [];
  #at = 0;
  #n = 0;

  get history(): History {
    return historyOf(new Map([["story", this.#events]]));
  }

  invoke(operation: Partial<Invocation> & Pick<Invocation, "client" | "do">): number {
    const n = ++this.#n;
    const whole = { session: 1, topic: "news", ...operation };
    this.#events.push({ kind: "invoke", n, at: ++this.#at, operation: whole });
    return n;
  }

  return(n: number, result: Result): this {
    this.#events.push({ kind: "return", n, at: ++this.#at, result });
    return this;
  }

  subscribe(client: string, outcome: Outcome = "ok"): this {
    return this.return(this.invoke({ client, do: "subscribe" }), { outcome });
  }

  unsubscribe(client: string, outcome: Outcome = "ok"): this {
    return this.return(this.invoke({ client, do: "unsubscribe" }), { outcome });
  }

  /** One message; its counter is the digits of its name. */
  put(client: string, name: string, result: Partial<Result> = {}, more: Partial<Invocation> = {}): this {
    const operation = { client, do: "put", counter: counterIn(name), puts: [putNamed(name)], ...more } as const;
    return this.return(this.invoke(operation), { outcome: "ok", ...result });
  }

  /**
   * Gets them with the client session, is handed them and has them. Names and ids: "a1:7". Returns the operation's
   * number.
   */
  get(client: string, what: readonly string[], more: Partial<Invocation> & { readonly had?: boolean } = {}): number {
    const { had = true, ...operation } = more;
    const n = this.invoke({ client, do: "get", ...operation });
    const got = what.map(gotNamed);
    const status = got.length === 0 ? "NO_MESSAGE" : "OK";
    this.return(n, { outcome: "ok", status, by: "s1", ...(got.length === 0 ? {} : { got }) });
    const last = got.at(-1)?.[0];
    if (last === undefined || !had) return n;
    this.saw(n, last).had(n, last);
    return n;
  }

  seek(client: string, to: number | "start" | "end", outcome: Outcome = "ok"): this {
    return this.return(this.invoke({ client, do: "seek", to }), { outcome });
  }

  /** A get behind `last` that is told of messages that are gone. */
  passedOver(client: string, last: number, what: readonly string[], missed: number): this {
    const n = this.invoke({ client, do: "get", last });
    const got = what.map(gotNamed);
    const upTo = got.at(-1)?.[0] ?? last;
    return this.return(n, { outcome: "ok", status: "OK", by: "s1", got, missed }).saw(n, upTo).had(n, upTo);
  }

  saw(n: number, upTo: number, more: { readonly got?: readonly Got[]; readonly again?: readonly number[] } = {}): this {
    this.#events.push({ kind: "saw", n, at: ++this.#at, upTo, ...more });
    return this;
  }

  had(n: number, upTo: number, more: { readonly soft?: boolean } = {}): this {
    this.#events.push({ kind: "had", n, at: ++this.#at, upTo, ...more });
    return this;
  }

  state(client: string, what: History["states"][number]["what"]): this {
    this.#events.push({ kind: "state", at: ++this.#at, client, what });
    return this;
  }

  healed(): this {
    this.#events.push({ kind: "healed", at: ++this.#at });
    return this;
  }

  node(node: Partial<NodeSeen>): this {
    const whole = { topic: "news", owner: "s1", epoch: 1, state: "stored", incarnation: "b", version: 1, ...node };
    this.#events.push({ kind: "node", at: ++this.#at, node: whole });
    return this;
  }

  content(epoch: number, digest: string): this {
    this.#events.push({ kind: "content", at: ++this.#at, topic: "news", epoch, digest });
    return this;
  }

  loss(last: number): this {
    this.#events.push({ kind: "loss", at: ++this.#at, loss: { topic: "news", last } });
    return this;
  }

  sample(sample: Sample): this {
    this.#events.push({ kind: "sample", at: ++this.#at, sample });
    return this;
  }
}

const putNamed = (name: string): Put => [name, `hash of ${name}`];

/** "a1:7" is the message a1 with id 7. */
export function gotNamed(text: string): Got {
  const [name = "", id] = text.split(":");
  return [Number(id), name, `hash of ${name}`];
}

const counterIn = (name: string) => Number(/\d+$/.exec(name)?.[0] ?? 0);
