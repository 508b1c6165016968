import { expect, test } from "bun:test";
import type { PubsubRequestOutcome } from "../../../../src/pubsub/client/requester.ts";
import { putTryResult } from "../../../../src/retry/targets/topic_target.ts";
import type { StatusCode } from "../../../../src/pubsub/wire/status_codes.ts";

function answer(status: StatusCode): PubsubRequestOutcome {
  return { kind: "response", response: { name: "STATUS", id: "x", status } as never };
}

test("what became of a put says what becomes of its message", () => {
  const ends = (["OK", "FULL", "OVERLOADED", "NOT_OWNER", "ERROR", "STALE_OP", "BAD_REQUEST", "COUNTER_REUSE"] as const)
    .map((status) => putTryResult(answer(status), "orders"))
    .map((attempt) => (attempt.kind === "tried" ? attempt.end.outcome : attempt.kind));
  expect(ends).toEqual(["done", "retry", "retry", "retry", "retry", "retry", "final", "final"]);
  const away = putTryResult({ kind: "fail", why: "no proxy answers", response: null }, "orders");
  expect(away).toMatchObject({ kind: "tried", end: { outcome: "retry" } });
  const unknown = putTryResult({ kind: "unknown", why: "no answer", response: null }, "orders");
  expect(unknown).toMatchObject({ kind: "tried", end: { outcome: "retry" } });
});

test("a refusal is about no message: nothing is counted, and the processor ends with its code", () => {
  const denied = putTryResult(answer("DENIED"), "orders");
  expect(denied).toMatchObject({ kind: "not_begun", error: { code: "REFUSED" } });
  expect(putTryResult(answer("FENCED"), "orders")).toMatchObject({ kind: "not_begun", error: { code: "FENCED" } });
  const closed = putTryResult({ kind: "fail", why: "not let in", response: null, isRefused: true }, "orders");
  expect(closed).toMatchObject({ kind: "not_begun", error: { code: "REFUSED" } });
});
