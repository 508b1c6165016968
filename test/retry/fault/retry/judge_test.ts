import { expect, test } from "bun:test";
import { judgeRound, type RoundFacts } from "./judge.ts";

const good: RoundFacts = {
  maxRetries: 1,
  intervalMs: 10,
  isDone: (answer) => answer === 200,
  isFinal: (answer) => answer === 404,
  told: 2,
  stored: [
    { id: "a", state: "done", tries: 2, crashes: 0, reason: null },
    { id: "b", state: "dead", tries: 2, crashes: 1, reason: "exhausted" },
  ],
  seen: new Map([
    ["a", [{ startMs: 0, endMs: 1, answer: 500 }, { startMs: 11, endMs: 12, answer: 200 }]],
    ["b", [{ startMs: 0, endMs: 1, answer: 500 }, { startMs: 20, endMs: 30, answer: null }, {
      startMs: 50,
      endMs: 51,
      answer: 500,
    }]],
  ]),
  letters: ["b"],
  problems: [],
};

test("a round in which all went well has no failures", () => expect(judgeRound(good)).toEqual([]));

const wrong: readonly [what: RegExp, change: Partial<RoundFacts>][] = [
  [/3 were told to be stored/, { told: 3 }],
  [/2 messages are dead|1 messages are dead, and 0 letters/, { letters: [] }],
  [/in the file twice/, { letters: ["b", "b"] }],
  [/is not at an end/, { stored: [{ id: "a", state: "waiting", tries: 1, crashes: 0, reason: null }] }],
  [/more than 2/, { stored: [{ id: "a", state: "done", tries: 3, crashes: 0, reason: null }] }],
  [/the backend saw 2/, { stored: [{ id: "a", state: "done", tries: 1, crashes: 0, reason: null }] }],
  [/no try of it was successful/, { isDone: () => false }],
  [/1 were told to be stored, and 2/, { told: 1, isExact: true }],
  [/the backend saw 1/, { isExact: true, seen: new Map([["a", [{ startMs: 11, endMs: 12, answer: 200 }]]]) }],
  [/it had tries left/, { maxRetries: 2 }],
  [/was tried, and is not in the store/, { stored: [] }],
  [/two tries at once/, {
    seen: new Map([["a", [{ startMs: 0, endMs: 9, answer: 500 }, { startMs: 5, endMs: 12, answer: 200 }]]]),
  }],
  [/ms between two tries/, { intervalMs: 15 }],
  [/broken/, { problems: ["broken"] }],
];
for (const [what, change] of wrong) {
  test(`a round is found out: ${what.source}`, () => {
    expect(judgeRound({ ...good, ...change }).join("\n")).toMatch(what);
  });
}
