import { afterEach, describe, expect, test } from "bun:test";
import { connect, createServer, type Server, type Socket } from "node:net";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Address } from "../../src/base/sockets/connection.ts";
import { encodeLengthFrame } from "../../src/base/wire/length_frame.ts";
import { zooKeeperOperations } from "../../src/protocols/zookeeper/jute/zookeeper_operations.ts";
import { PathRequest, ReplyHeader, RequestHeader } from "../../src/protocols/zookeeper/jute/zookeeper_records.ts";
import { ChaosProxy } from "./chaos_proxy.ts";
import { eventually } from "./eventually.ts";

const closers: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

/** A server that remembers what it hears, and answers each "?" or frame through `answer`. */
async function startServer(over: "tcp" | "unix", answer: (chunk: Uint8Array) => Uint8Array | string | null) {
  const heard = { text: "", bytes: 0, ends: 0, closes: 0 };
  const sockets = new Set<Socket>();
  const server: Server = createServer((socket) => {
    sockets.add(socket);
    socket.on("data", (chunk: Uint8Array) => {
      heard.text += chunk.toString();
      heard.bytes += chunk.byteLength;
      const reply = answer(chunk);
      if (reply !== null) socket.write(reply);
    });
    socket.on("end", () => heard.ends++);
    socket.on("error", () => {});
    socket.on("close", () => heard.closes++);
  });
  const folder = mkdtempSync(join(tmpdir(), "baton-echo-"));
  const path = join(folder, "s");
  await new Promise<void>((resolve) =>
    over === "unix" ? server.listen(path, resolve) : server.listen(0, "127.0.0.1", resolve)
  );
  closers.push(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
    rmSync(folder, { recursive: true, force: true });
  });
  const address: Address = over === "unix"
    ? { kind: "unix", path }
    : { kind: "tcp", host: "127.0.0.1", port: (server.address() as { port: number }).port };
  return { address, heard };
}

async function startProxy(target: Address, over: "tcp" | "unix" = "tcp"): Promise<ChaosProxy> {
  const proxy = await ChaosProxy.start(target, { over });
  closers.push(() => proxy.close());
  return proxy;
}

function dial(address: Address) {
  const socket = address.kind === "unix" ? connect(address.path) : connect(address.port, address.host);
  const heard = { text: "", bytes: 0, closed: false, error: "" };
  socket.on("data", (chunk: Uint8Array) => {
    heard.text += chunk.toString();
    heard.bytes += chunk.byteLength;
  });
  socket.on("error", (error: NodeJS.ErrnoException) => heard.error = error.code ?? error.message);
  socket.on("close", () => heard.closed = true);
  closers.push(() => socket.destroy());
  return { socket, heard };
}

const upper = (chunk: Uint8Array) => chunk.toString().toUpperCase();

describe.each(["tcp", "unix"] as const)("a chaos proxy over %s", (over) => {
  test("passes both ways, and the end of the connection too", async () => {
    const server = await startServer(over, upper);
    const proxy = await startProxy(server.address, over);
    const client = dial(proxy.address);
    client.socket.write("hello");
    await eventually(() => client.heard.text === "HELLO");
    client.socket.end();
    await eventually(() => server.heard.ends === 1 && client.heard.closed);
    await eventually(() => proxy.connections === 0);
  });

  test("cuts both sides", async () => {
    const server = await startServer(over, upper);
    const proxy = await startProxy(server.address, over);
    const client = dial(proxy.address);
    client.socket.write("hello");
    await eventually(() => client.heard.text === "HELLO");
    proxy.cut();
    await eventually(() => client.heard.closed && server.heard.closes === 1);
  });

  test("refuses, then accepts again when healed", async () => {
    const server = await startServer(over, upper);
    const proxy = await startProxy(server.address, over);
    proxy.refuse();
    const refused = dial(proxy.address);
    await eventually(() => refused.heard.closed);
    proxy.heal();
    const client = dial(proxy.address);
    client.socket.write("hello");
    await eventually(() => client.heard.text === "HELLO");
  });
});

test("half-open: the server still hears the requests, the client hears nothing until it heals", async () => {
  const server = await startServer("tcp", upper);
  const proxy = await startProxy(server.address);
  const client = dial(proxy.address);
  client.socket.write("aaaa");
  await eventually(() => client.heard.text === "AAAA");
  proxy.blackHole("replies");
  client.socket.write("bbbb");
  await eventually(() => server.heard.text === "aaaabbbb");
  expect(client.heard.text).toBe("AAAA");
  proxy.heal();
  await eventually(() => client.heard.text === "AAAABBBB");
});

test("a black hole hides the end of the connection until it heals", async () => {
  const server = await startServer("tcp", upper);
  const proxy = await startProxy(server.address);
  const client = dial(proxy.address);
  client.socket.write("aaaa");
  await eventually(() => client.heard.text === "AAAA");
  proxy.blackHole();
  client.socket.write("bbbb");
  client.socket.destroy();
  await eventually(() => client.heard.closed);
  // A second connection opens and is silent as well; that it does shows that the proxy has had time to forward the end.
  const second = dial(proxy.address);
  await eventually(() => proxy.connections === 2);
  second.socket.write("cccc");
  expect(server.heard).toMatchObject({ text: "aaaa", ends: 0, closes: 0 });
  proxy.heal();
  await eventually(() => server.heard.closes === 1 && server.heard.text.includes("cccc"));
});

test("delays what passes, and keeps its order", async () => {
  const server = await startServer("tcp", upper);
  const proxy = await startProxy(server.address);
  const client = dial(proxy.address);
  proxy.delay(60);
  const sentMs = performance.now();
  client.socket.write("aaaa");
  client.socket.write("bbbb");
  await eventually(() => client.heard.text === "AAAABBBB");
  expect(performance.now() - sentMs).toBeGreaterThanOrEqual(119);
});

const requestFrame = (xid: number, path: string) =>
  encodeLengthFrame((writer) => {
    RequestHeader.write(writer, { xid, type: zooKeeperOperations.sync.code });
    PathRequest.write(writer, { path });
  });
const replyFrame = (xid: number) =>
  encodeLengthFrame((writer) => ReplyHeader.write(writer, { xid, zxid: BigInt(xid), err: -101 }));
const hello = encodeLengthFrame((writer) => writer.raw(new Uint8Array(45)));

test("drops the chosen reply after the server has heard the request, and names the operation", async () => {
  let xid = 0;
  const server = await startServer("tcp", () => replyFrame(xid++));
  const proxy = await startProxy(server.address);
  const client = dial(proxy.address);
  const dropped = proxy.onFrame({ direction: "replies", nth: 2, action: "drop" });
  for (const frame of [hello, requestFrame(1, "/a"), requestFrame(2, "/b")]) {
    const before = server.heard.bytes;
    client.socket.write(frame);
    await eventually(() => server.heard.bytes === before + frame.byteLength);
    await eventually(() => client.heard.closed || proxy.counts.replies === proxy.counts.requests);
  }
  expect(await dropped).toMatchObject({ kind: "reply", operation: "sync", xid: 2, err: -101 });
  await eventually(() => client.heard.closed);
  expect(proxy.counts).toMatchObject({ connections: 1, requests: 3, replies: 2 });
});

test("drops the chosen request before the server hears it", async () => {
  const server = await startServer("tcp", () => null);
  const proxy = await startProxy(server.address);
  const client = dial(proxy.address);
  const dropped = proxy.onFrame({ direction: "requests", nth: 1, action: "drop" });
  client.socket.write(hello);
  await eventually(() => server.heard.bytes === hello.byteLength);
  const frame = requestFrame(7, "/a");
  client.socket.write(frame.subarray(0, 5)); // a frame in two pieces is one frame
  client.socket.write(frame.subarray(5));
  expect(await dropped).toMatchObject({ kind: "request", operation: "sync", xid: 7 });
  await eventually(() => client.heard.closed && server.heard.closes === 1);
  expect(server.heard.bytes).toBe(hello.byteLength);
});

test("tears the chosen reply: its first half arrives, and then the end of that connection alone", async () => {
  const server = await startServer("tcp", () => replyFrame(1));
  const proxy = await startProxy(server.address);
  const [client, other] = [dial(proxy.address), dial(proxy.address)];
  const torn = proxy.onFrame({ direction: "replies", nth: 1, action: "tear" });
  other.socket.write(hello);
  await eventually(() => proxy.counts.replies === 1);
  client.socket.write(hello);
  expect(await torn).toMatchObject({ kind: "reply" });
  await eventually(() => client.heard.closed && server.heard.closes === 1);
  expect([client.heard.bytes, other.heard.bytes]).toEqual([replyFrame(1).byteLength >> 1, replyFrame(1).byteLength]);
  expect([other.heard.closed, proxy.connections]).toEqual([false, 1]);
});

test("holds the chosen request, and hands it on when it heals", async () => {
  const server = await startServer("tcp", () => null);
  const proxy = await startProxy(server.address);
  const client = dial(proxy.address);
  const held = proxy.onFrame({ direction: "requests", nth: 1, action: "hold" });
  const [first, second] = [requestFrame(1, "/a"), requestFrame(2, "/b")];
  for (const frame of [hello, first, second]) client.socket.write(frame);
  expect(await held).toMatchObject({ xid: 1 });
  await eventually(() => server.heard.bytes > 0);
  expect(server.heard.bytes).toBe(hello.byteLength);
  proxy.heal();
  await eventually(() => server.heard.bytes === hello.byteLength + first.byteLength + second.byteLength);
});
