/**
 * What a topic store does, as plainly as it can be said: one topic, everything in memory, nothing ever forgotten but by
 * the rules.
 */
import type { SessionToken } from "../../../../src/pubsub/wire/field_types.ts";
import type { ClientOperation, StoreResponse } from "../../../../src/pubsub/store/operations/store_operations.ts";

interface Window {
  key: string;
  firstUnacked: number;
  highest: number;
  resolved: Map<number, { id: number; body: string }>;
}

interface Client {
  session: number;
  key: string;
  op: number;
  opSession: number;
  position: number | null;
  durablePosition: number | null;
  windows: Map<number, Window>;
  msgIds: Map<string, { id: number; body: string }>;
}

/** A response as far as the rules say what it is. */
export interface Expected {
  readonly code: string;
  readonly ids?: number[];
  readonly messages?: { id: number; body: string }[];
}

const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes);

/** The same of a real response. */
export function essence(response: StoreResponse): Expected {
  const { code, ids, messages } = response;
  const listed = ids?.flatMap(({ first, last }) =>
    Array.from({ length: last - first + 1 }, (_, index) => first + index)
  );
  return {
    code,
    ...(listed === undefined ? {} : { ids: listed }),
    ...(messages === undefined ? {} : { messages: messages.map(({ id, body }) => ({ id, body: text(body) })) }),
  };
}

export class ReferenceStore {
  last = 0;
  readonly #log: { id: number; body: string }[] = [];
  readonly #clients = new Map<string, Client>();

  /** What is not durable is lost. */
  crash(): void {
    for (const client of this.#clients.values()) client.position = client.durablePosition;
  }

  committed(): void {
    for (const client of this.#clients.values()) client.durablePosition = client.position;
  }

  do(operation: ClientOperation): Expected {
    const known = this.#clients.get(operation.client);
    if (operation.kind === "info") throw new Error("not modelled");
    if (known === undefined && (operation.kind === "get" || operation.kind === "seek")) {
      return { code: "NOT_SUBSCRIBED" };
    }
    const client = known ?? this.#new(operation.client);
    if (!passes(client, operation.session)) return { code: "FENCED" };
    if (operation.session !== null && operation.session.number > client.session) {
      client.session = operation.session.number;
      client.key = operation.session.key;
    }
    if (operation.kind === "put") {
      const response = this.#put(operation, client);
      if (response.code !== "OK" && known === undefined && operation.session === null) {
        this.#clients.delete(operation.client);
      }
      return response;
    }
    const order = orderOf(client, operation.session, operation.op);
    if (operation.kind === "get") {
      if (client.position === null) return { code: "NOT_SUBSCRIBED" };
      if (order < 0) return { code: "STALE_OP" };
      if (operation.last > this.last) return { code: "BAD_REQUEST" };
      const from = Math.max(client.position, operation.last);
      if (!operation.peek) client.position = from;
      const messages = this.#log.filter(({ id }) => id > from).slice(0, Math.max(1, operation.max));
      return messages.length === 0 ? { code: "NO_MESSAGE" } : { code: "OK", messages };
    }
    if (order < 0) return { code: "STALE_OP" };
    if (operation.kind === "seek" && client.position === null) return { code: "NOT_SUBSCRIBED" };
    if (order === 0) return { code: "OK" };
    if (operation.kind === "seek") {
      const to = operation.to === "end" ? this.last : Number(operation.to);
      if (to > this.last) return { code: "BAD_REQUEST" };
      client.position = to;
    } else client.position = operation.kind === "unsubscribe" ? null : client.position ?? this.last;
    if (operation.op !== null) {
      client.op = operation.op;
      client.opSession = operation.session?.number ?? 0;
    }
    return { code: "OK" };
  }

  #put(put: ClientOperation & { kind: "put" }, client: Client): Expected {
    const identity = put.fromSession ?? put.session;
    const number = identity?.number ?? 0;
    if (put.firstUnacked > put.counter) return { code: "BAD_REQUEST" };
    const stored = client.windows.get(number);
    if (stored !== undefined && identity !== null && stored.key !== identity.key) return { code: "STALE_OP" };
    if (number > client.session) return { code: "STALE_OP" };
    const window = stored ?? { key: identity?.key ?? "", firstUnacked: 0, highest: -1, resolved: new Map() };
    const counters = put.bodies.map((_, state) => put.counter + state);
    const sameKey = put.msgId === null ? undefined : client.msgIds.get(put.msgId);
    for (const [place, counter] of counters.entries()) {
      if (counter < window.firstUnacked) return { code: "STALE_OP" };
      const known = window.resolved.get(counter) ?? sameKey;
      if (known !== undefined && known.body !== text(put.bodies[place] as Uint8Array)) return { code: "COUNTER_REUSE" };
    }
    const isNew = counters.some((counter) => (window.resolved.get(counter) ?? sameKey) === undefined);
    const isEarly = put.after !== null && put.after >= Math.max(window.firstUnacked, put.firstUnacked) &&
      !window.resolved.has(put.after);
    if (isNew && isEarly) return { code: "OVERLOADED" };
    client.windows.set(number, window);
    const ids = counters.map((counter, place) => {
      const body = text(put.bodies[place] as Uint8Array);
      const known = window.resolved.get(counter) ?? sameKey ?? this.#append(body);
      window.resolved.set(counter, known);
      window.highest = Math.max(window.highest, counter);
      if (put.msgId !== null && sameKey === undefined) client.msgIds.set(put.msgId, known);
      return known.id;
    });
    window.firstUnacked = number === 0
      ? Math.max(window.firstUnacked, window.highest - 9_999)
      : Math.max(window.firstUnacked, put.firstUnacked);
    return { code: "OK", ids };
  }

  #append(body: string): { id: number; body: string } {
    const id = ++this.last;
    if ([...this.#clients.values()].some(({ position }) => position !== null)) this.#log.push({ id, body });
    return { id, body };
  }

  #new(name: string): Client {
    const client: Client = {
      session: 0,
      key: "",
      op: 0,
      opSession: 0,
      position: null,
      durablePosition: null,
      windows: new Map(),
      msgIds: new Map(),
    };
    this.#clients.set(name, client);
    return client;
  }
}

function passes(client: Client, session: SessionToken | null): boolean {
  if (session === null || session.number > client.session) return true;
  return session.number === client.session && session.key === client.key;
}

/** Below 0: older than what was done; 0: the same again; above: newer, or without a number. */
function orderOf(client: Client, session: SessionToken | null, op: number | null): number {
  if (op === null) return 1;
  const number = session?.number ?? 0;
  return number === client.opSession ? op - client.op : number - client.opSession;
}
