/** The checker against the definition itself, on small histories; its limits; and the lines that it reads. */
import { describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import { property } from "../support/property.ts";
import { seededRandom } from "../support/random.ts";
import { bruteForce } from "./brute_force.ts";
import { checkHistory, demandLinearizable } from "./check_history.ts";
import { historyLines, readHistoryLines } from "./history_lines.ts";
import type { HistoryOperation } from "./operation.ts";
import { randomHistory, randomKinds } from "./random_history.ts";

const seeds = fc.integer({ min: 0, max: 2 ** 31 - 1 });
const isAccepted = (operations: readonly HistoryOperation[], withoutWitness: boolean) =>
  checkHistory(operations, { withoutWitness }).partitions.every(({ verdict }) => verdict === "linearizable");

describe("small histories are judged as by trying all orders", () => {
  for (const kind of randomKinds) {
    property(`${kind.model}, with the service's order and without it`, seeds, (seed) => {
      const random = seededRandom(seed);
      const history = randomHistory(kind, random, 2 + Math.floor(random() * 6));
      const expected = bruteForce(history);
      expect([isAccepted(history, false), isAccepted(history, true)]).toEqual([expected, expected]);
    }, 1500);
  }

  property("reads that may be stale", seeds, (seed) => {
    const random = seededRandom(seed);
    const history = randomHistory(
      { ...randomKinds[0], keys: ["/a"] } as (typeof randomKinds)[number],
      random,
      2 + Math.floor(random() * 6),
    ).map((one) => (one.do === "get" ? { ...one, input: { stale: true } } : one));
    const expected = bruteForce(history);
    expect([isAccepted(history, false), isAccepted(history, true)]).toEqual([expected, expected]);
  }, 1500);

  test("both verdicts occur often", () => {
    for (const kind of randomKinds) {
      const verdicts = Array.from({ length: 400 }, (_, seed) => bruteForce(randomHistory(kind, seededRandom(seed), 6)));
      const accepted = verdicts.filter((one) => one).length;
      expect([kind.model, accepted > 80, accepted < 400]).toEqual([kind.model, true, true]);
    }
  });
});

describe("limits", () => {
  const set = (client: string, at: number, more: Partial<HistoryOperation> = {}): HistoryOperation => ({
    model: "znode",
    client,
    do: "set",
    keys: ["/a"],
    input: { data: client, version: -1 },
    from: at,
    to: at + 1,
    outcome: "ok",
    output: {},
    ...more,
  });

  test("a search that is not finished is undecided, and is never accepted", () => {
    const created = set("c", 0, { do: "create", input: { data: "0" } });
    const all = Array.from({ length: 12 }, (_, index) => set(`c${index}`, 2, { to: 100 }));
    const impossible = set("r", 101, { do: "get", input: {}, output: { version: 99 }, to: 102 });
    const history = [created, ...all, impossible];
    const verdict = checkHistory(history, { stepsMax: 1000 });
    expect(verdict.undecided.map(({ keys }) => keys)).toEqual([["/a"]]);
    expect(verdict.violated).toEqual([]);
    expect(() => demandLinearizable(history, { stepsMax: 1000 })).toThrow("undecided after 1001 steps");
  });

  test("a client with two operations at the same time is refused, and a response without output", () => {
    expect(() => checkHistory([set("c", 1, { to: 9 }), set("c", 2)])).toThrow("two operations at the same time");
    expect(() => checkHistory([set("c", 1, { outcome: "unknown", to: Infinity }), set("c", 2)])).toThrow("same time");
    expect(() => checkHistory([set("c", 1, { output: null })])).toThrow("without output");
    expect(() => checkHistory([set("c", 1, { to: 0 })])).toThrow("ends before it begins");
    expect(() => checkHistory([set("c", 1, { model: "queue" })])).toThrow('model "queue": expected one of znode');
  });

  test("ten thousand operations of ten clients take seconds, lost responses among them", () => {
    const history = longHistory(10_000, seededRandom(7));
    const verdict = demandLinearizable(history, { withoutWitness: true });
    expect(verdict.partitions.map(({ operations }) => operations)).toEqual([10_001]);
    expect(verdict.partitions[0]?.unknown).toBeGreaterThan(100);
  }, 60_000);
});

/** A register that ten clients set and read; of some sets the response is lost. */
function longHistory(count: number, random: () => number): HistoryOperation[] {
  let [version, data, zxid] = [0, "0", 1];
  const base = { model: "znode", keys: ["/a"], outcome: "ok" } as const;
  const history: HistoryOperation[] = [
    { ...base, client: "first", do: "create", input: { data }, from: 0, to: 1, output: { version, zxid } },
  ];
  const clients = Array.from({ length: 10 }, (_, number) => ({ name: `c${number}`, lives: 0 }));
  for (let step = 0; step < count; step++) {
    const client = clients[step % 10] as (typeof clients)[number];
    const at = 10 + step;
    const [from, to] = [at - 4 * random(), at + 4 * random()];
    const about = { ...base, client: `${client.name}.${client.lives}`, from, to };
    if (random() < 0.6) {
      history.push({ ...about, do: "get", input: {}, output: { data, version, mzxid: zxid } });
      continue;
    }
    const isLost = random() < 0.05;
    const input = { data: `${step}`, version: random() < 0.5 ? version : -1 };
    if (!isLost || random() < 0.5) [version, data, zxid] = [version + 1, `${step}`, zxid + 1];
    if (isLost) client.lives++;
    history.push(
      isLost
        ? { ...about, do: "set", input, to: Infinity, outcome: "unknown", output: null }
        : { ...about, do: "set", input, output: { version, zxid } },
    );
  }
  return history;
}

describe("lines", () => {
  property("a history that was written is read again", seeds, (seed) => {
    for (const kind of randomKinds) {
      const history = randomHistory(kind, seededRandom(seed), 6);
      const read = readHistoryLines(historyLines(history, [{ at: 3, state: "server killed" }]));
      const inOrder = (operations: readonly HistoryOperation[]) =>
        operations.toSorted((a, b) => a.from - b.from || a.client.localeCompare(b.client));
      expect(inOrder(read)).toEqual(inOrder(history));
    }
  }, 50);

  const call = '{"n":1,"at":1,"client":"c","model":"znode","do":"get","key":"/a","input":{}}\n';
  test.each([
    ["no JSON\n", "line 1: JSON"],
    ['{"n":1}\n', 'line 1: {"n":1}: expected a call, a response or a state'],
    [`${call}${call}`, "line 2: operation 1 is called twice"],
    ['{"n":2,"at":1,"outcome":"ok","output":{}}\n', "line 1: a response of operation 2, which is not in flight"],
    [`${call}{"n":1,"at":2,"outcome":"ok","output":{"version":"x"}}\n`, "znode get"],
    [call.replace("znode", "queue"), 'model "queue"'],
  ])("a wrong line is named: %s", (text, message) => {
    expect(() => readHistoryLines(text)).toThrow(message);
  });

  test("a last line that was cut off is passed over, and its operation is of unknown outcome", () => {
    const [read] = readHistoryLines(`${call}{"n":1,"at":2,"out`);
    expect([read?.outcome, read?.to]).toEqual(["unknown", Infinity]);
  });
});
