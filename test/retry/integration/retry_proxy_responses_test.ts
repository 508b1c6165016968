/** What a client of `serve` gets, by the response of the backend and by how it sends its request. */
import { describe, expect, test } from "bun:test";
import { connect, type Socket } from "node:net";
import { BatonError } from "../../../src/base/errors.ts";
import { HttpClient } from "../../../src/base/http/http_client.ts";
import { RetryHttpProxy } from "../../../src/retry/http_proxy/retry_http_proxy.ts";
import type { NewMessage } from "../../../src/retry/queue/stored_message.ts";
import { systemClock } from "../../../src/base/support/clock.ts";
import { type RawAnswer, RawBackend, rawResponse } from "../../support/raw_backend.ts";

interface Talk {
  /** Everything that the client got, as Latin-1. */
  readonly received: string;
  /** The connection was broken, not ended. */
  readonly isReset: boolean;
  readonly stored: readonly NewMessage[];
  readonly requests: readonly string[];
  readonly cuts: readonly string[];
  readonly failures: readonly string[];
}

const post = (path: string, more = "") =>
  `POST ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 5\r\n${more}\r\norder`;

/** Sends these bytes to a proxy in front of a backend with this answer, until the connection ends. */
async function talk(
  request: string,
  answer: RawAnswer | ((request: string) => RawAnswer),
  { halfClose = false, timeoutMs = 20_000, follow = false } = {},
): Promise<Talk> {
  await using backend = await new RawBackend(typeof answer === "function" ? answer : () => answer).up();
  using client = new HttpClient({ clock: systemClock(), env: {} });
  const [stored, cuts, failures]: [NewMessage[], string[], string[]] = [[], [], []];
  const accept = (_: unknown, messages: readonly NewMessage[]) => {
    stored.push(...messages);
    return Promise.resolve(messages.map((_, at) => ({ id: `store-${at + 1}`, life: { state: "waiting" } })));
  };
  const proxy = new RetryHttpProxy({
    ...{ client, follow, backend: { origin: backend.url, path: "/base" }, timeoutMs },
    store: { call: accept as never },
    ...{ rules: { retryOn: [], noRetryOn: [] }, bodyBytesMax: 1000, bodyTimeoutMs: 10_000, memoryBytes: 1 << 20 },
    ...{ callsMax: 10, connectionsMax: 10, storedStatus: null, clock: systemClock() },
    onStored: () => {},
    onFailure: (why) => void failures.push(why),
    onCut: (why) => void cuts.push(why),
  });
  const address = await proxy.listen({ kind: "tcp", host: "127.0.0.1", port: 0 });
  if (address.kind !== "tcp") throw new BatonError("INTERNAL", "no port");
  try {
    const { received, isReset } = await converse(
      connect({ port: address.port, host: address.host, allowHalfOpen: true }),
      request,
      halfClose,
    );
    return { received, isReset, stored, cuts, failures, requests: backend.received };
  } finally {
    await proxy.close(AbortSignal.abort());
  }
}

function converse(
  socket: Socket,
  request: string,
  halfClose: boolean,
): Promise<{ received: string; isReset: boolean }> {
  return new Promise((resolve) => {
    let received = "";
    let isReset = false;
    socket.on("data", (chunk) => received += chunk.toString("latin1"));
    socket.on("error", () => isReset = true);
    socket.on("end", () => socket.end());
    socket.on("close", () => resolve({ received, isReset }));
    socket.write(Buffer.from(request, "latin1"));
    if (halfClose) socket.end();
  });
}

const bodyOf = (received: string) => received.split("\r\n\r\n").slice(1).join("\r\n\r\n");
const header = (received: string, name: string) => new RegExp(`^${name}: (.*)\r$`, "im").exec(received)?.[1] ?? null;

describe("a response that is cut off", () => {
  const cuts = [
    ["after a part of its length", "hi", ["Content-Length: 100"]],
    ["before its first byte", "", ["Content-Length: 100"]],
    ["between two chunks", "2\r\nhi\r\n", ["Transfer-Encoding: chunked"]],
    ["by a bad chunk", "2\r\nhi\r\nzz\r\n", ["Transfer-Encoding: chunked"]],
  ] as const;

  test.each(cuts)(
    "%s with a temporary status: the message is stored, and the client has its id",
    async (_, body, headers) => {
      for (const status of [500, 503, 429]) {
        const { received, stored, cuts, failures } = await talk(post("/"), {
          parts: [rawResponse(status, body, headers)],
        });
        expect(received).toStartWith(`HTTP/1.1 ${status} `);
        expect(header(received, "baton-message-id")).toBe("store-1");
        expect(received).not.toContain("NOT STORED");
        expect([stored.length, cuts.length, failures]).toEqual([1, 1, []]);
      }
    },
  );

  test.each(cuts)(
    "%s with 200: it is accepted; the client gets what came and sees the cut",
    async (_, body, headers) => {
      const { received, stored, cuts, failures } = await talk(post("/"), { parts: [rawResponse(200, body, headers)] });
      expect(received).toStartWith("HTTP/1.1 200 OK\r\n");
      expect([stored.length, failures]).toEqual([0, []]);
      expect(cuts).toEqual([expect.stringContaining("the backend's response 200 was interrupted: ")]);
      if (header(received, "content-length") === null) expect(received).not.toContain("\r\n0\r\n");
      else expect(bodyOf(received)).toBe(body);
    },
  );

  test("later than the time limit: 200 is accepted, 503 is stored", async () => {
    for (const [status, count] of [[200, 0], [503, 1]] as const) {
      const answer = { parts: [rawResponse(status, "hi", ["Content-Length: 100"])], then: "open" } as const;
      const { received, stored, cuts } = await talk(post("/"), answer, { timeoutMs: 100 });
      expect([received.slice(9, 12), stored.length, bodyOf(received)]).toEqual([String(status), count, "hi"]);
      expect(cuts).toEqual([`the backend's response ${status} was interrupted: it did not end within 100 ms`]);
    }
  });

  test("for a client of HTTP/1.0, which cannot know the length: its connection breaks", async () => {
    const request = post("/").replace("HTTP/1.1", "HTTP/1.0");
    const answer = { parts: [rawResponse(200, "2\r\nhi\r\n", ["Transfer-Encoding: chunked"])] };
    expect(await talk(request, answer)).toMatchObject({ isReset: true });
  });
});

describe("a response is passed on unchanged", () => {
  test("encoded bytes stay encoded, repeated headers stay separate, and nothing asks for an encoding", async () => {
    const lines = ["Content-Encoding: gzip", "Set-Cookie: a=1", "Set-Cookie: b=2", "X-Latin: \xfc"];
    const { received, requests } = await talk(post("/"), { parts: [rawResponse(200, "no gzip", lines)] });
    for (const line of [...lines, "Content-Length: 7"]) expect(received).toContain(`\r\n${line}\r\n`);
    expect(bodyOf(received)).toBe("no gzip");
    expect(header(requests[0] ?? "", "accept-encoding")).toBeNull();
  });

  test("HEAD has the length of GET; 204 and 304 have no body", async () => {
    const headers = ["Content-Length: 1234"];
    const head = await talk("HEAD / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", {
      parts: [rawResponse(200, "", headers)],
    });
    expect([header(head.received, "content-length"), bodyOf(head.received)]).toEqual(["1234", ""]);
    for (const status of [204, 304]) {
      const { received, cuts } = await talk(post("/"), { parts: [rawResponse(status, "", headers)] });
      expect([received.slice(9, 12), bodyOf(received), cuts]).toEqual([String(status), "", []]);
    }
  });

  test("a status above 599 is passed on and not stored; a number that is none is 502", async () => {
    for (const [status, got] of [["999", "999"], ["600", "600"], ["099", "502"], ["2x0", "502"]] as const) {
      const { received, stored } = await talk(post("/"), { parts: [rawResponse(status, "hi")] });
      expect([status, received.slice(9, 12), stored.length]).toEqual([status, got, 0]);
    }
  });
});

test("the ID of a stored message replaces one that the backend has sent", async () => {
  const { received } = await talk(post("/"), { parts: [rawResponse(503, "", ["Baton-Message-Id: another"])] });
  expect(received.match(/^baton-message-id: .*$/gim)).toEqual(["baton-message-id: store-1"]);
});

describe("redirections", () => {
  const moved = (status: number) => (request: string) => ({
    parts: [/^\w+ \/new /.test(request) ? rawResponse(200, "there") : rawResponse(status, "", ["Location: /new"])],
  });

  test("307 and 308 of a message are followed; other ones are the client's, and so are all of a page", async () => {
    for (const status of [307, 308]) {
      const { received, requests } = await talk(post("/"), moved(status));
      expect([received.slice(9, 12), bodyOf(received), requests.length]).toEqual(["200", "there", 2]);
    }
    const page = await talk("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", moved(307));
    for (const { received, requests } of [page, await talk(post("/"), moved(302))]) {
      expect([received.slice(9, 11), header(received, "location"), requests.length]).toEqual(["30", "/new", 1]);
    }
    expect((await talk(post("/"), moved(302), { follow: true })).received.slice(9, 12)).toBe("200");
  });
});

describe("a request", () => {
  const ok = { parts: [rawResponse(200, "ok")] };

  test("reaches the backend with the path that was written, also in the absolute form", async () => {
    for (
      const [target, path] of [["/a\\b", "/a\\b"], ["http://any:99/a?b", "/a?b"], ["http://any", "/"], [
        "/x%2fy/{z}",
        "/x%2fy/{z}",
      ]] as const
    ) {
      const { requests } = await talk(post(target), ok);
      expect(requests[0]?.split(" ")[1]).toBe(path === "/" ? "/base" : `/base${path}`);
    }
    expect((await talk(post("/a/..\\../../x"), ok)).received).toStartWith("HTTP/1.1 400 ");
  });

  test("of a client that then closes its direction gets its response, also a late one", async () => {
    const { received, failures } = await talk(post("/"), ok, { halfClose: true });
    expect([received.slice(9, 12), bodyOf(received), failures]).toEqual(["200", "ok", []]);
    const late = await talk(post("/").replace("Connection: close\r\n", ""), { parts: [], then: "open" }, {
      halfClose: true,
      timeoutMs: 100,
    });
    expect([late.received.slice(9, 12), late.stored.length]).toEqual(["504", 1]);
  });

  test("for a tunnel, or with a transfer coding that would get lost, is refused in words", async () => {
    const tunnel = await talk("CONNECT other:443 HTTP/1.1\r\nHost: other\r\n\r\n", ok);
    expect([tunnel.received.slice(9, 12), bodyOf(tunnel.received)]).toEqual(["501", "There are no tunnels here\n"]);
    const coded = "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n";
    const { received, requests } = await talk(coded, ok);
    expect(received).toMatch(/^HTTP\/1\.1 400 .*transfer coding gzip, chunked cannot be forwarded.*NOT STORED/s);
    expect(requests).toEqual([]);
  });

  test("may wait for 100 Continue", async () => {
    const { received } = await talk(post("/", "Expect: 100-continue\r\n"), ok);
    expect(received).toMatch(/^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 200 OK\r\n/);
  });
});
