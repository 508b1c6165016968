import { expect, test } from "bun:test";
import { decideRedirection, describeHttpStatus } from "../../../../src/base/http/redirection.ts";

const body = new Uint8Array([1]);
const request = {
  origin: "https://backend",
  path: "/orders?x=1",
  method: "PUT",
  body,
  headers: [["Authorization", "s"], ["X-Api-Key", "k"], ["cookie", "c"], ["Private-Token", "t"], [
    "Content-Type",
    "text/xml",
  ], ["X-A", "b"]],
} as const;

const redirect = (
  status: number,
  location: string | null,
  { count = 0, from = request as Parameters<typeof decideRedirection>[1] } = {},
) =>
  decideRedirection({ status, headers: location === null ? [] : [["LOCATION", location]] }, from, {
    count,
    mayFollow: true,
  });

const followed = (...args: Parameters<typeof redirect>) => {
  const found = redirect(...args);
  if (found.kind !== "followed") throw new Error(`not followed: ${found.why}`);
  return found;
};

test("the same method and body go to the new place, which may be relative", () => {
  for (
    const [location, path] of [["/new", "/new"], ["new?y", "/new?y"], ["?z#no", "/orders?z"], [
      "//backend/a",
      "/a",
    ]] as const
  ) {
    for (const status of [301, 302, 307, 308]) {
      expect(followed(status, location)).toEqual({ kind: "followed", isSameHost: true, request: { ...request, path } });
    }
  }
});

test("another host, or another port, gets no credentials; a change to https of the same host keeps them", () => {
  for (const location of ["https://other/", "https://backend:8443/", "https://sub.backend/", "//other/x"]) {
    const { request: next, isSameHost } = followed(308, location);
    expect([isSameHost, next.headers]).toEqual([false, [["Content-Type", "text/xml"], ["X-A", "b"]]]);
  }
  const plain = { ...request, origin: "http://backend" };
  expect(followed(307, "https://backend/s", { from: plain })).toMatchObject({
    isSameHost: true,
    request: { headers: request.headers },
  });
});

test("303 is read by GET, without the body and what describes it", () => {
  const { request: next } = followed(303, "/result");
  expect([next.method, next.body.byteLength, next.headers.map(([name]) => name)]).toEqual([
    "GET",
    0,
    ["Authorization", "X-Api-Key", "cookie", "Private-Token", "X-A"],
  ]);
  expect(followed(303, "/result", { from: { ...request, method: "HEAD" } }).request.method).toBe("HEAD");
});

test("not followed: from https to http, more than five times, without a Location, to what is no URL", () => {
  const why = (...args: Parameters<typeof redirect>) => {
    const found = redirect(...args);
    return found.kind === "stays" ? found.why : "followed";
  };
  expect(why(308, "http://backend/")).toBe("it leads from https to http");
  expect([4, 5].map((count) => why(307, "/x", { count }))).toEqual(["followed", "it is redirection number 6"]);
  expect(why(307, null)).toBe("it has no Location");
  for (const location of ["ftp://x/", "javascript:1", "http://", "https://a b/"]) {
    expect([location, why(308, location)]).toEqual([location, "that is not the URL of a request"]);
  }
});

test("the reason has the Location, without control characters, and the option that would follow it", () => {
  const headers = [["Location", "https://new/\u001b[2J"]] as const;
  expect(decideRedirection({ status: 301, headers }, request, { count: 0, mayFollow: null })).toEqual({
    kind: "stays",
    why: "--retry-on or --no-retry-on names it",
  });
  const { kind, ...rest } = decideRedirection({ status: 301, headers }, request, { count: 0, mayFollow: false });
  expect(kind).toBe("stays");
  expect(describeHttpStatus({ status: 301, headers, ...rest })).toBe(
    "got status 301 with Location: https://new/\u{fffd}[2J, which is not followed: that needs --follow",
  );
  expect(describeHttpStatus({ status: 304, headers: [] })).toBe("got status 304");
  expect(describeHttpStatus({ status: 503, headers })).toBe("got status 503");
});

test("a Location keeps its bytes, in whatever encoding, and what a parser of URLs would change", () => {
  for (
    const location of [Buffer.from("/ü").toString("latin1"), `https://backend${Buffer.from("/ü").toString("latin1")}`]
  ) {
    expect(followed(308, location).request.path).toBe("/%C3%BC");
  }
  expect(followed(308, "/a\\b?\xfc#c").request.path).toBe("/a\\b?%FC");
  expect(followed(308, "/\\backend/x").request).toMatchObject({ origin: "https://backend", path: "/x" });
});

test("a reason shows the Location without a user and a password", () => {
  const shown = (location: string) => describeHttpStatus({ status: 301, headers: [["Location", location]] });
  expect(shown("https://me:secret@other/x?y")).toBe("got status 301 with Location: https://…@other/x?y");
  expect(shown("//me:secret@other/x")).toBe("got status 301 with Location: //…@other/x");
  expect(shown("/a?to=me@host")).toBe("got status 301 with Location: /a?to=me@host");
});
