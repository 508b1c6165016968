/** `/healthz` and `/metrics`: what they say, and that a probe is answered whatever others do there. */
import { expect, test } from "bun:test";
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { connect as dial, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { httpListenerLimitsDefault } from "../../../src/base/http/http_listener.ts";
import { serveStatusPage, type StatusPageSource } from "../../../src/base/terminal/status_page.ts";
import { formatAddress } from "../../../src/base/sockets/connection.ts";
import { FakeClock } from "../../support/fake_clock.ts";
import { eventually } from "../../support/eventually.ts";

const well: StatusPageSource = { health: () => null, metrics: () => [] };

test("says whether all is well, the numbers, and nothing else", async () => {
  let why: string | null = null;
  await using page = await serveStatusPage(":0", {
    health: () => why,
    metrics: () => [{ name: "n", help: "h", type: "gauge", samples: [{ value: 3 }] }],
  });
  const ask = async (path: string, method = "GET") => {
    const response = await fetch(`http://${formatAddress(page.address)}${path}`, { method });
    return [response.status, await response.text()] as const;
  };
  expect(await ask("/healthz")).toEqual([200, "ok\n"]);
  why = "no lease";
  expect(await ask("/healthz")).toEqual([503, "no lease\n"]);
  expect(await ask("/metrics?x")).toEqual([200, "# HELP n h\n# TYPE n gauge\nn 3\n"]);
  expect((await ask("/other"))[0]).toBe(404);
  expect((await ask("/metrics", "POST"))[0]).toBe(405);
  const taken = await serveStatusPage(formatAddress(page.address), { health: () => null, metrics: () => [] })
    .then(() => "listens", (thrown) => thrown.code);
  expect(taken).toBe("CANNOT_CREATE");
  expect(await serveStatusPage("nowhere", { health: () => null, metrics: () => [] }).catch((thrown) => thrown.code))
    .toBe("USAGE");
});

/** A connection written by hand, and what came back; `isClosed` when the other side has ended it. */
async function byHand(port: number, said: string) {
  const socket = await new Promise<Socket>((resolve) => {
    const made = dial({ port, host: "127.0.0.1", allowHalfOpen: true }, () => resolve(made));
    made.on("error", () => {});
  });
  const heard = { text: "", isClosed: false, socket };
  socket.on("data", (chunk) => heard.text += chunk.toString());
  socket.on("close", () => heard.isClosed = true);
  socket.on("end", () => {
    heard.isClosed = true;
    socket.end();
  });
  socket.write(said);
  return heard;
}

const portOf = (page: { address: { kind: string } }) => (page.address as unknown as { port: number }).port;

test("a probe is answered while any number of others send half of a request", async () => {
  await using page = await serveStatusPage(":0", well);
  const half = ["", "G", "GET /healthz HTTP/1.1\r\n", "GET /healthz HTTP/1.1\r\nHost: x\r\n"];
  const others: Awaited<ReturnType<typeof byHand>>[] = [];
  for (let n = 0; n < 300; n++) others.push(await byHand(portOf(page), half[n % half.length] as string));
  const response = await fetch(`http://${formatAddress(page.address)}/healthz`, { signal: AbortSignal.timeout(3000) });
  expect([response.status, await response.text()]).toEqual([200, "ok\n"]);
  // At most the newest stay. The kernel passes a connection on when it has sent something, or a second later.
  await eventually(() => others.filter(({ isClosed }) => !isClosed).length <= httpListenerLimitsDefault.connectionsMax);
  for (const { socket } of others) socket.destroy();
});

test("a request has its time to come, and an answer to be taken", async () => {
  const clock = new FakeClock();
  await using page = await serveStatusPage(":0", well, { clock });
  const slow = await byHand(portOf(page), "GET /healthz HTTP/1.1\r\n");
  slow.socket.write("Host: x\r\n");
  const whole = await byHand(portOf(page), "GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  await eventually(() => whole.isClosed);
  expect(whole.text).toMatch(/^HTTP\/1\.1 200 OK\r\n[^]*\r\n\r\nok\n$/);
  expect(slow.isClosed).toBe(false);
  await clock.advance(5000);
  await eventually(() => slow.isClosed);
  expect(slow.text).toBe("");
});

test("a request that is no request, or too long, is refused, and one in pieces is not", async () => {
  await using page = await serveStatusPage(":0", well);
  const port = portOf(page);
  const long = await byHand(port, `GET /healthz HTTP/1.1\r\nX: ${"x".repeat(20_000)}\r\n\r\n`);
  await eventually(() => long.isClosed);
  expect(long.text).toMatch(/^HTTP\/1\.1 431 /);
  const none = await byHand(port, "hello\r\n\r\n");
  await eventually(() => none.isClosed);
  expect(none.text).toMatch(/^HTTP\/1\.1 400 /);
  const pieces = await byHand(port, "HEAD /hea");
  pieces.socket.write("lthz?x=1 HTTP/1.0\r\n");
  pieces.socket.end("\r\n");
  await eventually(() => pieces.isClosed);
  expect(pieces.text).toMatch(/^HTTP\/1\.1 200 OK\r\n[^]*content-length: 3\r\n[^]*\r\n\r\n$/);
});

test("what says nothing of itself in time is not well", async () => {
  const clock = new FakeClock();
  await using page = await serveStatusPage(":0", {
    health: () => new Promise(() => {}),
    metrics: () => Promise.reject(new Error("broken")),
  }, { clock });
  const asked = await byHand(portOf(page), "GET /healthz HTTP/1.0\r\n\r\n");
  const metrics = await byHand(portOf(page), "GET /metrics HTTP/1.0\r\n\r\n");
  await eventually(() => metrics.isClosed);
  expect(metrics.text).toMatch(/^HTTP\/1\.1 500 [^]*broken\n$/);
  await clock.advance(2000);
  await eventually(() => asked.isClosed);
  expect(asked.text).toMatch(/^HTTP\/1\.1 503 [^]*did not respond within 2 s\n$/);
});

test("at a unix socket; one that was left behind is in nobody's way, and none is left", async () => {
  const folder = mkdtempSync(join(tmpdir(), "baton-status-"));
  const path = join(folder, "s");
  try {
    const left = Bun.spawn([
      process.execPath,
      "-e",
      `require("net").createServer().listen(${JSON.stringify(path)}, () => process.kill(process.pid, "SIGKILL"))`,
    ], { env: { ...process.env, BUN_BE_BUN: "1" } });
    await left.exited;
    expect(statSync(path).isSocket()).toBe(true);
    const page = await serveStatusPage(`unix:${path}`, well);
    expect(await (await fetch("http://localhost/healthz", { unix: path })).text()).toBe("ok\n");
    expect(await serveStatusPage(`unix:${path}`, well).catch((thrown) => thrown.code)).toBe("CANNOT_CREATE");
    await page.close();
    expect(() => statSync(path)).toThrow();
  } finally {
    rmSync(folder, { recursive: true });
  }
});
