import { expect, test } from "bun:test";
import { carriesCookie, cookieEnvironment } from "../../../../src/process/proc/process_marker.ts";

test("a nested call appends its cookie, and both locks find the process by it", () => {
  const { BATON_LOCK_COOKIE = "" } = cookieEnvironment("inner", "outer");
  const environ = `PATH=/bin\0BATON_LOCK_COOKIE=${BATON_LOCK_COOKIE}\0HOME=/\0`;
  expect(BATON_LOCK_COOKIE).toBe("outer:inner");
  expect(carriesCookie(environ, "inner")).toBe(true);
  expect(carriesCookie(environ, "outer")).toBe(true);
});

test("the cookie counts wherever the variable stands, and only there and only whole", () => {
  expect(carriesCookie("BATON_LOCK_COOKIE=abc", "abc")).toBe(true);
  expect(carriesCookie("A=1\0BATON_LOCK_COOKIE=abc", "abc")).toBe(true);
  expect(carriesCookie("A=1\0BATON_LOCK_COOKIE=abcd\0", "abc")).toBe(false);
  expect(carriesCookie("MY_BATON_LOCK_COOKIE=abc\0", "abc")).toBe(false);
  expect(carriesCookie("OTHER=abc\0", "abc")).toBe(false);
  expect(carriesCookie("", "abc")).toBe(false);
});

test("an empty inherited value does not make an empty element", () => {
  expect(cookieEnvironment("one", "")).toEqual({ BATON_LOCK_COOKIE: "one" });
});
