/**
 * A small explicit-state model checker: breadth first over every reachable state, so that a trace is a shortest one.
 * Knows nothing of locks. Three kinds of property: an invariant of every state; what must be true of a state in which
 * nothing moves by itself; and that from every state, without another fault, everybody can still come to an end.
 */

/**
 * - step: happens by itself, sooner or later
 * - choice: somebody may do this, or never do it (a holder releases)
 * - fault: the world is unkind
 */
export type TransitionKind = "step" | "choice" | "fault";

export interface Transition<State> {
  readonly kind: TransitionKind;
  readonly label: string;
  readonly state: State;
}

export interface Model<State> {
  readonly initial: readonly State[];
  transitions(state: State): Transition<State>[];
  /** Two states with the same key are the same. */
  key(state: State): string;
  /** What is wrong with this state, or null. */
  violation(state: State): string | null;
  /** What is wrong with this state, given that nothing in it moves by itself. */
  idleViolation(state: State): string | null;
  isDone(state: State): boolean;
}

export interface Exploration {
  readonly states: number;
  readonly transitions: number;
  readonly violation: { readonly what: string; readonly trace: readonly string[] } | null;
}

/** Explores the model, and prints how large it was. */
export function exploreAndPrint<State>(name: string, model: Model<State>, statesMax?: number): Exploration {
  const startedMs = performance.now();
  const result = explore(model, statesMax);
  const elapsedMs = Math.round(performance.now() - startedMs);
  console.log(`model: ${name}: ${result.states} states, ${result.transitions} transitions, ${elapsedMs} ms`);
  return result;
}

/** Throws when the model has more than `statesMax` states: a check that did not end has shown nothing. */
export function explore<State>(model: Model<State>, statesMax = 2_000_000): Exploration {
  const numbers = new Map<string, number>();
  const states: (State | undefined)[] = [];
  const parents: number[] = [];
  const labels: string[] = [];
  const done: number[] = [];
  const edgesFrom: number[] = [];
  const edgesTo: number[] = [];
  let transitions = 0;

  const numberOf = (state: State, parent: number, label: string): number => {
    const key = model.key(state);
    const known = numbers.get(key);
    if (known !== undefined) return known;
    const number = states.length;
    if (number >= statesMax) throw new Error(`The model has more than ${statesMax} states`);
    numbers.set(key, number);
    states.push(state);
    parents.push(parent);
    labels.push(label);
    return number;
  };
  const report = (what: string | null, at: number): Exploration => ({
    states: states.length,
    transitions,
    violation: what === null ? null : { what, trace: traceTo(at, parents, labels) },
  });

  for (const state of model.initial) numberOf(state, -1, "start");
  for (let at = 0; at < states.length; at++) {
    const state = states[at] as State;
    states[at] = undefined; // only the key is needed from here on
    const broken = model.violation(state);
    if (broken !== null) return report(broken, at);
    if (model.isDone(state)) done.push(at);
    let moves = false;
    for (const { kind, label, state: next } of model.transitions(state)) {
      transitions++;
      const to = numberOf(next, at, label);
      if (kind === "step") moves = true;
      if (kind === "fault") continue;
      edgesFrom.push(at);
      edgesTo.push(to);
    }
    const stuck = moves ? null : model.idleViolation(state);
    if (stuck !== null) return report(stuck, at);
  }
  const hopeless = firstWithoutEnd(states.length, done, edgesFrom, edgesTo);
  return hopeless === -1 ? report(null, 0) : report("From here nobody can come to an end any more", hopeless);
}

function traceTo(at: number, parents: readonly number[], labels: readonly string[]): string[] {
  const trace: string[] = [];
  for (let number = at; number !== -1; number = parents[number] ?? -1) trace.unshift(labels[number] ?? "");
  return trace;
}

/** The first state from which no state in `done` can be reached, or -1: a walk backwards over the edges. */
function firstWithoutEnd(
  count: number,
  done: readonly number[],
  from: readonly number[],
  to: readonly number[],
): number {
  const first = new Int32Array(count + 1);
  for (const number of to) first[number + 1] = (first[number + 1] ?? 0) + 1;
  for (let number = 0; number < count; number++) first[number + 1] = (first[number + 1] ?? 0) + (first[number] ?? 0);
  const place = first.slice();
  const sources = new Int32Array(to.length);
  for (let edge = 0; edge < to.length; edge++) {
    const target = to[edge] ?? 0;
    const slot = place[target] ?? 0;
    sources[slot] = from[edge] ?? 0;
    place[target] = slot + 1;
  }
  const reached = new Uint8Array(count);
  const open = [...done];
  for (const number of open) reached[number] = 1;
  for (let number = open.pop(); number !== undefined; number = open.pop()) {
    for (let edge = first[number] ?? 0; edge < (first[number + 1] ?? 0); edge++) {
      const source = sources[edge] ?? 0;
      if (reached[source] === 1) continue;
      reached[source] = 1;
      open.push(source);
    }
  }
  return reached.indexOf(0);
}
