/** What goes through a forwarder, over real sockets on this machine. */
import { afterEach, describe, expect, test } from "bun:test";
import {
  forwarderBufferBytesMax,
  TcpForwarder,
  type TcpForwarderOptions,
} from "../../../../src/base/sockets/tcp_forwarder.ts";
import type { Address, Connection, ConnectionHandlers } from "../../../../src/base/sockets/connection.ts";
import { dial } from "../../../../src/base/sockets/dial.ts";
import { listen } from "../../../../src/base/sockets/listen.ts";
import { type Listener } from "../../../../src/base/sockets/connection.ts";
import { systemClock } from "../../../../src/base/support/clock.ts";
import { eventually } from "../../../support/eventually.ts";

const loopback: Address = { kind: "tcp", host: "127.0.0.1", port: 0 };
const open: { close(): void | Promise<void> }[] = [];
afterEach(async () => {
  for (const one of open.splice(0).reverse()) await one.close();
});

class Ear implements ConnectionHandlers {
  text = "";
  bytes = 0;
  ends = 0;
  closings: (Error | null)[] = [];
  connection: Connection | null = null;
  onChunk: (chunk: Uint8Array) => void = () => {};

  onData(chunk: Uint8Array): void {
    this.bytes += chunk.byteLength;
    if (this.bytes < 1000) this.text += new TextDecoder().decode(chunk);
    this.onChunk(chunk);
  }
  onEnded(): void {
    this.ends++;
  }
  onClosed(error: Error | null): void {
    this.closings.push(error);
  }
  say(text: string): void {
    this.connection?.write(new TextEncoder().encode(text));
  }
}

/** A leader: greets with its name. */
async function serve(name: string): Promise<{ address: Address; ears: Ear[]; listener: Listener }> {
  const ears: Ear[] = [];
  const listener = await listen(loopback, (connection) => {
    const ear = new Ear();
    ear.connection = connection;
    ears.push(ear);
    ear.say(`${name} `);
    return ear;
  }, { halfOpen: true });
  open.push({ close: () => ears.forEach(({ connection }) => connection?.destroy()) }, listener);
  return { address: listener.address, ears, listener };
}

async function forward(options: Partial<TcpForwarderOptions> = {}) {
  const said: string[] = [];
  const forwarder = new TcpForwarder({
    dial,
    clock: systemClock(),
    connectTimeoutMs: 5000,
    connectionsMax: 100,
    log: (sentence) => said.push(sentence),
    ...options,
  });
  const listener = await listen(loopback, forwarder.accept, { halfOpen: true });
  open.push(forwarder, listener);
  const call = async () => {
    const ear = new Ear();
    ear.connection = await dial(listener.address, ear, { halfOpen: true });
    const { connection } = ear;
    open.push({ close: () => connection.destroy() });
    return ear;
  };
  return { forwarder, call, said };
}

describe("a forwarder", () => {
  test("carries both ways, and passes on each end by itself", async () => {
    const leader = await serve("a");
    const { forwarder, call } = await forward();
    forwarder.setLeader(leader.address);
    const client = await call();
    client.say("question");
    client.connection?.end();
    const ear = await eventually(() => leader.ears[0]);
    await eventually(() => ear.ends === 1);
    expect([ear.text, client.ends, client.closings.length]).toEqual(["question", 0, 0]);
    ear.say("answer after the end");
    ear.connection?.end();
    await eventually(() => client.closings.length === 1 && ear.closings.length === 1);
    expect(client.text).toBe("a answer after the end");
  });

  test("closes what is open when the leader changes, and new connections reach the new one", async () => {
    const first = await serve("first");
    const second = await serve("second");
    const { forwarder, call } = await forward();
    forwarder.setLeader(first.address);
    const early = await call();
    await eventually(() => early.text === "first ");
    forwarder.setLeader(second.address);
    await eventually(() => early.closings.length === 1 && first.ears[0]?.closings.length === 1);
    const late = await call();
    await eventually(() => late.text === "second ");
    forwarder.setLeader(null);
    await eventually(() => late.closings.length === 1);
  });

  test("lets a connection wait for a leader, with what it has said already, and for one that listens", async () => {
    const { forwarder, call } = await forward();
    const client = await call();
    client.say("early");
    const gone = await serve("gone");
    await gone.listener.close();
    forwarder.setLeader(gone.address); // refuses
    const leader = await serve("b");
    forwarder.setLeader(leader.address);
    await eventually(() => leader.ears[0]?.text === "early" && client.text === "b ");
  });

  test("closes a connection that waited in vain, and says why", async () => {
    const { forwarder, call, said } = await forward({ connectTimeoutMs: 50 });
    const lonely = await call();
    await eventually(() => lonely.closings.length === 1);
    expect(said[0]).toMatch(/^closed a connection from 127\.0\.0\.1:\d+ after 50 ms: there is no leader$/);
    const gone = await serve("gone");
    await gone.listener.close();
    forwarder.setLeader(gone.address);
    const refused = await call();
    await eventually(() => refused.closings.length === 1);
    expect(said[1]).toMatch(/after 50 ms: (connection refused|.*[Ff]ailed to connect)/);
  });

  test("has no more connections than it may, and says so once", async () => {
    const leader = await serve("a");
    const { forwarder, call, said } = await forward({ connectionsMax: 2 });
    forwarder.setLeader(leader.address);
    const clients = [await call(), await call()];
    await eventually(() => clients.every(({ text }) => text === "a "));
    for (let more = 0; more < 2; more++) {
      const one = await call();
      await eventually(() => one.closings.length === 1);
    }
    expect(said).toEqual(["2 connections are open; new ones are closed (--max-connections)"]);
    clients[0]?.connection?.destroy();
    await eventually(() => leader.ears.some(({ closings }) => closings.length === 1));
    const next = await call();
    await eventually(() => next.text === "a ");
  });

  test("holds back who sends faster than the other reads, and loses nothing", async () => {
    const leader = await serve("a");
    const { forwarder, call } = await forward();
    forwarder.setLeader(leader.address);
    const client = await call();
    const ear = await eventually(() => leader.ears[0]);
    ear.connection?.pause();
    const size = 50_000_000;
    client.connection?.write(new Uint8Array(size));
    client.connection?.end();
    let before = -1;
    // What the kernel and the forwarder take is bounded: after a while the sender keeps the rest.
    await eventually(() => {
      const left = client.connection?.bufferedBytes ?? 0;
      const isStill = left === before;
      before = left;
      return isStill;
    }, { everyMs: 50 });
    expect(before).toBeGreaterThan(size - 30_000_000 - forwarderBufferBytesMax);
    ear.connection?.resume();
    await eventually(() => ear.bytes === size && ear.ends === 1, { withinMs: 20_000 });
  });

  test("closes the other side when one is gone", async () => {
    const leader = await serve("a");
    const { forwarder, call } = await forward();
    forwarder.setLeader(leader.address);
    const client = await call();
    await eventually(() => client.text === "a ");
    leader.ears[0]?.connection?.destroy();
    await eventually(() => client.closings.length === 1);
    const another = await call();
    await eventually(() => another.text === "a ");
    another.connection?.destroy();
    await eventually(() => leader.ears[1]?.closings.length === 1);
  });
});
