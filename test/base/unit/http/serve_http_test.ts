/** The HTTP listener: its limits, keep-alive, bodies, streams and its end, with and without TLS. */
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { join } from "node:path";
import { HttpError } from "../../../../src/base/http/http_error.ts";
import type { HttpResponseStream } from "../../../../src/base/http/response_stream.ts";
import {
  type HttpRequest,
  type HttpService,
  type HttpServiceOptions,
  serveHttp,
} from "../../../../src/base/http/serve_http.ts";
import { type Address, formatAddress } from "../../../../src/base/sockets/connection.ts";
import { eventually } from "../../../support/eventually.ts";
import { FakeClock } from "../../../support/fake_clock.ts";

const loopback: Address = { kind: "tcp", host: "127.0.0.1", port: 0 };
const serve = (handle: HttpServiceOptions["handle"], options: Partial<HttpServiceOptions> = {}) =>
  serveHttp(loopback, { handle, ...options });
const urlOf = ({ address }: HttpService, path = "/") => `http://${formatAddress(address)}${path}`;
const hello = () => ({ status: 200, body: "hello" });
const get = (path = "/") => `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`;

class RawClient {
  readonly socket: Socket;
  text = "";
  isClosed = false;

  private constructor(socket: Socket) {
    this.socket = socket;
    socket.on("error", () => {}).on("data", (chunk) => this.text += chunk.toString("latin1"));
    for (const end of ["end", "close"]) socket.on(end, () => this.isClosed = true);
  }

  static open({ address }: HttpService, text = ""): Promise<RawClient> {
    const port = address.kind === "tcp" ? address.port : 0;
    return new Promise((resolve) => {
      const socket = connect({ port, host: "127.0.0.1" }, () => {
        if (text !== "") socket.write(text);
        resolve(client);
      });
      const client = new RawClient(socket);
    });
  }

  get responses(): number {
    return this.text.split("HTTP/1.1 ").length - 1;
  }

  async ended(): Promise<string> {
    await eventually(() => this.isClosed);
    return this.text;
  }
}

test("passes the request on, and the response back", async () => {
  let seen: HttpRequest | null = null;
  await using service = await serve(async (request) => {
    seen = request;
    const body = Buffer.from(await request.readBody()).toString();
    return { status: 201, headers: { "content-type": "application/json", "x-made": "1" }, body: `{"got":"${body}"}` };
  });
  const response = await fetch(urlOf(service, "/a%20b?x=1&y="), {
    method: "POST",
    body: "text",
    headers: { "X-A": "b" },
  });
  expect([response.status, await response.text()]).toEqual([201, '{"got":"text"}']);
  expect(["content-type", "x-made", "cache-control"].map((name) => response.headers.get(name)))
    .toEqual(["application/json", "1", "no-store"]);
  const { method, path, query, headers } = seen as unknown as HttpRequest;
  expect([method, path, [...query], headers["x-a"]]).toEqual(["POST", "/a%20b", [["x", "1"], ["y", ""]], "b"]);
});

test("a connection is kept for further requests, in their order", async () => {
  const first = Promise.withResolvers<void>();
  await using service = await serve(async ({ path }) => {
    if (path === "/slow") await first.promise;
    return { status: 200, body: path };
  });
  const client = await RawClient.open(service, get("/slow") + get("/2"));
  client.socket.write("HEAD /3 HTTP/1.1\r\nHost: x\r\n\r\n");
  first.resolve();
  await eventually(() => client.responses === 3);
  expect(client.text.match(/\/slow|\/2|content-length: \d+/gi)).toEqual([
    "content-length: 5",
    "/slow",
    "content-length: 2",
    "/2",
    "content-length: 2",
  ]);
  client.socket.write(get("/4"));
  await eventually(() => client.text.endsWith("/4"));
  expect(client.isClosed).toBe(false);
  client.socket.destroy();
});

test("a head and the next head have their time", async () => {
  const clock = new FakeClock();
  await using service = await serve(hello, { clock, limits: { headMsMax: 5000, idleMsMax: 60_000 } });
  const silent = await RawClient.open(service);
  const half = await RawClient.open(service, "GET / HTTP/1.1\r\nHost: x\r\n");
  const whole = await RawClient.open(service, get());
  await eventually(() => whole.text.endsWith("hello") && clock.timers === 3);
  await clock.advance(4999);
  expect([silent, half, whole].map(({ isClosed }) => isClosed)).toEqual([false, false, false]);
  await clock.advance(1);
  await Promise.all([silent.ended(), half.ended()]);
  whole.socket.write("GET / HTTP/1.1\r\n"); // half a head does not extend the time
  await clock.advance(54_998);
  expect(whole.isClosed).toBe(false);
  await clock.advance(2);
  await whole.ended();
  expect(clock.timers).toBe(0);
});

test("bytes that are no request, and ambiguous lengths, are refused and end the connection", async () => {
  await using service = await serve(async (request) => ({ status: 200, body: await request.readBody() }));
  const post = (headers: string, body: string) => `POST / HTTP/1.1\r\nHost: x\r\n${headers}\r\n\r\n${body}`;
  const cases: [text: string, status: string][] = [
    ["hello\r\n\r\n", "400"],
    ["GET / HTTP/1.1\r\n\r\n", "400"],
    ["GET / HTTP/1.1\r\nHost : x\r\n\r\n", "400"],
    [post("Content-Length: 3\r\nTransfer-Encoding: chunked", "0\r\n\r\n"), "400"],
    [post("Content-Length: 3\r\nContent-Length: 4", "abcd"), "400"],
    [`GET / HTTP/1.1\r\nHost: x\r\nX: ${"x".repeat(20_000)}\r\n\r\n`, "431"],
  ];
  for (const [text, status] of cases) {
    const client = await RawClient.open(service, text);
    expect([text.slice(0, 60), (await client.ended()).slice(9, 12)]).toEqual([text.slice(0, 60), status]);
  }
  const proxied = await RawClient.open(service, get("http://other/"));
  await eventually(() => proxied.text.includes("400 Bad Request"));
  proxied.socket.destroy();
});

test("a body is read up to its limit and within its time; one that was not read ends the connection", async () => {
  const clock = new FakeClock();
  await using service = await serve(async (request) => {
    if (request.path === "/unread") return { status: 200, body: "done" };
    return { status: 200, body: `${(await request.readBody()).byteLength}` };
  }, { clock, limits: { bodyBytesMax: 100, bodyMsMax: 5000 } });
  const post = (path: string, length: number, body: string) =>
    RawClient.open(service, `POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Length: ${length}\r\n\r\n${body}`);
  const chunked = "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
  const good = await RawClient.open(service, `${chunked}64\r\n${"x".repeat(100)}\r\n0\r\n\r\n`);
  await eventually(() => good.text.endsWith("\r\n\r\n100"));
  good.socket.destroy();
  const announced = await post("/", 101, "x");
  expect(await announced.ended()).toMatch(/^HTTP\/1\.1 413 [^]*longer than 100 bytes\n$/);
  const streamed = await RawClient.open(service, `${chunked}65\r\n${"x".repeat(101)}\r\n`);
  expect(await streamed.ended()).toMatch(/^HTTP\/1\.1 413 /);
  expect(await (await post("/unread", 50, "x")).ended()).toMatch(/^HTTP\/1\.1 200 [^]*done$/);
  const late = await post("/", 50, "x");
  await eventually(() => clock.timers === 2); // of the handler and of the body
  await clock.advance(5000);
  expect(await late.ended()).toMatch(/^HTTP\/1\.1 408 [^]*did not arrive within 5 s\n$/);
});

test("a failure of the handler is a response, and so is a handler that takes too long", async () => {
  const clock = new FakeClock();
  await using service = await serve(({ path }) => {
    if (path === "/refused") throw new HttpError(421, "another host");
    if (path === "/broken") throw new Error("broken");
    return new Promise(() => {});
  }, { clock, limits: { handleMsMax: 10_000 } });
  const ask = async (path: string) => {
    const response = await fetch(urlOf(service, path));
    return [response.status, await response.text()] as const;
  };
  expect(await ask("/refused")).toEqual([421, "another host\n"]);
  expect(await ask("/broken")).toEqual([500, "broken\n"]);
  const hangs = await RawClient.open(service, get("/hangs"));
  await eventually(() => clock.timers > 0);
  await clock.advance(10_000);
  await eventually(() => hangs.text.includes("there was no response within 10 s"));
  hangs.socket.destroy();
});

test("a connection above the limit replaces the one that is idle for longest, never one with a request", async () => {
  const release = Promise.withResolvers<void>();
  await using service = await serve(async ({ path }) => {
    if (path === "/busy") await release.promise;
    return { status: 200, body: path };
  }, { limits: { connectionsMax: 2 } });
  const busy = await RawClient.open(service, get("/busy"));
  const idle = await RawClient.open(service, get("/idle"));
  await eventually(() => idle.text.endsWith("/idle"));
  const next = await RawClient.open(service, get("/next"));
  await eventually(() => next.text.endsWith("/next"));
  await idle.ended();
  release.resolve();
  await eventually(() => busy.text.endsWith("/busy"));
  busy.socket.destroy();
  next.socket.destroy();
});

test("more than 16 requests of one connection at the same time end it", async () => {
  let requests = 0;
  await using service = await serve(() => (requests++, new Promise(() => {})));
  const client = await RawClient.open(service, get().repeat(40));
  await client.ended();
  expect(requests).toBeLessThanOrEqual(16);
});

test("a stream sends each event as it is written, and ends with its client", async () => {
  const stream = Promise.withResolvers<HttpResponseStream>();
  const ended = Promise.withResolvers<string>();
  const failures: unknown[] = [];
  await using service = await serve(() => ({
    status: 200,
    headers: { "content-type": "text/event-stream" },
    async body(made) {
      stream.resolve(made);
      await new Promise<void>((resolve) => made.signal.addEventListener("abort", () => resolve()));
      ended.resolve(made.signal.reason.message);
      await made.write("data: late\n\n");
    },
  }), { onFailure: (error) => void failures.push(error) });
  const client = await RawClient.open(service, get());
  const made = await stream.promise;
  await made.write("data: 1\n\n");
  await eventually(() => client.text.includes("data: 1\n\n"));
  await made.write("data: 2\n\n");
  await eventually(() => client.text.includes("data: 2\n\n"));
  client.socket.destroy();
  expect(await ended.promise).toBe("the client closed the connection");
  expect(failures).toEqual([]);
  const head = await RawClient.open(service, "HEAD / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  expect(await head.ended()).toMatch(/^HTTP\/1\.1 200 OK\r\n[^]*text\/event-stream[^]*\r\n\r\n$/i);
});

test("a stream waits for a client that reads slowly, and gives up on one that does not read", async () => {
  const clock = new FakeClock();
  const result = Promise.withResolvers<string>();
  let written = 0;
  let isWaiting = false;
  await using service = await serve(() => ({
    status: 200,
    async body(stream) {
      const piece = new Uint8Array(64 << 10);
      try {
        for (;;) {
          const write = stream.write(piece);
          isWaiting = stream.unsentBytes > 0;
          await write;
          written += piece.byteLength;
        }
      } catch (error) {
        result.resolve((error as Error).message);
        throw error;
      }
    },
  }), { clock });
  const client = await RawClient.open(service, get());
  client.socket.pause();
  let before = -1;
  await eventually(() => {
    const isStill = isWaiting && before === written;
    before = written;
    return isStill;
  });
  const stopped = written;
  client.socket.resume();
  await eventually(() => written > stopped + (1 << 20));
  client.socket.pause();
  await eventually(() => {
    const isStill = isWaiting && before === written;
    before = written;
    return isStill;
  });
  await clock.advance(5000);
  expect(await result.promise).toBe("the client reads too slowly: it has read nothing for 5 s");
  client.socket.destroy();
});

test("a stream that does not wait for its client ends at the limit of unsent bytes", async () => {
  const result = Promise.withResolvers<string>();
  await using service = await serve(() => ({
    status: 200,
    async body(stream) {
      const piece = new Uint8Array(64 << 10);
      while (!stream.signal.aborted) {
        stream.write(piece).catch(() => {});
        await new Promise((resolve) => setImmediate(resolve));
      }
      result.resolve(stream.signal.reason.message);
    },
  }));
  const client = await RawClient.open(service, get());
  client.socket.pause();
  expect(await result.promise).toBe("the client reads too slowly: more than 1048576 bytes are unsent");
  client.socket.destroy();
});

test("the end completes streams and responses in progress, and closes idle connections", async () => {
  const release = Promise.withResolvers<void>();
  const streaming = Promise.withResolvers<void>();
  const service = await serve(async ({ path }) => {
    if (path === "/idle") return { status: 200, body: path };
    if (path === "/busy") {
      await release.promise;
      return { status: 200, body: "x".repeat(3_000_000) };
    }
    return {
      status: 200,
      async body(stream) {
        await stream.write("data: 1\n\n");
        streaming.resolve();
        await new Promise((_, reject) => stream.signal.addEventListener("abort", () => reject(stream.signal.reason)));
      },
    };
  });
  const [idle, busy, stream] = await Promise.all(
    ["/idle", "/busy", "/s"].map((path) => RawClient.open(service, get(path))),
  );
  if (!idle || !busy || !stream) throw new Error("three were opened");
  await streaming.promise;
  await eventually(() => idle.text.endsWith("/idle"));
  const closed = service.close();
  release.resolve();
  await closed;
  expect(await stream.ended()).toMatch(/data: 1\n\n\r\n0\r\n\r\n$/);
  expect(await busy.ended()).toMatch(/connection: close\r\n[^]*x{3000000}$/i);
  await idle.ended();
  const refused = await fetch(urlOf(service)).then(() => "served", () => "refused");
  expect(refused).toBe("refused");
});

test("the end does not wait for a handler that hangs", async () => {
  const clock = new FakeClock();
  const service = await serve(() => new Promise(() => {}), { clock });
  const client = await RawClient.open(service, get());
  await eventually(() => clock.timers > 0);
  const closed = service.close();
  await clock.advance(1000);
  await closed;
  await client.ended();
});

test("TLS: the same pages; what is no handshake is closed", async () => {
  const pem = (name: string) => readFileSync(join(import.meta.dir, "../../../fixtures/tls", name), "utf8");
  await using service = await serve(({ path }) => ({ status: 200, body: path.repeat(100_000) }), {
    tls: { cert: pem("server.pem"), key: pem("server_key.pem") },
  });
  const port = service.address.kind === "tcp" ? service.address.port : 0;
  const text = await (await fetch(`https://localhost:${port}/ab`, { tls: { ca: pem("ca.pem") } })).text();
  expect(text).toBe("/ab".repeat(100_000));
  const plain = await RawClient.open(service, get());
  await plain.ended();
  expect(plain.text).not.toContain("200");
});
