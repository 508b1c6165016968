import { describe, expect, test } from "bun:test";
import {
  isRedirectionFollowed,
  outcomeOfExit,
  outcomeOfStatus,
  parseExitsAndStatuses,
} from "../../../../src/retry/targets/outcome.ts";

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
    const rules = { retryOn: parseExitsAndStatuses(["64", "1-3"]), noRetryOn: parseExitsAndStatuses(["2"]) };
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
  test("2xx is an answer; 3xx is final, and so is 4xx but for 408, 425 and 429; 5xx is worth another try", () => {
    for (const status of [200, 202, 204, 299]) expect(outcomeOfStatus(status, noRules)).toBe("done");
    for (const status of [300, 301, 302, 303, 304, 307, 308, 399]) {
      expect(outcomeOfStatus(status, noRules)).toBe("final");
    }
    for (const status of [400, 401, 404, 409, 422, 451]) expect(outcomeOfStatus(status, noRules)).toBe("final");
    for (const status of [408, 425, 429, 500, 502, 503, 504, 599]) {
      expect(outcomeOfStatus(status, noRules)).toBe("retry");
    }
  });

  test("a number that is no status of a response is final: it would be the same for a day", () => {
    for (const status of [0, 99, 100, 101, 199, 600, 999]) expect(outcomeOfStatus(status, noRules)).toBe("final");
  });

  test("3xx follows the user's word", () => {
    const rules = { retryOn: parseExitsAndStatuses(["3xx"]), noRetryOn: parseExitsAndStatuses(["308"]) };
    expect([301, 307, 308].map((status) => outcomeOfStatus(status, rules))).toEqual(["retry", "retry", "final"]);
  });

  test("307 and 308 are followed, 301 to 303 on request; a status that the user has named is not", () => {
    const followed = (rules: Parameters<typeof isRedirectionFollowed>[1], follow: boolean) =>
      [200, 300, 301, 302, 303, 304, 305, 307, 308, 503].filter((status) =>
        isRedirectionFollowed(status, rules, follow)
      );
    expect(followed(noRules, false)).toEqual([307, 308]);
    expect(followed(noRules, true)).toEqual([301, 302, 303, 307, 308]);
    expect(followed({ retryOn: parseExitsAndStatuses(["302"]), noRetryOn: parseExitsAndStatuses(["308"]) }, true))
      .toEqual([301, 303, 307]);
  });

  test("a group may be named", () => {
    const rules = { retryOn: parseExitsAndStatuses(["404"]), noRetryOn: parseExitsAndStatuses(["5xx"]) };
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
    expect(() => parseExitsAndStatuses([text])).toThrow(`"${text}"`);
  }
});

test("a code that can never match is refused: success is never retried, and a command has no statuses", () => {
  const [exits, statuses] = [{ exits: true, statuses: false }, { exits: false, statuses: true }];
  for (const text of ["1xx", "2xx", "256", "260-299"]) {
    expect(() => parseExitsAndStatuses([text])).toThrow(`"${text}" can never match`);
  }
  for (const text of ["5xx", "3xx", "404", "256-599"]) {
    expect(() => parseExitsAndStatuses([text], exits)).toThrow(`"${text}" can never match: exit codes are 1 to 255`);
    expect(parseExitsAndStatuses([text], statuses)).toHaveLength(1);
  }
  for (const text of ["65", "100-299", "200", "2xx"]) {
    expect(() => parseExitsAndStatuses([text], statuses)).toThrow(
      `"${text}" can never match: failures of HTTP are 300 to 599`,
    );
  }
  expect(parseExitsAndStatuses(["65", "1-255", "200", "250-300"], exits)).toHaveLength(4);
  expect(() => parseExitsAndStatuses(["65"], { exits: false, statuses: false })).toThrow(
    "neither a command is run nor a request is sent",
  );
});
