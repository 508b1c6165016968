/**
 * Whether the operations of one partition are linearizable. Events are taken in the order of time, and all
 * configurations that explain the responses so far are kept: a state, the operations that took effect and have no
 * response yet, and the operations of unknown outcome that were used. A response is searched for in all orders of the
 * operations in flight (Wing and Gong 1993), each configuration once (Lowe 2017): so the search's windows are as short
 * as they can be, and nothing is kept of what is over.
 *
 * Three facts keep the number of configurations small. An operation that changes nothing and whose response is right
 * now can take effect now: no other order can need it later. Of two configurations that differ only in the unknown
 * operations that they have used, the one with fewer of them can do all that the other can. Unknown operations with the
 * same input are alike.
 */
import type { CheckerModel, HistoryOperation } from "./operation.ts";

export interface SearchResult {
  readonly verdict: "linearizable" | "violated" | "undecided";
  /** Steps of the model that were tried. */
  readonly steps: number;
  /** Violated: the response that no order explains, and the states that were possible before it. */
  readonly impossible?: HistoryOperation;
  readonly states?: readonly string[];
  readonly inFlight?: readonly HistoryOperation[];
}

interface Configuration<State> {
  readonly state: State;
  /**
   * The number of operations of each client that took effect and whose responses are still to come; clients without one
   * are left out.
   */
  readonly ahead: ReadonlyMap<number, number>;
  /** A bit for each operation of unknown outcome that took effect. */
  readonly used: bigint;
}

interface SearchLimits {
  /** Operations of unknown outcome that may take effect before one response. */
  readonly unknownMax: number;
  /** Configurations that are kept after a response: those that have used the fewest unknown operations. */
  readonly kept: number;
}

/**
 * A search with limits that finds an order has found one. Most histories have one that a small search finds, and
 * without limits all orders of all unknown operations are tried. Only a search without limits can say that no order
 * exists.
 */
const passes: readonly SearchLimits[] = [
  { unknownMax: 1, kept: 16 },
  { unknownMax: 4, kept: 64 },
  { unknownMax: Infinity, kept: Infinity },
];

interface Event {
  readonly at: number;
  readonly kind: "call" | "response";
  readonly operation: HistoryOperation;
}

/** Configurations with the same state and the same operations ahead; none of them has used a subset of another's. */
class ConfigurationSet<State> {
  readonly #byKey = new Map<string, Configuration<State>[]>();
  readonly #keyOf: (state: State) => string;

  constructor(keyOf: (state: State) => string) {
    this.#keyOf = keyOf;
  }

  /** False when what is there can do all that this one can. */
  add(one: Configuration<State>): boolean {
    const ahead = [...one.ahead].sort(([a], [b]) => a - b).join(";");
    const key = `${ahead}|${this.#keyOf(one.state)}`;
    const alike = this.#byKey.get(key) ?? [];
    if (alike.some(({ used }) => (used & one.used) === used)) return false;
    this.#byKey.set(key, [...alike.filter(({ used }) => (used & one.used) !== one.used), one]);
    return true;
  }

  get size(): number {
    let count = 0;
    for (const alike of this.#byKey.values()) count += alike.length;
    return count;
  }

  /** At most `count` of them: those that have used the fewest unknown operations. */
  fewest(count: number): readonly Configuration<State>[] {
    const all = [...this];
    if (all.length <= count) return all;
    return all.sort((a, b) => bitsOf(a.used) - bitsOf(b.used)).slice(0, count);
  }

  *[Symbol.iterator](): Iterator<Configuration<State>> {
    for (const alike of this.#byKey.values()) yield* alike;
  }
}

class BudgetSpent extends Error {}
const none: ReadonlyMap<number, number> = new Map();

class Search<State> {
  readonly #model: CheckerModel<State>;
  readonly #stepsMax: number;
  readonly #limits: SearchLimits;
  /** The known operations of each client, in its order, and how many have had their response. */
  readonly #clients: HistoryOperation[][] = [];
  readonly #answered: number[] = [];
  readonly #clientOf = new Map<string, number>();
  readonly #called = new Set<HistoryOperation>();
  /** Clients that may have an operation that can take effect now. */
  readonly #active = new Set<number>();
  /** Operations of unknown outcome that were called, by their bit. */
  readonly #unknown: HistoryOperation[] = [];
  /** Equal for those that are alike. */
  readonly #kinds: string[] = [];
  steps = 0;

  constructor(model: CheckerModel<State>, stepsMax: number, limits: SearchLimits) {
    this.#model = model;
    this.#stepsMax = stepsMax;
    this.#limits = limits;
  }

  run(operations: readonly HistoryOperation[]): SearchResult {
    const events = this.#prepare(operations);
    let configurations: Iterable<Configuration<State>> = [{ state: this.#model.initial(), ahead: none, used: 0n }];
    for (const { kind, operation } of events) {
      if (kind === "call") {
        this.#call(operation);
        continue;
      }
      const next = new ConfigurationSet<State>(this.#model.key);
      try {
        for (const one of configurations) this.#explain(one, operation, next);
      } catch (thrown) {
        if (thrown instanceof BudgetSpent) return { verdict: "undecided", steps: this.steps };
        throw thrown;
      }
      if (next[Symbol.iterator]().next().done === true) {
        const states = [...new Set([...configurations].map(({ state }) => this.#model.describe(state)))];
        const inFlight = [...this.#called, ...this.#unknown].filter((one) => one !== operation);
        return { verdict: "violated", steps: this.steps, impossible: operation, states, inFlight };
      }
      this.#answer(operation);
      configurations = this.#withoutSpent(next).fewest(this.#limits.kept);
    }
    return { verdict: "linearizable", steps: this.steps };
  }

  #prepare(operations: readonly HistoryOperation[]): Event[] {
    const events: Event[] = [];
    const byCall = [...operations].sort((a, b) => a.from - b.from || a.to - b.to);
    for (const operation of byCall) {
      events.push({ at: operation.from, kind: "call", operation });
      if (operation.outcome !== "ok") continue;
      events.push({ at: operation.to, kind: "response", operation });
      const client = this.#clientOf.get(operation.client) ?? this.#clients.length;
      this.#clientOf.set(operation.client, client);
      (this.#clients[client] ??= []).push(operation);
      this.#answered[client] = 0;
    }
    if (this.#model.isStale !== undefined) this.#clients.forEach((_, client) => this.#active.add(client));
    // A call at the moment of a response overlaps with it: the clock may be coarse.
    return events.sort((a, b) => a.at - b.at || (a.kind === b.kind ? 0 : a.kind === "call" ? -1 : 1));
  }

  /**
   * Unknown operations that can change nothing later count as used, so that configurations that differ in them only are
   * one.
   */
  #withoutSpent(configurations: ConfigurationSet<State>): ConfigurationSet<State> {
    const { isSpent } = this.#model;
    if (isSpent === undefined || this.#unknown.length === 0 || configurations.size < 2) return configurations;
    const less = new ConfigurationSet<State>(this.#model.key);
    for (const one of configurations) {
      let { used } = one;
      for (const [bit, unknown] of this.#unknown.entries()) if (isSpent(one.state, unknown)) used |= 1n << BigInt(bit);
      less.add({ ...one, used });
    }
    return less;
  }

  #call(operation: HistoryOperation): void {
    if (operation.outcome === "unknown") {
      this.#unknown.push(operation);
      this.#kinds.push(JSON.stringify([operation.do, operation.keys, operation.input, operation.session]));
      return;
    }
    this.#called.add(operation);
    this.#active.add(this.#client(operation));
  }

  #answer(operation: HistoryOperation): void {
    const client = this.#client(operation);
    this.#called.delete(operation);
    this.#answered[client] = (this.#answered[client] ?? 0) + 1;
    if (this.#model.isStale === undefined && this.#nextOf(client, none) === null) this.#active.delete(client);
  }

  #client({ client }: HistoryOperation): number {
    return this.#clientOf.get(client) as number;
  }

  /** Adds all configurations in which `operation` has taken effect, without it. */
  #explain(start: Configuration<State>, operation: HistoryOperation, found: ConfigurationSet<State>): void {
    const client = this.#client(operation);
    if (start.ahead.has(client)) {
      found.add({ ...start, ahead: withAhead(start.ahead, client, -1) });
      return;
    }
    const seen = new ConfigurationSet<State>(this.#model.key);
    seen.add(start);
    const usedAtStart = bitsOf(start.used);
    const open = [start];
    for (let one = open.pop(); one !== undefined; one = open.pop()) {
      const state = this.#step(one.state, operation);
      if (state === one.state) {
        found.add(one);
        continue;
      }
      const left = this.#withReads(one);
      if (state !== null) found.add({ ...left, state });
      const mayUse = bitsOf(one.used) - usedAtStart < this.#limits.unknownMax;
      for (const next of this.#changesAfter(left, operation, mayUse)) if (seen.add(next)) open.push(next);
    }
  }

  /** The operations in flight that change nothing, and whose responses are right now, have taken effect. */
  #withReads(one: Configuration<State>): Configuration<State> {
    let { ahead } = one;
    for (const client of this.#active) {
      for (let next = this.#nextOf(client, ahead); next !== null; next = this.#nextOf(client, ahead)) {
        if (this.#step(one.state, next) !== one.state) break;
        ahead = withAhead(ahead, client, 1);
      }
    }
    return { ...one, ahead };
  }

  *#changesAfter(
    one: Configuration<State>,
    wanted: HistoryOperation,
    mayUseUnknown: boolean,
  ): Generator<Configuration<State>> {
    for (const client of this.#active) {
      const next = this.#nextOf(client, one.ahead);
      if (next === null || next === wanted) continue;
      const state = this.#step(one.state, next);
      if (state === null || state === one.state) continue;
      yield { state, ahead: withAhead(one.ahead, client, 1), used: one.used };
    }
    if (!mayUseUnknown) return;
    const tried = new Set<string>();
    for (const [bit, unknown] of this.#unknown.entries()) {
      const mask = 1n << BigInt(bit);
      if ((one.used & mask) !== 0n || this.#model.isSpent?.(one.state, unknown) === true) continue;
      const kind = this.#kinds[bit] ?? "";
      if (tried.has(kind)) continue;
      tried.add(kind);
      const state = this.#step(one.state, unknown);
      if (state === null || state === one.state) continue;
      yield { state, ahead: one.ahead, used: one.used | mask };
    }
  }

  /** The next operation of a client, where it was called; of stale reads also before that. */
  #nextOf(client: number, ahead: ReadonlyMap<number, number>): HistoryOperation | null {
    const next = this.#clients[client]?.[(this.#answered[client] ?? 0) + (ahead.get(client) ?? 0)];
    if (next === undefined) return null;
    return this.#called.has(next) || this.#model.isStale?.(next) === true ? next : null;
  }

  #step(state: State, operation: HistoryOperation): State | null {
    if (++this.steps > this.#stepsMax) throw new BudgetSpent();
    return this.#model.step(state, operation);
  }
}

function withAhead(ahead: ReadonlyMap<number, number>, client: number, more: number): ReadonlyMap<number, number> {
  const next = new Map(ahead);
  const count = (next.get(client) ?? 0) + more;
  if (count === 0) next.delete(client);
  else next.set(client, count);
  return next;
}

function bitsOf(mask: bigint): number {
  let count = 0;
  for (let left = mask; left !== 0n; left &= left - 1n) count++;
  return count;
}

/** `operations` have no failed ones. Gives up as undecided after `stepsMax` steps of the model. */
export function searchOrder<State>(
  model: CheckerModel<State>,
  operations: readonly HistoryOperation[],
  stepsMax: number,
): SearchResult {
  let steps = 0;
  for (const limits of passes) {
    const result = new Search(model, stepsMax - steps, limits).run(operations);
    steps += result.steps;
    if (result.verdict !== "violated" || limits.kept === Infinity) return { ...result, steps };
  }
  throw new Error("The last pass has no limits");
}
