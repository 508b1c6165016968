import { describe, expect, test } from "bun:test";
import { type GuardedRequest, RequestGuard, wrongTokensMax } from "../../../../src/operator/ui/request_guard.ts";
import { FakeClock } from "../../../support/fake_clock.ts";

const readToken = "r".repeat(43);
const actToken = "a".repeat(43);
const hosts = new Set(["localhost", "127.0.0.1", "[::1]"]);

function guard(clock = new FakeClock()) {
  return new RequestGuard({ hosts, readToken, actToken, clock });
}

const own = { host: "127.0.0.1:8610", "sec-fetch-site": "same-origin" };
const bearer = (token: string) => ({ authorization: `Bearer ${token}` });
const request = (method: string, headers: GuardedRequest["headers"]): GuardedRequest => ({ method, headers });
const read = (headers: GuardedRequest["headers"], method = "GET") =>
  guard().check(request(method, headers), "read")?.status ?? 200;
const page = (headers: GuardedRequest["headers"], method = "GET") =>
  guard().check(request(method, headers), "page")?.status ?? 200;
const act = (headers: GuardedRequest["headers"], method = "POST") =>
  guard().check(request(method, headers), "act")?.status ?? 200;

describe("what a page of baton ui and a program of its user send is allowed", () => {
  test("the page, its data with the token, and an action with the other token", () => {
    expect(page({ host: "localhost:8610" })).toBe(200);
    expect(page(own)).toBe(200);
    expect(read({ ...own, ...bearer(readToken) })).toBe(200);
    expect(read({ ...own, ...bearer(actToken) })).toBe(200);
    const post = { ...own, ...bearer(actToken), origin: "http://127.0.0.1:8610", "content-type": "application/json" };
    expect(act(post)).toBe(200);
    expect(act({ ...post, "content-type": "application/json; charset=utf-8" })).toBe(200);
  });

  test("a program that is no browser sends neither Origin nor Sec-Fetch-Site", () => {
    expect(read({ host: "[::1]:8610", ...bearer(readToken) })).toBe(200);
  });

  test("another port is that of a tunnel: the browser's own origin has it, too", () => {
    const tunnel = { host: "localhost:9000", origin: "http://localhost:9000", "sec-fetch-site": "same-origin" };
    expect(read({ ...tunnel, ...bearer(readToken) })).toBe(200);
  });

  test("a link of another site opens the page, which has no data", () => {
    const link = { "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document" };
    expect(page({ host: "127.0.0.1:8610", ...link })).toBe(200);
    expect(read({ host: "127.0.0.1:8610", ...link, ...bearer(readToken) })).toBe(403);
  });
});

describe("attacks", () => {
  test("DNS rebinding: a name of another site that resolves to this machine", () => {
    const rebound = { host: "evil.example:8610", origin: "http://evil.example:8610", "sec-fetch-site": "same-origin" };
    expect(page(rebound)).toBe(421);
    expect(read({ ...rebound, ...bearer(readToken) })).toBe(421);
    for (
      const host of ["localhost.evil.example", "127.0.0.1.nip.io:8610", "0.0.0.0:8610", "evil.example:8610:8610", ""]
    ) {
      expect(read({ host, ...bearer(readToken) })).toBe(421);
    }
    expect(read(bearer(readToken))).toBe(421);
  });

  test("a page of another site, of another port, or without an origin", () => {
    for (const origin of ["https://evil.example", "http://127.0.0.1:9999", "http://localhost:8610", "null", ""]) {
      expect(read({ ...own, ...bearer(readToken), origin })).toBe(403);
      expect(act({ ...own, ...bearer(actToken), origin, "content-type": "application/json" })).toBe(403);
    }
    for (const site of ["cross-site", "same-site", "none"]) {
      expect(read({ host: own.host, ...bearer(readToken), "sec-fetch-site": site })).toBe(403);
    }
    expect(page({ host: own.host, "sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors" })).toBe(403);
    const frame = { "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "iframe" };
    expect(page({ host: own.host, ...frame })).toBe(403);
  });

  test("a form of another site: none of its three content types is JSON", () => {
    const types = [
      "application/x-www-form-urlencoded",
      "multipart/form-data",
      "text/plain",
      "text/plain;application/json",
    ];
    for (const type of [...types, undefined]) {
      expect(act({ ...own, ...bearer(actToken), "content-type": type })).toBe(415);
    }
  });

  test("a request that changes something by GET, and one that reads by POST", () => {
    expect(act({ ...own, ...bearer(actToken), "content-type": "application/json" }, "GET")).toBe(405);
    for (const method of ["POST", "PUT", "DELETE", "OPTIONS"]) {
      expect([page(own, method), read({ ...own, ...bearer(readToken) }, method)]).toEqual([405, 405]);
    }
  });

  test("no token, a wrong one, a part of it, another scheme", () => {
    const wrong = [
      "",
      "Bearer",
      "Bearer ",
      `Bearer ${readToken}x`,
      `Bearer ${readToken.slice(1)}`,
      `Basic ${readToken}`,
    ];
    for (const authorization of [...wrong, undefined]) expect(read({ ...own, authorization })).toBe(401);
  });

  test("the token for reading does not act, and without actions no token does", () => {
    const post = { ...own, "content-type": "application/json" };
    expect(act({ ...post, ...bearer(readToken) })).toBe(403);
    const reader = new RequestGuard({ hosts, readToken, actToken: null, clock: new FakeClock() });
    expect(reader.check(request("POST", { ...post, ...bearer("null") }), "act")?.status).toBe(401);
    expect(reader.mayAct(request("GET", bearer("null")))).toBe(false);
    expect(guard().mayAct(request("GET", bearer(actToken)))).toBe(true);
    expect(guard().mayAct(request("GET", bearer(readToken)))).toBe(false);
  });

  test("guesses: after ten wrong tokens in a minute each further one gets 429, but the right one works", async () => {
    const clock = new FakeClock();
    const one = guard(clock);
    const tries = (token: string) => one.check(request("GET", { ...own, ...bearer(token) }), "read");
    for (let count = 0; count < wrongTokensMax; count++) expect(tries(`wrong${count}`)?.status).toBe(401);
    const refused = tries("wrong");
    expect(refused?.status).toBe(429);
    expect(refused?.headers).toEqual({ "retry-after": "60" });
    expect(tries(readToken)).toBeNull();
    await clock.advance(59_000);
    expect(tries("wrong")?.status).toBe(429);
    await clock.advance(1000);
    expect(tries("wrong")?.status).toBe(401);
  });
});
