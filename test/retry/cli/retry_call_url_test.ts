/**
 * `baton retry-processor call --url`, and `serve --answer-stored`: what a client is told, what is stored, what the
 * backend gets.
 */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { BatonSession } from "../../support/baton_session.ts";
import { eventually } from "../../support/eventually.ts";
import { HttpBackend } from "../../support/http_backend.ts";
import { RetryService } from "../../support/retry_service.ts";
import { RetryShell } from "../../support/retry_shell.ts";

setDefaultTimeout(60_000);

let session: BatonSession;
beforeAll(() => session = new BatonSession());
afterAll(() => session[Symbol.asyncDispose]());

const states = async (store: RetryShell) => {
  const { states } = await store.json("stats") as { states: Record<string, { count: number }> };
  return Object.fromEntries(Object.entries(states).flatMap(([name, { count }]) => count > 0 ? [[name, count]] : []));
};

test("a request that succeeds: its response on stdout, unchanged, and nothing is stored", async () => {
  const store = new RetryShell(session);
  await using backend = await new HttpBackend((_, response) => void response.writeHead(201).end("a\0b")).up();
  const ended = await store.run(`printf 'order' | @retry call --url '${backend.url}/stock?x=1' -H 'x-a: b'`);
  expect(ended).toMatchObject({ code: 0, stdout: "a\0b", stderr: "" });
  expect(backend.received).toMatchObject([{
    method: "POST",
    url: "/stock?x=1",
    body: "order",
    headers: { "x-a": "b", "user-agent": "baton" },
  }]);
  expect(await states(store)).toEqual({});
  await store.run(`@retry call --url '${backend.url}/' -H 'User-Agent: mine' </dev/null`);
  expect(backend.received[1]?.headers["user-agent"]).toBe("mine");
});

test("one that fails is stored with all that it is, and run sends it to its own URL under the same key", async () => {
  const store = new RetryShell(session);
  await using backend = await new HttpBackend((_, response, count) => {
    response.writeHead(count === 1 ? 503 : 200).end(count === 1 ? "busy" : "ok");
  }).up();
  const words = `--url '${backend.url}/stock/7?x=1' --method PUT --header 'x-a: b' --interval 1ms`;
  const ended = await store.run(`printf 'order' | @retry call ${words}`);
  expect(ended).toMatchObject({ code: 75, stdout: "" });
  expect(ended.stderr).toMatch(
    /^baton: PUT http:\S+\/stock\/7 got status 503; stored in "store\d+" as \w{8}-1, next try in/,
  );
  expect(await store.json("show 1")).toMatchObject({
    request: { method: "PUT", origin: backend.url, path: "/stock/7?x=1" },
  });
  expect((await store.run("@retry run --until-empty")).code).toBe(0);
  const [first, second] = backend.received;
  expect(second).toMatchObject({ method: "PUT", url: "/stock/7?x=1", body: "order", headers: { "x-a": "b" } });
  expect(second?.headers["idempotency-key"]).toBe(first?.headers["idempotency-key"] ?? "none");
  expect(await states(store)).toEqual({ done: 1 });
});

test("without a backend a request is stored; run --url sends it elsewhere, beside commands of the store", async () => {
  const store = new RetryShell(session);
  await using backend = await new HttpBackend().up();
  await backend.down();
  expect((await store.run(`echo a | @retry call --interval 1ms --url ${backend.url}/old`)).code).toBe(75);
  expect((await store.run("@retry call --no-stdin --interval 1ms -- sh -c '[ -e there ]'")).code).toBe(75);
  await using other = await new HttpBackend().up();
  await store.run(`@retry cancel 2; @retry run --url ${other.url}/new --once`);
  expect(other.received).toMatchObject([{ method: "POST", url: "/new/old", body: "a\n" }]);
  await backend.up();
  await store.run(`touch there; echo b | @retry submit -- sh -c cat; echo c | @retry call --url ${backend.url}/old`);
  expect(await store.run("@retry run --until-empty")).toMatchObject({ code: 0, stdout: "b\n" });
});

test("a final status makes a dead letter; the response is printed, and the exit code names the cause", async () => {
  const store = new RetryShell(session);
  await using backend = await new HttpBackend(({ url }, response) => {
    response.writeHead(Number(url.slice(1))).end("because");
  }).up();
  for (const [status, code] of [[404, 65], [422, 65], [401, 77], [403, 77]] as const) {
    const ended = await store.run(`echo a | @retry call --url ${backend.url}/${status}`);
    expect([status, ended.code, ended.stdout]).toEqual([status, code, "because"]);
    expect(ended.stderr).toContain(`got status ${status}; dead letter in "${store.name}" as`);
  }
  expect((await store.run(`echo a | @retry call --retry-on 404 --url ${backend.url}/404`)).code).toBe(75);
  expect(await states(store)).toEqual({ dead: 4, waiting: 1 });
});

test("Ctrl-C while the backend does not answer: nothing is stored; SIGTERM: it is", async () => {
  for (const [signal, expected] of [["SIGINT", {}], ["SIGTERM", { waiting: 1 }]] as const) {
    const store = new RetryShell(session);
    await store.run("@retry pause");
    await using backend = await new HttpBackend(() => {}).up();
    const running = store.start(`exec @retry call --no-stdin --url ${backend.url}/`);
    await eventually(() => backend.received.length === 1);
    running.child.kill(signal);
    const ended = await running.ended;
    expect([ended.signal, ended.code]).toEqual(signal === "SIGINT" ? ["SIGINT", null] : [null, 75]);
    expect(await states(store)).toEqual(expected);
  }
});

test("mistakes", async () => {
  const store = new RetryShell(session);
  for (
    const [words, says] of [
      ["--url http://x/ -- true", 'use only one of --url and a command ("true")'],
      ["--url x", '"x" is not a URL'],
      ["--url http://a:b@x/", "must not have a user or a password"],
      ["--url http://x/#a", "must not have a fragment"],
      ["--url http://x/ --method GET", "GET has no body"],
      ["--method PUT -- true", "call: --method needs --url"],
      ["http://x/hook", 'call: "http://x/hook" is a URL: write --url http://x/hook'],
      ["-- https://x/", "is a URL: write --url https://x/"],
      ["", "missing command; use it as in: baton retry-processor call ./send.sh <body, or: call --url"],
    ] as const
  ) {
    const ended = await store.run(`@retry call ${words} </dev/null`);
    expect([words, ended.code, ended.stderr]).toEqual([words, 64, expect.stringContaining(says)]);
  }
});

test("serve --answer-stored: this status for what is tried again, and only for that", async () => {
  const statuses: Record<string, number> = { "/busy": 503, "/wrong": 404, "/fine": 200 };
  await using backend = await new HttpBackend(({ url }, response) => {
    response.writeHead(statuses[url] ?? 500).end("said");
  }).up();
  const service = await new RetryService(session).start(backend.url, "--answer-stored 202 --max-retries 1000");
  const busy = await service.post("/busy", "x");
  const id = busy.headers.get("baton-message-id");
  expect([busy.status, await busy.json()]).toMatchObject([202, { stored: true, id, error: "backend_failed" }]);
  const soap = await service.post("/busy", "<x/>", { SOAPAction: "urn:x" });
  expect([soap.status, await soap.text()]).toEqual([202, ""]);
  for (const path of ["/wrong", "/fine"]) {
    const response = await service.post(path, "x");
    expect([path, response.status, await response.text()]).toEqual([path, statuses[path] ?? 0, "said"]);
  }
  const read = await fetch(`${service.url}/busy`);
  expect([read.status, read.headers.get("baton-message-id")]).toEqual([503, null]);
  await backend.down();
  const away = await service.post("/busy", "x");
  expect([away.status, await away.json()]).toMatchObject([202, { stored: true, error: "unreachable" }]);
  await service.stop();
  await backend.up();
  const last = await new RetryService(session).start(backend.url, "--answer-stored 202 --max-retries 0");
  expect((await last.post("/busy", "x")).status).toBe(503);
  await last.stop();
});
