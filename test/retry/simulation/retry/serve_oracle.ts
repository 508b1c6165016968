/**
 * Judges `serve` by what its clients were told and what the backend has got. A request is known by the number in its
 * body.
 */
import type { SimWorld } from "../../../world/sim_world.ts";
import type { BackendRequestLine } from "./backend_program.ts";
import type { RetryOracle } from "./retry_oracle.ts";
import type { RequestHead, ResponseLine } from "./sim_http.ts";

interface KnownRequest {
  readonly method: string;
  /** The client's own Idempotency-Key; null: `serve` makes one. */
  readonly key: string | null;
  /** In true time. */
  readonly sentMs: number;
  /** The Idempotency-Key of each arrival at the backend. */
  readonly arrivals: string[];
  /** What the backend has responded. */
  readonly responses: number[];
  /**
   * The id that its client was told; undefined: it has no answer, or one that leaves it open; null: it is not stored.
   */
  id?: string | null;
}

const keyHeader = "idempotency-key";
const idHeader = "baton-message-id";
/** Temporary statuses, which are stored. */
const isTemporary = (status: number) => status >= 500 || [408, 425, 429].includes(status);

export class ServeOracle {
  readonly #world: SimWorld;
  readonly #oracle: RetryOracle;
  readonly #requests = new Map<string, KnownRequest>();

  constructor(world: SimWorld, oracle: RetryOracle) {
    this.#world = world;
    this.#oracle = oracle;
  }

  /** A client is about to send a request. */
  sent({ method, headers }: RequestHead, number: string): void {
    const key = headers.find(([name]) => name.toLowerCase() === keyHeader)?.[1] ?? null;
    this.#requests.set(number, { method, key, sentMs: this.#world.nowMs, arrivals: [], responses: [] });
  }

  /** The backend has got a request, and responds with this status; null: it does not respond. */
  arrived({ id: key, body }: BackendRequestLine, status: number | null): void {
    const number = body.trim();
    const known = this.#requests.get(number);
    if (known === undefined) return;
    const expected = known.key ?? known.arrivals[0] ?? key;
    if (known.method !== "GET" && (key === "" || key !== expected)) {
      this.#world.fail("key changed", `request ${number} arrives with the key "${key}" in place of "${expected}"`);
    }
    known.arrivals.push(key);
    if (status !== null) known.responses.push(status);
    this.#checkOnce(number, known);
  }

  /** A client has its answer. */
  answered(number: string, { status, headers, body }: ResponseLine): void {
    const known = this.#requests.get(number);
    if (known === undefined) return;
    const id = headers[idHeader] ?? null;
    this.#world.log(() => `request ${number} is answered with ${status}, ${id ?? "no id"} ${body.trim()}`);
    this.#world.count(`mark answer ${id === null ? "without" : "with"} an id`);
    if (body.includes("MAY BE STORED")) return this.#world.count("mark answer MAY BE STORED");
    known.id = id;
    if (id !== null) {
      // A response that is final is passed on, and not stored.
      const isFinal = known.method === "GET" || (known.responses.includes(status) && !isTemporary(status));
      if (isFinal) this.#world.fail("stored for nothing", `request ${number}, answered with ${status}, as ${id}`);
      return this.#oracle.accepted(id, known.sentMs);
    }
    const isFault = body.includes("NOT STORED");
    if (isFault) this.#world.count("mark answer NOT STORED");
    else if (!known.responses.includes(status)) {
      this.#world.fail("wrong answer", `request ${number} is answered with ${status}, which the backend did not say`);
    } else if (known.method !== "GET" && isTemporary(status)) {
      this.#world.fail("not stored", `request ${number} is answered with ${status}, and not stored`);
    }
    this.#checkOnce(number, known);
  }

  /** A stored message is tried. */
  tried(id: string, body: string): void {
    const number = body.trim();
    const known = this.#requests.get(number);
    if (known === undefined) return;
    if (known.method === "GET") this.#world.fail("GET stored", `request ${number} as ${id}`);
    if (known.id === undefined || known.id === id) return;
    this.#world.fail(
      "stored twice",
      `request ${number}, which was told ${known.id ?? "NOT STORED"}, is tried as ${id}`,
    );
  }

  /** What is not stored reaches the backend once. */
  #checkOnce(number: string, { id, arrivals }: KnownRequest): void {
    if (id !== null || arrivals.length < 2) return;
    this.#world.fail("sent again", `request ${number} was answered, is not stored, and came ${arrivals.length} times`);
  }
}
