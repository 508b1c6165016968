import { expect, test } from "bun:test";
import { toChildExitStatus } from "../../../../../src/base/process/spawn/child_outcome.ts";

test("a code, a signal with a name, one without", () => {
  expect(toChildExitStatus(0, null)).toEqual({ kind: "exited", code: 0 });
  expect(toChildExitStatus(null, "SIGTERM")).toEqual({ kind: "signaled", signal: "SIGTERM", signalNumber: 15 });
  expect(toChildExitStatus(null, 40)).toEqual({ kind: "signaled", signal: "SIG40", signalNumber: 40 });
});

test("an end that cannot be read is neither an exit nor a signal", () => {
  expect(toChildExitStatus(null, null).kind).toBe("unreadable");
  expect(toChildExitStatus(null, "SIGNOBODYKNOWS").kind).toBe("unreadable");
});
