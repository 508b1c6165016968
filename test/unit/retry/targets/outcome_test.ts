import { describe, expect, test } from "bun:test";
import { outcomeOfExit, outcomeOfStatus, parseCodes } from "../../../../src/retry/targets/outcome.ts";

const noRules = { retryOn: [], noRetryOn: [] };

describe("an exit code", () => {
  test("0 is done; what no repetition mends is final; the rest is worth another try, a signal too", () => {
    expect(outcomeOfExit(0, noRules)).toBe("done");
    for (const code of [64, 65, 77, 78, 126, 127]) {
      expect([code, outcomeOfExit(code, noRules)]).toEqual([code, "final"]);
    }
    for (const code of [1, 2, 69, 70, 74, 75, 76, 124, 137]) {
      expect([code, outcomeOfExit(code, noRules)]).toEqual([code, "retry"]);
    }
  });

  test("the user's word goes before the defaults, and no before yes; 0 stays done", () => {
    const rules = { retryOn: parseCodes(["64", "1-3"]), noRetryOn: parseCodes(["2"]) };
    expect([0, 1, 2, 64, 65].map((code) => outcomeOfExit(code, rules))).toEqual([
      "done",
      "retry",
      "final",
      "retry",
      "final",
    ]);
  });
});

describe("an HTTP status", () => {
  test("2xx and 3xx are answers; 4xx is final but for 408, 425 and 429; 5xx is worth another try", () => {
    for (const status of [200, 202, 204, 301, 304]) expect(outcomeOfStatus(status, noRules)).toBe("done");
    for (const status of [400, 401, 404, 409, 422, 451]) expect(outcomeOfStatus(status, noRules)).toBe("final");
    for (const status of [408, 425, 429, 500, 502, 503, 504, 599]) {
      expect(outcomeOfStatus(status, noRules)).toBe("retry");
    }
  });

  test("a group may be named", () => {
    const rules = { retryOn: parseCodes(["404"]), noRetryOn: parseCodes(["5xx"]) };
    expect([404, 500, 599, 429].map((status) => outcomeOfStatus(status, rules))).toEqual([
      "retry",
      "final",
      "final",
      "retry",
    ]);
  });
});

test("what is no code is refused with what was wanted", () => {
  for (const text of ["", "abc", "0", "600", "9-3", "1-2-3", "6xx", "-5", "5xxx"]) {
    expect(() => parseCodes([text])).toThrow(`"${text}"`);
  }
});
