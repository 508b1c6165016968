import { expect, test } from "bun:test";
import { didYouMean, nearestWord } from "../../../../src/base/support/did_you_mean.ts";

test("the nearest word is suggested, a far one is not", () => {
  const known = ["lock", "leader", "ls", "break", "barrier"];
  expect(nearestWord("lokc", known)).toBe("lock");
  expect(nearestWord("berak", known)).toBe("break");
  expect(nearestWord("lss", known)).toBe("ls");
  expect(nearestWord("frobnicate", known)).toBeNull();
  expect(nearestWord("x", known)).toBeNull();
  expect(didYouMean("lokc", known)).toBe(', did you mean "lock"?');
  expect(didYouMean("frobnicate", known)).toBe("");
});

test("the dashes of options do not make them similar", () => {
  expect(nearestWord("--watch", ["--acl", "--tls", "--json"])).toBeNull();
  expect(nearestWord("--watc", ["--acl", "--watch"])).toBe("--watch");
});

test("the word of another program for the same thing is suggested, where there is that thing", () => {
  expect(nearestWord("pub", ["publish", "subscribe", "pool"])).toBe("publish");
  expect(nearestWord("publish", ["put", "get", "pending"])).toBe("put");
  expect(nearestWord("LIST", ["ls", "show", "delete"])).toBe("ls");
  expect(nearestWord("rm", ["ls", "show", "delete", "repair"])).toBe("delete");
  expect(nearestWord("rm", ["lock", "hold"])).toBeNull();
});
