import { expect, test } from "bun:test";
import { jobCookieEnvironment, parseJobCookies } from "../../../../../src/base/process/proc/process_table.ts";

test("a nested call appends its cookie, and both locks find the process by it", () => {
  const { BATON_LOCK_COOKIE = "" } = jobCookieEnvironment("inner", "outer");
  const environ = `PATH=/bin\0BATON_LOCK_COOKIE=${BATON_LOCK_COOKIE}\0HOME=/\0`;
  expect(BATON_LOCK_COOKIE).toBe("outer:inner");
  expect(parseJobCookies(environ)).toContain("inner");
  expect(parseJobCookies(environ)).toContain("outer");
});

test("the cookie counts wherever the variable stands, and only there and only whole", () => {
  expect(parseJobCookies("BATON_LOCK_COOKIE=abc")).toContain("abc");
  expect(parseJobCookies("A=1\0BATON_LOCK_COOKIE=abc")).toContain("abc");
  expect(parseJobCookies("A=1\0BATON_LOCK_COOKIE=abcd\0")).not.toContain("abc");
  expect(parseJobCookies("MY_BATON_LOCK_COOKIE=abc\0")).not.toContain("abc");
  expect(parseJobCookies("OTHER=abc\0")).not.toContain("abc");
  expect(parseJobCookies("")).not.toContain("abc");
});

test("an empty inherited value does not make an empty element", () => {
  expect(jobCookieEnvironment("one", "")).toEqual({ BATON_LOCK_COOKIE: "one" });
});
