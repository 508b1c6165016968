import { expect, test } from "bun:test";
import * as fc from "fast-check";
import { joinUrlPaths, requestTargetPath, splitRequestUrl } from "../../../../src/base/http/request_target.ts";
import { property } from "../../../support/property.ts";

test("the path of a URL stays as it was written", () => {
  const place = (url: string) => splitRequestUrl(url, new URL(url));
  expect(place("http://h:9000/a\\b/../c?x=\\1#no")).toEqual({ origin: "http://h:9000", path: "/a\\b/../c?x=\\1" });
  expect(place("https://H")).toEqual({ origin: "https://h", path: "/" });
  expect(place("HTTP://h?x")).toEqual({ origin: "http://h", path: "/?x" });
  expect(place("http://h/ü b/%7e'\"{}")).toEqual({ origin: "http://h", path: "/%C3%BC%20b/%7e'\"{}" });
});

test("the target of a request line is a path, or a URL whose path is meant", () => {
  expect(requestTargetPath("/a\\b?c")).toBe("/a\\b?c");
  expect(requestTargetPath("http://any:80/a?b")).toBe("/a?b");
  expect(requestTargetPath("HTTPS://any")).toBe("/");
  expect(requestTargetPath("http://any?x=/y")).toBe("/?x=/y");
  for (const target of ["*", "", "host:443", "ftp://h/", "http:///x"]) {
    expect([target, requestTargetPath(target)]).toEqual([target, null]);
  }
});

test("a path is put behind that of the backend, unchanged", () => {
  expect(joinUrlPaths("/stock", "/")).toBe("/stock");
  expect(joinUrlPaths("/stock/", "/a/b?c=d")).toBe("/stock/a/b?c=d");
  expect(joinUrlPaths("/stock", "/?x=1")).toBe("/stock?x=1");
  expect(joinUrlPaths("/", '/x%20y\\z|{}"')).toBe('/x%20y\\z|{}"');
  expect(joinUrlPaths("/stock", "/a/../b?../../..")).toBe("/stock/a/../b?../../..");
});

test("a path that leads elsewhere goes nowhere", () => {
  const paths = [
    "http://evil/",
    "//evil/x",
    "/\\evil",
    "x",
    "",
    "*",
    "/../admin",
    "/%2e%2e/%2E./admin",
    "/a/..\\../admin",
    "/a/..%5c../x",
  ];
  for (const path of [...paths, "/a b", "/a\u0100"]) expect([path, joinUrlPaths("/stock", path)]).toEqual([path, null]);
});

property("no path leaves the backend and its folder", fc.webPath(), (path) => {
  const joined = joinUrlPaths("/stock", path);
  if (joined === null) return;
  const url = new URL(`http://backend:9000${joined}`);
  expect([url.origin, url.pathname.startsWith("/stock")]).toEqual(["http://backend:9000", true]);
});
