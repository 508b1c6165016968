/** `baton retry-processor serve` in front of a backend that works, fails, hangs and comes back; and `run --url`. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { request } from "node:http";
import { verifyRetryStore } from "../../../src/retry/queue/sqlite/verify_retry_store.ts";
import { BatonSession } from "../../support/baton_session.ts";
import { eventually } from "../../support/eventually.ts";
import { HttpBackend } from "../../support/http_backend.ts";
import { QuietTime } from "../../support/quiet_time.ts";
import { RetryService } from "../../support/retry_service.ts";

setDefaultTimeout(60_000);

let session: BatonSession;
beforeAll(() => session = new BatonSession());
afterAll(() => session[Symbol.asyncDispose]());

let stores = 0;

describe("a backend that works", () => {
  test("gets method, path, headers and body, and its answer goes back as it is; nothing is stored", async () => {
    await using backend = await new HttpBackend((_, response) => {
      response.writeHead(201, { "x-answer": "yes", "set-cookie": ["a=1", "b=2"] });
      response.end("made");
    }).up();
    const service = await new RetryService(session).start(`${backend.url}/stock`);
    const response = await fetch(`${service.url}/a/b?c=d`, { method: "PUT", body: "hello", headers: { "x-own": "1" } });
    expect([response.status, await response.text(), response.headers.get("x-answer")]).toEqual([201, "made", "yes"]);
    expect(response.headers.getSetCookie()).toEqual(["a=1", "b=2"]);
    expect(response.headers.get("baton-message-id")).toBeNull();
    expect(backend.received).toMatchObject([{
      method: "PUT",
      url: "/stock/a/b?c=d",
      body: "hello",
      headers: { "x-own": "1" },
    }]);
    expect(backend.received[0]?.headers["idempotency-key"]).toMatch(/^[0-9a-f]{32}$/);
    const missing = backend.answer = (_, response) => void response.writeHead(404).end("no such thing");
    expect(missing).toBeFunction();
    expect((await service.post("/x", "y")).status).toBe(404);
    expect(await service.states()).toEqual({});
    expect(await service.stop()).toMatchObject({ code: 0 });
  });

  test("may answer with as much as it likes, and when that breaks off stderr says what did", async () => {
    const bytes = 32 << 20;
    await using backend = await new HttpBackend((_, response) => void response.end(Buffer.alloc(bytes))).up();
    const service = await new RetryService(session).start(backend.url);
    expect((await (await service.post("/x", "y")).arrayBuffer()).byteLength).toBe(bytes);
    backend.answer = (_, response) => {
      response.writeHead(200, { "content-length": 100 });
      response.write("half", () => response.destroy());
    };
    await service.post("/x", "y").then((answer) => answer.arrayBuffer()).catch(() => {});
    await eventually(() => service.running?.stderr().includes("the backend's response 200 was interrupted"));
    expect(service.running?.stderr()).not.toMatch(/MaxListeners|verbose: true/);
    await service.stop();
  });

  test("never gets a GET without the body that it came with: who asks is told", async () => {
    await using backend = await new HttpBackend().up();
    const service = await new RetryService(session).start(backend.url);
    const status = await new Promise<number | undefined>((resolve, reject) => {
      request(`${service.url}/search`, { method: "GET", headers: { "content-length": 2 } }, (answer) => {
        answer.resume();
        resolve(answer.statusCode);
      }).on("error", reject).end("{}");
    });
    expect([status, backend.received]).toEqual([400, []]);
    await service.stop();
  });
});

describe("the article's scenario", () => {
  test("the backend is down: a fault at once; it comes back: delivered, once, under the same key", async () => {
    const backend = await new HttpBackend().up();
    await backend.down();
    await using _ = backend;
    const service = await new RetryService(session).start(`${backend.url}/stock`, "--max-retries 100");
    const quiet = new QuietTime();
    const response = await service.post("/order", "<order/>", {
      "content-type": "text/xml",
      SOAPAction: '"urn:order"',
    });
    expect(quiet.ms).toBeLessThan(2000);
    expect([response.status, response.headers.get("content-type")]).toEqual([502, "text/xml; charset=utf-8"]);
    const id = response.headers.get("baton-message-id");
    expect(await response.text()).toContain(
      `the backend cannot be reached; the message is stored as ${id} and will be tried again</faultstring>`,
    );
    await eventually(async () => {
      const shown = await session.run(`"$baton" retry-processor show ${id} --json --store ${service.name}`);
      return JSON.parse(shown.stdout).tries >= 3;
    });
    await backend.up();
    await eventually(async () => (await service.states())["done"] === 1);
    expect(backend.received).toMatchObject([{
      method: "POST",
      url: "/stock/order",
      body: "<order/>",
      headers: { soapaction: '"urn:order"' },
    }]);
    await service.stop();
    expect(verifyRetryStore(service.folder).problems).toEqual([]);
  });

  test("it never comes back: dead after exactly 10 redeliveries", async () => {
    await using backend = await new HttpBackend((_, response) => void response.writeHead(500).end("broken")).up();
    const service = await new RetryService(session).start(backend.url, "--max-retries 10");
    const response = await service.post("/", "x");
    expect([response.status, await response.text()]).toEqual([500, "broken"]);
    expect(response.headers.get("baton-message-id")).not.toBeNull();
    await eventually(async () => (await service.states())["dead"] === 1, { withinMs: 20_000 });
    expect(backend.received.length).toBe(11);
    expect(new Set(backend.received.map(({ headers }) => headers["idempotency-key"])).size).toBe(1);
    const gaps = backend.received.slice(1).map(({ atMs }, at) => atMs - (backend.received[at]?.atMs ?? 0));
    for (const gap of gaps) expect(gap).toBeGreaterThanOrEqual(49);
    await service.stop();
  });
});

describe("a fault", () => {
  test("504 when the backend does not answer in time, and what it answers later changes nothing", async () => {
    const late: (() => void)[] = [];
    await using backend = await new HttpBackend((_, response, count) => {
      if (count === 1) late.push(() => response.end("late"));
      else response.end("ok");
    }).up();
    const service = await new RetryService(session).start(backend.url, "--attempt-timeout 200ms");
    const response = await service.post("/", "x");
    expect([response.status, await response.json()]).toMatchObject([504, { error: "timed_out", stored: true }]);
    late[0]?.();
    await eventually(async () => (await service.states())["done"] === 1);
    await service.stop();
  });

  test("503 and NOT STORED when the store is full; 413 over the limit; GET is not stored", async () => {
    const service = await new RetryService(session).start(
      "http://127.0.0.1:1/",
      "--interval 10m --max-messages 1 --max-body 1KiB",
    );
    expect((await service.post("/", "x")).status).toBe(502);
    const full = await service.post("/", "y");
    expect([full.status, full.headers.get("baton-message-id"), await full.json()]).toMatchObject([
      503,
      null,
      { error: "store_full", stored: false, id: null },
    ]);
    expect((await service.post("/", "z".repeat(2000))).status).toBe(413);
    const got = await fetch(`${service.url}/`);
    expect([got.status, await got.json()]).toMatchObject([502, { stored: false }]);
    expect(await service.states()).toEqual({ waiting: 1 });
    await service.stop();
  });

  test("Retry-After is kept", async () => {
    await using backend = await new HttpBackend((_, response, count) => {
      if (count === 1) response.writeHead(429, { "retry-after": "1" });
      response.end();
    }).up();
    const service = await new RetryService(session).start(backend.url);
    const response = await service.post("/", "x");
    expect([response.status, response.headers.get("retry-after")]).toEqual([429, "1"]);
    await eventually(() => backend.received.length === 2, { withinMs: 10_000 });
    expect((backend.received[1]?.atMs ?? 0) - (backend.received[0]?.atMs ?? 0)).toBeGreaterThanOrEqual(990);
    await service.stop();
  });
});

test("what was told to be stored is there after kill -9, and is delivered by the next", async () => {
  const backend = await new HttpBackend().up();
  await backend.down();
  await using _ = backend;
  const service = await new RetryService(session).start(backend.url, "--lease 2s --max-retries 1000");
  const ids: (string | null)[] = [];
  for (let at = 0; at < 20; at++) ids.push((await service.post("/", `body ${at}`)).headers.get("baton-message-id"));
  await service.stop("SIGKILL");
  expect(new Set(ids).size).toBe(20);
  await backend.up();
  await service.start(backend.url, "-j 8 --lease 2s --max-retries 1000");
  await eventually(async () => (await service.states())["done"] === 20, { withinMs: 20_000 });
  const bodies = new Set(backend.received.map(({ body }) => body));
  expect(bodies).toEqual(new Set(Array.from({ length: 20 }, (_, at) => `body ${at}`)));
  await service.stop();
  expect(verifyRetryStore(service.folder).problems).toEqual([]);
});

test("/metrics counts messages and tries", async () => {
  await using backend = await new HttpBackend((_, response) => void response.writeHead(503).end()).up();
  const options = "--metrics-listen 127.0.0.1:0 --max-retries 1 --interval 100ms";
  const service = await new RetryService(session).start(backend.url, options);
  const page = /metrics are at ([^ \n]+)/.exec(service.running?.stderr() ?? "")?.[1];
  expect((await fetch(`http://${page}/healthz`)).status).toBe(200);
  await service.post("/", "x");
  const text = await eventually(async () => {
    const read = await (await fetch(`http://${page}/metrics`)).text();
    return read.includes('baton_retry_messages{state="dead"} 1') ? read : null;
  });
  expect(text).toContain('baton_retry_tries_total{state="dead"} 1');
  await service.stop();
});

test.each(["POST", "PUT"])(
  "a connection that breaks is one try by %s, and no second one that nobody counts",
  async (method) => {
    await using backend = await new HttpBackend((_, response, count) => {
      if (count % 2 === 1) response.socket?.destroy();
      else response.end();
    }).up();
    const store = `--store store${++stores}`;
    await session.run(`seq 6 | "$baton" retry-processor submit ${store} --lines`);
    const run =
      `"$baton" retry-processor run ${store} --url ${backend.url} --method ${method} --interval 1ms --until-empty`;
    expect((await session.run(run)).code).toBe(0);
    const { messages } = JSON.parse((await session.run(`"$baton" retry-processor ls --json ${store}`)).stdout);
    expect(messages.reduce((sum: number, { tries }: { tries: number }) => sum + tries, 0)).toBe(
      backend.received.length,
    );
  },
);

test("run --url sends what was submitted, with the id for its key", async () => {
  await using backend = await new HttpBackend((_, response, count) =>
    void response.writeHead(count === 1 ? 500 : 200).end()
  ).up();
  const store = `--store store${++stores}`;
  const { stdout: id } = await session.run(`printf body | "$baton" retry-processor submit ${store}`);
  const ended = await session.run(
    `"$baton" retry-processor run ${store} --url ${backend.url}/in --header 'x-a: b' --interval 10ms --until-empty`,
  );
  expect(ended.code).toBe(0);
  expect(backend.received.length).toBe(2);
  for (const received of backend.received) {
    expect(received).toMatchObject({
      method: "POST",
      url: "/in",
      body: "body",
      headers: { "x-a": "b", "idempotency-key": id.trim() },
    });
  }
});

test("a unix socket belongs to one service: another is refused, and the next takes it after a kill -9", async () => {
  await using backend = await new HttpBackend((_, response) => void response.end("made")).up();
  const unix = session.path("serve.sock");
  const listen = `--listen unix:${unix}`;
  const post = async () => await (await fetch("http://localhost/x", { method: "POST", body: "y", unix })).text();
  const first = await new RetryService(session).start(backend.url, listen);
  const second = await session.run(
    `"$baton" retry-processor serve --url ${backend.url} ${listen} --store store${++stores}`,
  );
  expect([second.code, second.stderr]).toEqual([73, expect.stringContaining("another process already listens there")]);
  expect(await post()).toBe("made");
  await first.stop("SIGKILL");
  const next = await new RetryService(session).start(backend.url, listen);
  expect(await post()).toBe("made");
  await next.stop();
});

describe("mistakes are told in words", () => {
  const cases: readonly [words: string, code: number, says: string][] = [
    ["serve", 64, "serve needs --url"],
    ["serve --url backend:9000", 64, "use http: or https:"],
    ["serve --url http://b/ --listen nowhere", 64, 'Cannot listen on "nowhere"'],
    ["serve --url http://b/ --insecure --listen 192.0.2.1:80", 73, "Cannot listen at 192.0.2.1:80"],
    ["run --url 'not a url'", 64, '"not a url" is not a URL'],
    ["run --url http://b/ --header nonsense", 64, '"nonsense" is not a header'],
  ];
  for (const [words, code, says] of cases) {
    test(words, async () => {
      const ended = await session.run(`"$baton" retry-processor ${words} --store store${++stores}`);
      expect([ended.code, ended.stderr]).toEqual([code, expect.stringContaining(says)]);
    });
  }
});
