/**
 * Small histories by chance: of an object that does one operation after the other, some of them with one response
 * exchanged.
 */
import { modelOf } from "./check_history.ts";
import type { HistoryOperation } from "./operation.ts";

type Fields = Record<string, unknown>;

interface Kind {
  readonly model: string;
  readonly keys: readonly string[];
  /** A call by chance, and all responses that it can have. */
  call(
    choose: Choose,
    client: string,
  ): { readonly do: string; readonly input: Fields; readonly outputs: readonly Fields[] };
}

type Choose = <T>(items: readonly T[]) => T;

const versions = [0, 1, 2];
const read = ["x", "y"].flatMap((data) => versions.map((version) => ({ data, version })));
const refusals = ["NONODE", "NODEEXISTS", "BADVERSION"].map((error) => ({ error }));
const numbers = [1, 2, 3, 4, 5, 6, 7];

export const randomKinds: readonly Kind[] = [
  {
    model: "znode",
    keys: ["/a", "/b"],
    call: (choose) =>
      choose([
        { do: "create", input: { data: choose(["x", "y"]) }, outputs: [...refusals, { version: 0 }] },
        {
          do: "set",
          input: { data: choose(["x", "y"]), version: choose([-1, 0, 1]) },
          outputs: [...refusals, ...versions.map((version) => ({ version }))],
        },
        { do: "delete", input: { version: choose([-1, 0, 1]) }, outputs: [...refusals, {}] },
        { do: "get", input: {}, outputs: [...refusals, ...read] },
        { do: "get", input: {}, outputs: [...refusals, ...read] },
      ]),
  },
  {
    model: "lock",
    keys: ["l"],
    call: (choose, client) =>
      choose([
        { do: "acquire", input: { holder: client }, outputs: [{ busy: true }, ...numbers.map((token) => ({ token }))] },
        { do: "release", input: { holder: client }, outputs: [{}, { lost: true }] },
      ]),
  },
  {
    model: "semaphore",
    keys: ["s"],
    call: (choose, client) =>
      choose([
        {
          do: "acquire",
          input: { holder: client, limit: 2, permits: choose([1, 1, 2]) },
          outputs: [{ busy: true }, {}],
        },
        { do: "release", input: { holder: client }, outputs: [{}, { lost: true }] },
      ]),
  },
  {
    model: "barrier",
    keys: ["b"],
    call: (choose, client) =>
      choose([
        { do: "arrive", input: { member: client, parties: 2 }, outputs: [{}] },
        { do: "depart", input: { member: client }, outputs: [{}, ...numbers.map((token) => ({ token }))] },
        { do: "quit", input: { member: client }, outputs: [{}] },
      ]),
  },
  {
    model: "log",
    keys: ["t"],
    call: (choose, client) =>
      choose([
        { do: "append", input: { value: choose(["x", "y", "z"]) }, outputs: numbers.map((id) => ({ id })) },
        { do: "take", input: { reader: client }, outputs: entryLists },
        { do: "read", input: { after: choose([0, 1, 2]) }, outputs: entryLists },
      ]),
  },
];

const single = numbers.slice(0, 4).flatMap((id) => ["x", "y", "z"].map((value): [number, string] => [id, value]));
const entryLists: readonly Fields[] = [
  { entries: [] },
  ...single.map((one) => ({ entries: [one] })),
  ...single.flatMap((one) => single.filter(([id]) => id > one[0]).map((two) => ({ entries: [one, two] }))),
];

/** At most `count` operations of `kind`. */
export function randomHistory(kind: Kind, random: () => number, count: number): HistoryOperation[] {
  const choose: Choose = (items) => items[Math.floor(random() * items.length)] as (typeof items)[number];
  const model = modelOf(kind.model);
  const names = ["p", "q", "r"];
  const free = new Map(names.map((name) => [name, 0]));
  const calls = Array.from({ length: count }, (_, index) => {
    const name = choose(names);
    const from = (free.get(name) ?? 0) + Math.floor(random() * 4);
    const to = from + 1 + Math.floor(random() * 6);
    free.set(name, to);
    // A change of unknown outcome is its client's last.
    const outcome = random() < 0.2 ? "unknown" : random() < 0.1 ? "fail" : "ok";
    const client = outcome === "unknown" ? `${name}${index}` : name;
    return {
      name,
      client,
      from,
      to: outcome === "unknown" ? Infinity : to,
      outcome,
      at: from + random() * (to - from),
    } as const;
  });
  let state = model.initial();
  const operations: HistoryOperation[] = [];
  for (const { name, at: _, ...call } of calls.toSorted((a, b) => a.at - b.at)) {
    const { outputs, ...asked } = kind.call(choose, name);
    const operation = { model: kind.model, keys: [choose(kind.keys)], ...call, ...asked, output: null };
    if (call.outcome !== "ok") {
      if (call.outcome === "unknown" && random() < 0.5) state = model.step(state, operation) ?? state;
      operations.push(operation);
      continue;
    }
    const answered = outputs.map((output) => ({ ...operation, output }));
    const legal = answered.filter((one) => model.step(state, one) !== null);
    if (legal.length === 0) {
      if (random() < 0.1) operations.push(choose(answered));
      continue;
    }
    const chosen = choose(legal);
    state = model.step(state, chosen);
    // A wrong response, here and there.
    operations.push(random() < 0.12 ? choose(answered) : chosen);
  }
  return operations;
}
