import { expect, test } from "bun:test";
import {
  type AttemptResult,
  type AttemptState,
  decideAfterAttempt,
} from "../../../../src/pubsub/client/attempt_decision.ts";
import { statusCodes } from "../../../../src/pubsub/wire/status_codes.ts";

const put: AttemptState = { changesState: true, mayBeDone: false, attempts: 1, attemptsMax: 10, leftMs: 1000 };
const answered = (status: (typeof statusCodes)[number], isUnknown = false): AttemptResult => ({
  kind: "response",
  status,
  isUnknown,
});

test("a final answer is taken, a passing one tried again, until the time is over", () => {
  for (const status of statusCodes) {
    const passes = ["NOT_OWNER", "OVERLOADED", "ERROR"].includes(status);
    expect(decideAfterAttempt(put, answered(status))).toMatchObject({ do: passes ? "retry" : "accept" });
    const late = decideAfterAttempt({ ...put, leftMs: 0 }, answered(status));
    expect(late).toEqual(passes ? { do: "give up", outcome: "fail" } : { do: "accept" });
  }
});

test("whatever went unanswered makes the outcome of a change unknown, unless an answer settles it", () => {
  const doubtful = { ...put, mayBeDone: true };
  expect(decideAfterAttempt(put, { kind: "no response" })).toEqual({ do: "retry", elsewhere: true, mayBeDone: true });
  expect(decideAfterAttempt(put, answered("ERROR", true))).toMatchObject({ do: "retry", mayBeDone: true });
  expect(decideAfterAttempt({ ...doubtful, leftMs: 0 }, answered("OVERLOADED"))).toEqual({
    do: "give up",
    outcome: "unknown",
  });
  for (const status of ["FENCED", "FULL", "DENIED", "NOT_SUBSCRIBED"] as const) {
    expect(decideAfterAttempt(doubtful, answered(status))).toEqual({ do: "give up", outcome: "unknown" });
  }
  expect(decideAfterAttempt(doubtful, answered("OK"))).toEqual({ do: "accept" });
});

test("a get is never unknown, and what was never sent is definitely not done", () => {
  const last = { ...put, attempts: 10 };
  expect(decideAfterAttempt({ ...last, changesState: false }, { kind: "no response" })).toEqual({
    do: "give up",
    outcome: "fail",
  });
  expect(decideAfterAttempt(last, { kind: "not sent" })).toEqual({ do: "give up", outcome: "fail" });
  expect(decideAfterAttempt(last, { kind: "no response" })).toEqual({ do: "give up", outcome: "unknown" });
});
