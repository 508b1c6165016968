/**
 * `baton retry-processor serve` when more comes than it can pass on: a backend that hangs, bodies that crawl, silent
 * connections.
 */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { readFileSync } from "node:fs";
import type { ServerResponse } from "node:http";
import net from "node:net";
import { verifyRetryStore } from "../../../src/retry/queue/sqlite/verify_retry_store.ts";
import { BatonSession } from "../../support/baton_session.ts";
import { eventually } from "../../support/eventually.ts";
import { HttpBackend } from "../../support/http_backend.ts";
import { RetryService } from "../../support/retry_service.ts";

setDefaultTimeout(60_000);

let session: BatonSession;
beforeAll(() => session = new BatonSession());
afterAll(() => session[Symbol.asyncDispose]());

/** A backend that answers nobody until `works`. */
class HangingBackend extends HttpBackend {
  readonly hanging: ServerResponse[] = [];
  works = false;

  constructor() {
    super((_, response) => {
      if (this.works) response.end("ok");
      else this.hanging.push(response);
    });
  }
}

/** A connection that a test writes itself. */
class RawCaller implements Disposable {
  readonly #socket: net.Socket;
  received = "";
  isClosed = false;

  constructor(url: string, text: string) {
    const { hostname, port } = new URL(url);
    this.#socket = net.connect(Number(port), hostname);
    this.#socket.on("data", (chunk) => this.received += chunk.toString());
    this.#socket.on("error", () => {});
    this.#socket.on("close", () => this.isClosed = true);
    this.#socket.write(text);
  }

  /** As much of `bytes` as the other side takes. */
  pour(bytes: number): void {
    const chunk = Buffer.alloc(1 << 20, "x");
    let left = bytes;
    const more = () => {
      while (left > 0) {
        left -= chunk.byteLength;
        if (!this.#socket.write(chunk)) return void this.#socket.once("drain", more);
      }
    };
    more();
  }

  [Symbol.dispose](): void {
    this.#socket.destroy();
  }
}

function unfinished(length: number, sent: string): string {
  return `POST /slow HTTP/1.1\r\nHost: a\r\nContent-Length: ${length}\r\n\r\n${sent}`;
}

async function told(response: Response): Promise<readonly unknown[]> {
  const { error, stored } = await response.json() as { error: string; stored: boolean };
  return [response.status, response.headers.has("baton-message-id"), error, stored];
}

test("requests above the limit are stored at once while a backend hangs, and delivered later", async () => {
  await using backend = await new HangingBackend().up();
  const service = await new RetryService(session).start(
    backend.url,
    "--max-backend-requests 4 --attempt-timeout 2s --max-retries 1000 -j 8 --metrics-listen 127.0.0.1:0",
  );
  const first = Array.from({ length: 4 }, (_, at) => service.post("/", `first ${at}`));
  await eventually(() => backend.hanging.length >= 4);
  // Of these none waits for the backend, which answers nobody.
  const rest = await Promise.all(Array.from({ length: 100 }, (_, at) => service.post("/", `rest ${at}`)));
  for (const answer of rest) expect(await told(answer)).toEqual([503, true, "overloaded", true]);
  const safe = await fetch(`${service.url}/`);
  expect([safe.headers.get("retry-after"), ...await told(safe)]).toEqual(["1", 503, false, "overloaded", false]);
  const page = /metrics are at ([^ \n]+)/.exec(service.running?.stderr() ?? "")?.[1];
  expect(await (await fetch(`http://${page}/metrics`)).text()).toContain("baton_retry_stored_untried_total 100");
  expect(service.running?.stderr()).toContain("was skipped: 4 requests are at the backend (--max-backend-requests)");
  backend.works = true;
  for (const answer of await Promise.all(first)) expect(await told(answer)).toEqual([504, true, "timed_out", true]);
  await eventually(async () => (await service.states())["done"] === 104, { withinMs: 30_000 });
  await service.stop();
});

test("a backend that hangs at the end: what is there is stored, and its callers hear so", async () => {
  await using backend = await new HangingBackend().up();
  const service = await new RetryService(session).start(backend.url, "--interval 10m --drain-timeout 300ms");
  const posts = Array.from({ length: 20 }, (_, at) => service.post("/", `body ${at}`));
  await eventually(() => backend.hanging.length === 20);
  using slow = new RawCaller(service.url, unfinished(100, "ab"));
  const ended = service.stop();
  for (const answer of await Promise.all(posts)) expect(await told(answer)).toEqual([504, true, "timed_out", true]);
  expect((await ended)?.code).toBe(0);
  await eventually(() => slow.isClosed);
  expect(slow.received).not.toContain("baton-message-id");
  expect(await service.states()).toEqual({ waiting: 20 });
  expect(verifyRetryStore(service.folder).problems).toEqual([]);
});

test("bodies that crawl hold nobody up, and are refused after --body-timeout", async () => {
  await using backend = await new HttpBackend().up();
  const service = await new RetryService(session).start(backend.url, "--body-timeout 3s");
  const slow = Array.from({ length: 400 }, () => new RawCaller(service.url, unfinished(100, "ab")));
  try {
    expect((await service.post("/", "x")).status).toBe(200);
    await eventually(() => slow.every(({ isClosed }) => isClosed), { withinMs: 20_000 });
    for (const { received } of slow) {
      expect(received).toMatch(
        /^HTTP\/1.1 408 [^]*"error":"late"[^]*within 3 s \(--body-timeout\); the message is NOT STORED/,
      );
    }
    expect(await service.states()).toEqual({});
  } finally {
    for (const one of slow) one[Symbol.dispose]();
  }
  await service.stop();
});

test("bodies share one memory: large ones that stop midway take no more of it, and short ones pass", async () => {
  await using backend = await new HttpBackend().up();
  const service = await new RetryService(session).start(backend.url, "--body-memory 64MiB");
  const large = Array.from({ length: 100 }, () => new RawCaller(service.url, unfinished(16 << 20, "")));
  try {
    for (const one of large) one.pour(15 << 20);
    const residentMiB = () => {
      const status = readFileSync(`/proc/${service.running?.child.pid}/status`, "utf8");
      return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) / 1024;
    };
    for (let at = 0; at < 50; at++) expect((await service.post("/", "x".repeat(1000))).status).toBe(200);
    // 1.5 GiB were offered.
    await eventually(() => residentMiB() > 100);
    expect(residentMiB()).toBeLessThan(500);
  } finally {
    for (const one of large) one[Symbol.dispose]();
  }
  expect((await service.post("/", "x".repeat(16 << 20))).status).toBe(200);
  await service.stop();
});

test("connections without a request keep nobody out", async () => {
  await using backend = await new HttpBackend().up();
  const service = await new RetryService(session).start(backend.url, "--max-connections 20");
  const silent = Array.from({ length: 60 }, (_, at) => new RawCaller(service.url, at % 2 === 0 ? "" : "POST / HTT"));
  try {
    await eventually(() => silent.filter(({ isClosed }) => isClosed).length >= 40);
    expect((await service.post("/", "x")).status).toBe(200);
  } finally {
    for (const one of silent) one[Symbol.dispose]();
  }
  await service.stop();
});

test("less memory than two bodies need is a mistake that is named where it stands", async () => {
  const flags = await session.run(`"$baton" retry-processor serve --url http://b/ --max-body 2MiB --body-memory 3MiB`);
  expect([flags.code, flags.stderr]).toEqual([
    64,
    expect.stringContaining('--body-memory: "3MiB" is less than twice --max-body (4MiB)'),
  ]);
});
