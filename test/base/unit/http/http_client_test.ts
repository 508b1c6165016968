/** The client, over node:http, against a server that answers with bytes. */
import { afterAll, describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import net, { type AddressInfo } from "node:net";
import { join } from "node:path";
import { createServer as createTlsServer } from "node:tls";
import { HttpClient, type HttpSendOptions } from "../../../../src/base/http/http_client.ts";
import type { HttpHeaders } from "../../../../src/base/http/http_headers.ts";
import type { ProxyEnvironment } from "../../../../src/base/http/proxy_choice.ts";
import { systemClock } from "../../../../src/base/support/clock.ts";
import { FakeClock } from "../../../support/fake_clock.ts";
import { RawBackend, rawResponse } from "../../../support/raw_backend.ts";

const client = new HttpClient({ clock: systemClock(), env: {} });
afterAll(() => client[Symbol.dispose]());

const fixture = (name: string) => readFileSync(join(import.meta.dir, `../../../fixtures/tls/${name}.pem`), "utf8");
const bytes = (text: string) => new TextEncoder().encode(text);

interface Sent extends Partial<HttpSendOptions> {
  readonly path?: string;
  readonly method?: string;
  readonly headers?: HttpHeaders;
  readonly body?: string;
  readonly by?: HttpClient;
}

async function send(
  origin: string,
  { path = "/", method = "POST", headers = [], body = "x", by = client, ...options }: Sent = {},
) {
  const request = { origin, path, method, headers, body: bytes(body) };
  const result = await by.send(request, { timeoutMs: 20_000, ...options });
  if (result.kind !== "responded") return { kind: result.kind, why: result.why };
  let text = "";
  let cut: string | null = null;
  try {
    for await (const chunk of result.body) text += Buffer.from(chunk).toString("latin1");
  } catch (error) {
    cut = (error as Error).message;
  }
  result.done();
  return { status: result.status, headers: result.headers, how: result.how, text, cut };
}

/** Sends one request to a server with this answer. */
async function answered(
  parts: string | readonly string[],
  sent: Sent & { readonly then?: "end" | "reset" | "open" } = {},
) {
  await using backend = await new RawBackend(() => ({ parts: [parts].flat(), then: sent.then ?? "end" })).up();
  return await send(backend.url, sent);
}

describe("a body that cannot be read comes after its status and headers", () => {
  const chunked = ["Transfer-Encoding: chunked"];
  test.each(
    [
      ["cut off", rawResponse(503, "hi", ["Content-Length: 100"]), "hi"],
      ["cut off before its first byte", rawResponse(503, "", ["Content-Length: 100"]), ""],
      ["cut off between chunks", rawResponse(503, "5\r\nhello\r\n", chunked), "hello"],
      ["cut off in a chunk", rawResponse(503, "9\r\nhello", chunked), "hello"],
      ["with a bad chunk", rawResponse(503, "5\r\nhello\r\nzz\r\nabc", chunked), "hello"],
    ] as const,
  )("%s", async (_, response, text) => {
    for (const then of ["end", "open"] as const) {
      if (then === "open" && !response.includes("zz")) continue;
      expect(await answered(response, { then })).toMatchObject({ status: 503, text, cut: expect.any(String) });
    }
  });

  test("late", async () => {
    const late = await answered(rawResponse(429, "hi", ["Content-Length: 100", "Retry-After: 7"]), {
      then: "open",
      timeoutMs: 100,
    });
    expect(late).toMatchObject({ status: 429, text: "hi", cut: "it did not end within 100 ms" });
    expect(late.headers).toContainEqual(["Retry-After", "7"]);
  });

  test("a head that cannot be read has its status at least", async () => {
    for (
      const line of [
        "no header line",
        "Content-Length: -1",
        "Content-Length: 1\r\nContent-Length: 2",
        `X: ${"a".repeat(300 << 10)}`,
      ]
    ) {
      const result = await answered(`HTTP/1.1 200 OK\r\n${line}\r\n\r\nx`);
      expect(result).toMatchObject({ status: 200, cut: expect.any(String) });
    }
  });

  test("a status that came in pieces is one, also after an interim response", async () => {
    for (
      const parts of [["HTTP/1.1 5", "03 Busy\r\nContent-Length: -1\r\n\r\n"], [
        "HTTP/1.1 100\r\n\r\nHTTP/1.1 503\r\n:\r\n\r\n",
      ]]
    ) {
      expect(await answered(parts)).toMatchObject({ status: 503, cut: expect.any(String) });
    }
  });

  test("a status that is not complete is none, and neither is 3xx without its head", async () => {
    for (const head of ["HTTP/1.1 2", "HTTP/1.1 404", "HTTP/1.1 307 Moved\r\nLocation: /a"]) {
      expect(await answered(head)).toEqual({ kind: "failed", why: "could not be sent: connection reset" });
    }
  });

  test("a body that ends with its connection is cut off when that is reset", async () => {
    expect(await answered("HTTP/1.1 200 OK\r\n\r\nhello", { then: "reset" })).toMatchObject({
      status: 200,
      cut: "connection reset",
    });
  });
});

describe("bodies and headers are what was sent", () => {
  test("nothing is unpacked, whatever Content-Encoding says", async () => {
    for (const encoding of ["gzip", "br", "deflate", "zstd", "nonsense"]) {
      const result = await answered(rawResponse(200, "plain !", [`Content-Encoding: ${encoding}`]));
      expect(result).toMatchObject({ status: 200, text: "plain !", cut: null });
      expect(result.headers).toContainEqual(["Content-Encoding", encoding]);
    }
  });

  test("repeated, long, many, and unusual headers, and lines that end without CR", async () => {
    const many = Array.from({ length: 3000 }, (_, at) => `X-${at}: a`);
    const lines = [
      "Set-Cookie: a",
      "set-cookie: b",
      "X: 1",
      "X: 2",
      "X-L: \xfc",
      `X-Long: ${"a".repeat(100_000)}`,
      "X-C: a\u0001b",
      ...many,
    ];
    const { headers } = await answered(rawResponse(200, "hi", lines));
    expect(headers?.filter(([name]) => !/^X-\d/.test(name)).map(([name, value]) => `${name}: ${value}`)).toEqual([
      ...lines.slice(0, 7),
      "Content-Length: 2",
    ]);
    expect(headers).toHaveLength(3008);
    expect(await answered("HTTP/1.1 200 OK\nX: a\nContent-Length: 2\n\nhi")).toMatchObject({
      status: 200,
      text: "hi",
      cut: null,
    });
  });

  test("what ends with its connection is a whole response; 204, 304 have no body; HEAD keeps its length", async () => {
    expect(await answered("HTTP/1.1 200 OK\r\n\r\nhello")).toMatchObject({ text: "hello", cut: null });
    expect(await answered("HTTP/1.0 200 OK\r\n\r\nhello")).toMatchObject({ text: "hello", cut: null });
    for (const status of [204, 304]) {
      expect(await answered(rawResponse(status, "", ["Content-Length: 22"]))).toMatchObject({
        status,
        text: "",
        cut: null,
      });
    }
    const head = await answered(rawResponse(200, "", ["Content-Length: 22"]), { method: "HEAD", body: "" });
    expect(head).toMatchObject({ text: "", cut: null, headers: [["Content-Length", "22"]] });
  });

  test("interim responses are not the response", async () => {
    const interim = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\n";
    expect(await answered([interim, rawResponse(200, "hi")])).toMatchObject({ status: 200, text: "hi", cut: null });
    expect(await answered("HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n")).toMatchObject({
      status: 101,
    });
  });

  test("a request has what it was given, its length, and nothing else", async () => {
    await using backend = await new RawBackend(() => ({ parts: [rawResponse(200)] })).up();
    await send(backend.url, {
      path: "/a\\b?\"'|\xfc",
      method: "PUT",
      headers: [["x-A", "\xfc"], ["X-a", "2"]],
      body: "hello",
    });
    await send(backend.url, { method: "DELETE", body: "", headers: [["User-Agent", "mine"]] });
    await send(backend.url, { method: "POST", body: "" });
    const host = backend.url.slice("http://".length);
    expect(backend.received).toEqual([
      `PUT /a\\b?"'|\xfc HTTP/1.1\r\nHost: ${host}\r\nx-A: \xfc\r\nX-a: 2\r\n` +
      "User-Agent: baton\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello",
      `DELETE / HTTP/1.1\r\nHost: ${host}\r\nUser-Agent: mine\r\nConnection: close\r\n\r\n`,
      `POST / HTTP/1.1\r\nHost: ${host}\r\nUser-Agent: baton\r\nContent-Length: 0\r\nConnection: close\r\n\r\n`,
    ]);
  });
});

describe("statuses", () => {
  test("are given as they are, also those that HTTP does not define", async () => {
    for (const status of ["000", "099", "600", "999"]) {
      expect(await answered(rawResponse(status, "hi"))).toMatchObject({ status: Number(status) });
    }
  });

  test("that are no numbers of three digits are malformed, and other protocols are no response", async () => {
    await using backend = await new RawBackend((request) => ({
      parts: [/ \/(.*) HTTP/.exec(request)?.[1] === "ssh" ? "SSH-2.0\r\n" : "HTTP/1.1 2x0 OK\r\n\r\n"],
    }))
      .up();
    const request = { origin: backend.url, method: "POST", headers: [], body: bytes("x") };
    expect(await client.send({ ...request, path: "/2x0" }, { timeoutMs: 20_000 })).toEqual({
      kind: "failed",
      why: 'got the status "2x0", which is no number of three digits',
      isMalformed: true,
    });
    expect(await client.send({ ...request, path: "/ssh" }, { timeoutMs: 20_000 })).toEqual({
      kind: "failed",
      why: "could not be sent: the response is not HTTP",
      isMalformed: false,
    });
  });
});

describe("no response", () => {
  test("a refused connection, a name that does not exist, a connection that breaks", async () => {
    const closed = await new RawBackend(() => ({ parts: [] })).up();
    await closed[Symbol.asyncDispose]();
    await using backend = await new RawBackend(() => ({ parts: [], then: "reset" })).up();
    expect(await send(closed.url)).toEqual({ kind: "failed", why: "could not be sent: connection refused" });
    expect(await send("http://no-such-host.invalid")).toEqual({
      kind: "failed",
      why: "could not be sent: no such host name",
    });
    expect(await send(backend.url)).toEqual({ kind: "failed", why: "could not be sent: connection reset" });
    expect(backend.received).toHaveLength(1);
  });

  test("the time limit is that of a clock, and a signal ends a request", async () => {
    await using backend = await new RawBackend(() => ({ parts: [], then: "open" })).up();
    const clock = new FakeClock();
    using slow = new HttpClient({ clock, env: {} });
    const sent = send(backend.url, { by: slow, timeoutMs: 3000 });
    clock.advance(3000);
    expect(await sent).toEqual({ kind: "timed_out", why: "got no response within 3 s" });
    using proxied = new HttpClient({ clock, env: { https_proxy: backend.url } });
    const tunnelled = send("https://backend.example", { by: proxied, timeoutMs: 3000 });
    clock.advance(3000);
    expect(await tunnelled).toEqual({
      kind: "timed_out",
      why: `got no response: through the proxy ${backend.url} (https_proxy): it did not end within 3 s`,
    });
    const stop = AbortSignal.abort(new Error("stopped"));
    expect(await send(backend.url, { signal: stop })).toEqual({ kind: "failed", why: "could not be sent: stopped" });
  });
});

describe("a connection that is used again", () => {
  test("serves further requests until it breaks: that is one failed request, and the next connects again", async () => {
    await using backend = await new RawBackend((_, count) => {
      return count === 3 ? { parts: [], then: "reset" } : { parts: [rawResponse(200, "ok")], then: "open" };
    }).up();
    const results = [];
    for (let at = 0; at < 4; at++) results.push(await send(backend.url, { mayReuse: true }));
    expect(results).toMatchObject([{ status: 200 }, { status: 200 }, { kind: "failed" }, { status: 200 }]);
    expect([backend.received.length, backend.connections]).toEqual([4, 2]);
    expect(backend.received[0]).toContain("Connection: keep-alive");
  });

  test("is not used again when its response was not read to its end", async () => {
    await using backend = await new RawBackend(() => ({
      parts: [rawResponse(200, "ok", ["Content-Length: 100000"])],
      then: "open",
    })).up();
    for (let at = 0; at < 2; at++) {
      const request = { origin: backend.url, path: "/", method: "POST", headers: [], body: bytes("x") };
      const result = await client.send(request, { timeoutMs: 20_000, mayReuse: true });
      if (result.kind === "responded") result.done();
    }
    expect(backend.connections).toBe(2);
  });
});

describe("redirections", () => {
  const mayFollow = (status: number) => status === 308;

  test("are followed with method, headers and body, up to five", async () => {
    await using backend = await new RawBackend((_, count) => ({
      parts: [count < 6 ? rawResponse(308, "", [`Location: /${count}`]) : rawResponse(200, "there")],
    })).up();
    expect(await send(backend.url, { mayFollow, body: "order", headers: [["X-A", "b"]] })).toMatchObject({
      status: 200,
      text: "there",
    });
    expect(backend.received.map((one) => one.split(" ")[1])).toEqual(["/", "/1", "/2", "/3", "/4", "/5"]);
    for (const one of backend.received) expect(one).toMatch(/^POST .*X-A: b\r\n.*order$/s);
    backend.received.length = 0;
    const endless = await answered(rawResponse(308, "", ["Location: /x"]), { mayFollow });
    expect(endless).toMatchObject({
      status: 308,
      how: "got status 308 with Location: /x, which is not followed: it is redirection number 6",
    });
  });

  test("a new place that cannot be reached is named", async () => {
    const result = await answered(rawResponse(308, "", ["Location: http://no-such-host.invalid/a"]), { mayFollow });
    expect(result).toEqual({
      kind: "failed",
      why: "could not be sent: redirected to http://no-such-host.invalid/a: no such host name",
    });
  });
});

describe("a proxy", () => {
  const through = (env: ProxyEnvironment) => new HttpClient({ clock: systemClock(), env });

  test("gets the whole address of an http request, and the password; a failure names it and its variable", async () => {
    await using proxy = await new RawBackend((_, count) => ({
      parts: [rawResponse([200, 503][count - 1] ?? 407, "ok")],
    }))
      .up();
    using by = through({ http_proxy: proxy.url.replace("//", "//me:s3cret@") });
    expect(await send("http://backend.example:81", { by, path: "/a" })).toMatchObject({ status: 200, text: "ok" });
    expect(proxy.received[0]).toStartWith("POST http://backend.example:81/a HTTP/1.1\r\nHost: backend.example:81\r\n");
    expect(proxy.received[0]).toContain(`\r\nProxy-Authorization: Basic ${btoa("me:s3cret")}\r\n`);
    expect(await send("http://backend.example", { by })).toMatchObject({
      how: `got status 503 through the proxy ${proxy.url} (http_proxy)`,
    });
    expect(await send("http://backend.example", { by })).toEqual({
      kind: "failed",
      why: `could not be sent: through the proxy ${proxy.url} (http_proxy): the request was refused: status 407`,
    });
    await proxy[Symbol.asyncDispose]();
    expect(await send("http://backend.example", { by })).toEqual({
      kind: "failed",
      why: `could not be sent: through the proxy ${proxy.url} (http_proxy): connection refused`,
    });
  });

  test("makes a tunnel for https; one that refuses it is named", async () => {
    await using proxy = await new RawBackend(() => ({
      parts: ["HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n"],
    })).up();
    using by = through({ HTTPS_PROXY: proxy.url });
    expect(await send("https://backend.example", { by })).toEqual({
      kind: "failed",
      why: `could not be sent: through the proxy ${proxy.url} (HTTPS_PROXY): ` +
        "the tunnel to backend.example:443 was refused: status 407",
    });
    expect(proxy.received[0]).toStartWith("CONNECT backend.example:443 HTTP/1.1\r\nHost: backend.example:443\r\n");
    await using silent = await new RawBackend(() => ({ parts: [], then: "reset" })).up();
    using bySilent = through({ HTTPS_PROXY: silent.url });
    expect(await send("https://backend.example", { by: bySilent })).toMatchObject({
      why: expect.stringContaining("(HTTPS_PROXY): the tunnel to backend.example:443 was not opened: connection reset"),
    });
  });

  test("is a tunnel for https: the request goes to the server of the certificate, hidden from the proxy", async () => {
    const [key, cert, ca] = ["server_key", "server", "ca"].map((name) => fixture(name));
    const server = createTlsServer({ key, cert }, (socket) => {
      socket.on("error", () => {});
      socket.once("data", (chunk) => socket.end(rawResponse(200, chunk.toString().split("\r\n\r\n")[1])));
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    let heads = "";
    const proxy = net.createServer((socket) => {
      socket.on("error", () => {});
      socket.once("data", (head) => {
        heads += head.toString();
        const onwards = net.connect((server.address() as AddressInfo).port, "127.0.0.1");
        onwards.on("error", () => {});
        socket.write("HTTP/1.1 200 Connection established\r\n\r\n");
        socket.pipe(onwards).pipe(socket);
      });
    });
    await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
    try {
      const env = { https_proxy: `http://me:s3cret@127.0.0.1:${(proxy.address() as AddressInfo).port}` };
      using by = new HttpClient({ clock: systemClock(), env, tls: () => ({ ca: ca ?? "" }) });
      expect(await send("https://keeper.example", { by, body: "order" })).toMatchObject({ status: 200, text: "order" });
      expect(heads).toBe(
        "CONNECT keeper.example:443 HTTP/1.1\r\nHost: keeper.example:443\r\nUser-Agent: baton\r\n" +
          `Proxy-Authorization: Basic ${btoa("me:s3cret")}\r\nConnection: close\r\n\r\n`,
      );
      const other = await send("https://backend.example", { by });
      expect(other).toMatchObject({
        kind: "failed",
        why: expect.stringMatching(/through the proxy .*: the certificate is refused: /),
      });
    } finally {
      server.close();
      proxy.close();
    }
  });
});

const noBody: AsyncIterable<Uint8Array> = {
  [Symbol.asyncIterator]: () => ({ next: () => Promise.resolve({ done: true, value: undefined }) }),
};

test("another host to which a redirection leads gets no client certificate, nor does one after it", async () => {
  const seen: string[] = [];
  using by = new HttpClient({
    clock: systemClock(),
    env: {},
    exchange: ({ origin }, { isSameHost }) => {
      seen.push(`${origin} ${isSameHost}`);
      const location = [["Location", ["http://a:1/x", "https://b/", "https://a:1/"][seen.length - 1] ?? ""]] as const;
      return Promise.resolve({
        status: seen.length === 4 ? 200 : 307,
        headers: location,
        proxy: null,
        body: noBody,
        abandon: () => {},
      });
    },
  });
  await by.send({ origin: "http://a:1", path: "/", method: "POST", headers: [], body: bytes("x") }, {
    timeoutMs: 1000,
    mayFollow: (status) => status === 307,
  });
  expect(seen).toEqual(["http://a:1 true", "http://a:1 true", "https://b false", "https://a:1 false"]);
});
