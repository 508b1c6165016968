import { describe, expect, test } from "bun:test";
import { type MessageLoss, TopicLosses } from "../../../../../src/pubsub/store/decisions/topic_losses.ts";

const loss = (change: Partial<MessageLoss> = {}): MessageLoss => ({
  isCertain: true,
  last: 10,
  lastLost: 14,
  baseOffset: 1000,
  lastClient: 7,
  atMs: 0,
  ...change,
});
const told = (losses: MessageLoss[], get: Partial<Parameters<TopicLosses["forMessages"]>[0]>) =>
  new TopicLosses(losses).forMessages({ first: 1002, client: 1, position: 1001, received: 10, ...get });

describe("a subscriber", () => {
  test("is told with the messages after the lost ones, until one of them is acknowledged", () => {
    expect(told([loss()], { first: 9, position: 8, received: 8 })).toEqual({ missed: 0 });
    expect(told([loss()], {})).toEqual({ loss: "certain", missed: 4 });
    expect(told([loss()], { position: 10 })).toEqual({ loss: "certain", missed: 4 });
    expect(told([loss()], { first: 1003, position: 1002, received: 1002 })).toEqual({ missed: 0 });
    expect(told([loss()], { first: 1003, position: 1001, received: 1002 })).toEqual({ missed: 0 });
  });

  test("has missed the lost messages that it does not say it has received", () => {
    for (const [received, missed] of [[-1, 4], [10, 4], [12, 2], [14, 0], [15, 0]] as const) {
      expect(told([loss()], { received })).toEqual({ loss: "certain", missed });
    }
  });

  test("is told of no number if none is known, and of several losses together", () => {
    const unknown = loss({ isCertain: false, lastLost: null });
    expect(told([unknown], {})).toEqual({ loss: "possible", missed: 0 });
    const later = loss({ last: 1005, lastLost: 1006, baseOffset: 2000 });
    expect(told([unknown, later], { first: 2002 })).toEqual({ loss: "certain", missed: 1 });
    expect(told([unknown, later], {})).toEqual({ loss: "possible", missed: 0 });
  });

  test("that came after the loss is not told, nor is one if only other commits were lost", () => {
    expect(told([loss()], { client: 8 })).toEqual({ missed: 0 });
    expect(told([loss({ lastLost: 10 })], {})).toEqual({ missed: 0 });
  });
});

describe("a publisher", () => {
  test("is told once for a day, and again with the same put", () => {
    const losses = new TopicLosses([loss({ atMs: 5 })]);
    const forPut = (client: number, session: number, counter: number, nowMs: number) =>
      losses.forPut(client, { session: { number: session, key: "k" }, counter }, nowMs);
    expect(forPut(1, 1, 9, 6)).toEqual({ loss: "certain" });
    expect(forPut(1, 1, 10, 6)).toEqual({});
    expect(forPut(1, 1, 9, 6)).toEqual({ loss: "certain" });
    expect(forPut(1, 2, 9, 6)).toEqual({});
    expect(forPut(8, 1, 1, 6)).toEqual({}); // it has come since
    expect(forPut(2, 1, 1, 5 + 86_400_000)).toEqual({});
    expect(forPut(3, 1, 1, 4 + 86_400_000)).toEqual({ loss: "certain" });
  });
});
