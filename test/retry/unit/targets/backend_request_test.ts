import { describe, expect, test } from "bun:test";
import { makeProxyFault } from "../../../../src/retry/http_proxy/fault_body.ts";
import {
  buildBackendRequest,
  forwardedHeaders,
  losesBody,
  parseBackend,
  parseHeaders,
  parseMethod,
} from "../../../../src/retry/targets/backend_request.ts";
import { parseRetryAfter } from "../../../../src/retry/targets/backend_request.ts";

const backend = parseBackend("http://backend:9000/stock");

describe("where a request goes", () => {
  test("what is no URL to send to is refused in words", () => {
    for (const url of ["backend:9000", "ftp://b/", "nonsense", "http://b/?q=1", "http://b/#x"]) {
      expect(() => parseBackend(url)).toThrow(`"${url}"`);
    }
    expect(() => parseHeaders(["no header"])).toThrow('"no…" is not a header');
    expect(() => parseHeaders(["X-Trace: a\nb"])).toThrow(
      '"X-Trace…" cannot be sent: a header must not have a newline',
    );
    expect(() => parseHeaders(["X-Trace: a\rb"])).toThrow("a header must not have a carriage return");
    expect(parseHeaders(["X-A: b", "c:d", "X-Tab: a\tü"])).toEqual([["X-A", "b"], ["c", "d"], ["X-Tab", "a\tü"]]);
    for (const url of ["http://b:0/", "http:///b", "http:b/x"]) {
      expect(() => parseBackend(url)).toThrow("has no host or no port");
    }
    expect(() => parseBackend("user:s3cret@b/")).toThrow('"…@b/" is not supported');
  });

  test("what would cost every message its tries, or its sense, is refused before any is touched", () => {
    expect(() => parseBackend("http://user:secret@b/")).toThrow("The URL of b must not have a user or a password");
    for (const name of ["Host", "Content-Length", "transfer-encoding", "Idempotency-Key"]) {
      expect(() => parseHeaders([`${name}: 5`])).toThrow(`${name} is set for each message`);
    }
    for (const value of ["日本", "a\u0001b", "\u007f"]) {
      expect(() => parseHeaders([`X: ${value}`])).toThrow("cannot be sent");
    }
    for (const method of ["POST", "PUT", "PATCH", "DELETE", "PROPFIND"]) expect(parseMethod(method)).toBe(method);
    for (const method of ["GET", "HEAD", "TRACE"]) expect(() => parseMethod(method)).toThrow("has no body");
    for (const method of ["post", "B D", "FOO"]) {
      expect(() => parseMethod(method)).toThrow(`${method} is not a known method`);
    }
  });

  test("a refused header is named, and its value, which may be a secret, is not printed", () => {
    const secret = "c2VjcmV0";
    for (
      const line of [
        `Proxy-Authorization: Basic ${secret}`,
        `Authorization Bearer ${secret}`,
        `Authorization=${secret}`,
        secret,
        `Host: ${secret}`,
        `X: ${secret}\u0001`,
        `X: a\n${secret}`,
        `X\u0000: ${secret}`,
        `Idempotency-Key: ${secret}`,
      ]
    ) {
      const told = () => {
        try {
          parseHeaders([line]);
        } catch (error) {
          return String(error);
        }
        return "not refused";
      };
      expect(told()).toMatch(/not a header|not allowed|cannot be sent/);
      expect(told()).not.toContain(secret);
    }
    expect(() => parseHeaders([`Proxy-Authorization: Basic ${secret}`])).toThrow(
      "The header Proxy-Authorization is not allowed",
    );
    expect(() => parseHeaders([`Authorization Bearer ${secret}`])).toThrow(
      '"Authorization…" is not a header: use Name:value',
    );
    expect(() => parseBackend(`http://u:${secret}@a b/`)).toThrow('"http://…@a b/" is not a URL');
  });

  test("a body that a method would leave behind is noticed, an empty one does not matter", () => {
    expect(losesBody("GET", new Uint8Array(1))).toBe(true);
    expect(losesBody("GET", new Uint8Array())).toBe(false);
    expect(losesBody("DELETE", new Uint8Array(1))).toBe(false);
  });
});

describe("headers", () => {
  test("of the connection stay with it, those that it names too", () => {
    const headers = [
      ["Host", "proxy"],
      ["Connection", "close, X-Trace"],
      ["X-Trace", "1"],
      ["X-Kept", "2"],
      ["Transfer-Encoding", "chunked"],
      ["Content-Encoding", "gzip"],
    ] as const;
    expect(forwardedHeaders(headers)).toEqual([["X-Kept", "2"], ["Content-Encoding", "gzip"]]);
  });

  test("a stored message brings its own, and the id is its key unless it has one", () => {
    const defaults = { backend, method: "PUT", headers: [["X-A", "default"], ["X-B", "default"]] } as const;
    const head = { kind: "http", method: "POST", path: "/x", headers: [["x-a", "own"]] } as const;
    expect(buildBackendRequest(head, "id-1", defaults)).toEqual({
      origin: "http://backend:9000",
      path: "/stock/x",
      method: "POST",
      headers: [["x-a", "own"], ["X-B", "default"], ["idempotency-key", "id-1"]],
    });
    const keyed = { ...head, headers: [["Idempotency-Key", "mine"]] as const };
    expect(buildBackendRequest(keyed, "id-1", { ...defaults, headers: [] })?.headers).toEqual([[
      "Idempotency-Key",
      "mine",
    ]]);
    const plain = { kind: "command", argv: null, cwd: null } as const;
    expect(buildBackendRequest(plain, "id-1", defaults)).toMatchObject({
      origin: "http://backend:9000",
      path: "/stock",
      method: "PUT",
    });
  });
});

test("Retry-After is a number of seconds or a date, and anything else is nothing", () => {
  const nowMs = Date.parse("2026-11-22T10:00:00Z");
  expect(parseRetryAfter("120", nowMs)).toBe(120_000);
  expect(parseRetryAfter("Sun, 22 Nov 2026 10:01:00 GMT", nowMs)).toBe(60_000);
  expect(parseRetryAfter("Sun, 22 Nov 2026 09:01:00 GMT", nowMs)).toBe(0);
  for (const text of [null, "", "soon", "-5", "1.5", "2026-11-22"]) {
    expect(parseRetryAfter(text, nowMs)).toBeNull();
  }
  for (const text of ["12345678901", "9".repeat(400)]) expect(parseRetryAfter(text, nowMs)).toBe(1e12);
});

describe("a fault", () => {
  test("says what is stored as what, or that nothing is", () => {
    const stored = makeProxyFault("unreachable", "the backend cannot be reached", { id: "s-1", isWaiting: true }, []);
    expect(stored).toMatchObject({ status: 502, contentType: "application/json" });
    expect(JSON.parse(stored.body)).toEqual({
      version: 1,
      error: "unreachable",
      message: "the backend cannot be reached; the message is stored as s-1 and will be tried again",
      stored: true,
      id: "s-1",
    });
    const full = makeProxyFault("store_full", "the store is full", null, []);
    expect([full.status, JSON.parse(full.body)]).toMatchObject([503, { stored: false, id: null }]);
    expect(full.body).toContain("NOT STORED");
    const dead = makeProxyFault("unreachable", "x", { id: "s-1", isWaiting: false }, []);
    expect(dead.body).toContain("s-1 and will not be tried again");
  });

  test("has the configured status for stored requests, and no fault where SOAP takes that status for success", () => {
    const stored = { id: "s-1", isWaiting: true };
    const accepted = makeProxyFault("unreachable", "x", stored, [], 202);
    expect([accepted.status, JSON.parse(accepted.body)]).toMatchObject([202, { stored: true, id: "s-1" }]);
    expect(makeProxyFault("unreachable", "x", stored, [["SOAPAction", ""]], 202)).toMatchObject({
      status: 202,
      body: "",
    });
    expect(makeProxyFault("unreachable", "x", stored, [["SOAPAction", ""]], 500).body).toContain("faultstring");
    expect(makeProxyFault("unreachable", "x", stored, [], 204)).toMatchObject({ status: 204, body: "" });
  });

  test("is a SOAP 1.1 fault for who speaks SOAP, with nothing in it that would not be XML", () => {
    const soap = makeProxyFault("timed_out", "a <b> & \u0001", { id: "s-1", isWaiting: true }, [[
      "SOAPAction",
      '"urn:x"',
    ]]);
    expect(soap).toMatchObject({ status: 504, contentType: "text/xml; charset=utf-8" });
    expect(soap.body).toContain(
      "<faultcode>soapenv:Server</faultcode><faultstring>a &lt;b&gt; &amp; ?; the message is stored",
    );
    expect(makeProxyFault("too_large", "x", null, [["soapaction", ""]]).body).toContain("soapenv:Client");
  });
});
