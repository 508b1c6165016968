import { expect, test } from "bun:test";
import {
  decideAfterRequestAttempt,
  type RequestAttemptResult,
  type RequestAttemptState,
} from "../../../../src/pubsub/client/attempt_decision.ts";
import { statusCodes } from "../../../../src/pubsub/wire/status_codes.ts";

const put: RequestAttemptState = { changesState: true, mayBeDone: false, attempts: 1, attemptsMax: 10, leftMs: 1000 };
const answered = (status: (typeof statusCodes)[number], isUnknown = false): RequestAttemptResult => ({
  kind: "response",
  status,
  isUnknown,
});

test("a final answer is taken, a passing one tried again, until the time is over", () => {
  for (const status of statusCodes) {
    const passes = ["NOT_OWNER", "OVERLOADED", "ERROR"].includes(status);
    expect(decideAfterRequestAttempt(put, answered(status))).toMatchObject({ do: passes ? "retry" : "accept" });
    const late = decideAfterRequestAttempt({ ...put, leftMs: 0 }, answered(status));
    expect(late).toEqual(passes ? { do: "give up", outcome: "fail" } : { do: "accept" });
  }
});

test("whatever went unanswered makes the outcome of a change unknown, unless an answer settles it", () => {
  const doubtful = { ...put, mayBeDone: true };
  expect(decideAfterRequestAttempt(put, { kind: "no response" })).toEqual({
    do: "retry",
    elsewhere: true,
    mayBeDone: true,
  });
  expect(decideAfterRequestAttempt(put, answered("ERROR", true))).toMatchObject({ do: "retry", mayBeDone: true });
  expect(decideAfterRequestAttempt({ ...doubtful, leftMs: 0 }, answered("OVERLOADED"))).toEqual({
    do: "give up",
    outcome: "unknown",
  });
  for (const status of ["FENCED", "FULL", "DENIED", "NOT_SUBSCRIBED"] as const) {
    expect(decideAfterRequestAttempt(doubtful, answered(status))).toEqual({ do: "give up", outcome: "unknown" });
  }
  expect(decideAfterRequestAttempt(doubtful, answered("OK"))).toEqual({ do: "accept" });
});

test("a get is never unknown, and what was never sent is definitely not done", () => {
  const last = { ...put, attempts: 10 };
  expect(decideAfterRequestAttempt({ ...last, changesState: false }, { kind: "no response" })).toEqual({
    do: "give up",
    outcome: "fail",
  });
  expect(decideAfterRequestAttempt(last, { kind: "not sent" })).toEqual({ do: "give up", outcome: "fail" });
  expect(decideAfterRequestAttempt(last, { kind: "no response" })).toEqual({ do: "give up", outcome: "unknown" });
});
