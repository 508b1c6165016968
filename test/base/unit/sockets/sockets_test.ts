import { afterAll, afterEach, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { bunDial } from "../../../../src/base/sockets/bun_dial.ts";
import { bunListen } from "../../../../src/base/sockets/bun_listen.ts";
import type {
  Address,
  Connection,
  ConnectionHandlers,
  Dial,
  Listen,
  Listener,
} from "../../../../src/base/sockets/connection.ts";
import { nodeDial } from "../../../../src/base/sockets/node_dial.ts";
import { nodeListen } from "../../../../src/base/sockets/node_listen.ts";

const folder = mkdtempSync(join(tmpdir(), "baton-sockets-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
let sockets = 0;

/** Handlers that collect, and promises for what a test waits for. */
class Ear implements ConnectionHandlers {
  readonly bytes: number[] = [];
  readonly whenEnded = Promise.withResolvers<void>();
  readonly whenClosed = Promise.withResolvers<Error | null>();
  #wanted: { count: number; resolve(): void } | null = null;
  closings = 0;
  drains = 0;

  onData(chunk: Uint8Array): void {
    this.bytes.push(...chunk);
    if (this.#wanted !== null && this.bytes.length >= this.#wanted.count) this.#wanted.resolve();
  }
  onClosed(error: Error | null): void {
    this.closings++;
    this.whenClosed.resolve(error);
  }
  onEnded(): void {
    this.whenEnded.resolve();
  }
  onDrained(): void {
    this.drains++;
  }
  received(count: number): Promise<void> {
    if (this.bytes.length >= count) return Promise.resolve();
    return new Promise((resolve) => this.#wanted = { count, resolve });
  }
}

const implementations: { name: string; dial: Dial; listen: Listen }[] = [
  { name: "Bun", dial: bunDial, listen: bunListen },
  { name: "node", dial: nodeDial, listen: nodeListen },
];

for (const { name, dial, listen } of implementations) {
  const open: (Listener | Connection)[] = [];
  afterEach(async () => {
    for (const item of open.splice(0)) await ("close" in item ? item.close() : item.destroy());
  });

  const pair = async (address: Address, options: { readonly halfOpen?: boolean } = {}) => {
    const serverEar = new Ear();
    const accepted = Promise.withResolvers<Connection>();
    const listener = await listen(address, (connection) => {
      accepted.resolve(connection);
      return serverEar;
    }, options);
    const clientEar = new Ear();
    const client = await dial(listener.address, clientEar, options);
    const server = await accepted.promise;
    open.push(listener, client, server);
    return { listener, client, server, clientEar, serverEar };
  };

  const addresses: Record<string, () => Address> = {
    "tcp over IPv4": () => ({ kind: "tcp", host: "127.0.0.1", port: 0 }),
    "tcp over IPv6": () => ({ kind: "tcp", host: "::1", port: 0 }),
    unix: () => ({ kind: "unix", path: join(folder, `${++sockets}.sock`) }),
  };

  for (const [kind, address] of Object.entries(addresses)) {
    describe(`${name} sockets, ${kind}`, () => {
      test("carry bytes both ways, in order", async () => {
        const { client, server, clientEar, serverEar } = await pair(address());
        client.write(new Uint8Array([1, 2]));
        client.write(new Uint8Array([3]));
        await serverEar.received(3);
        server.write(new Uint8Array([4, 5]));
        await clientEar.received(2);
        expect(serverEar.bytes).toEqual([1, 2, 3]);
        expect(clientEar.bytes).toEqual([4, 5]);
      });

      test("an end by one side sends what is queued and closes both, once", async () => {
        const { client, clientEar, server, serverEar } = await pair(address());
        server.write(new Uint8Array(1_000_000).fill(7));
        server.end();
        await clientEar.received(1_000_000);
        expect(await clientEar.whenClosed.promise).toBeNull();
        await serverEar.whenClosed.promise;
        client.write(new Uint8Array(1));
        client.destroy();
        expect([clientEar.closings, serverEar.closings]).toEqual([1, 1]);
      });

      test("what the other side does not read is counted, and drained when it reads again", async () => {
        const { client, server, clientEar, serverEar } = await pair(address());
        server.pause();
        const size = 12_000_000;
        client.write(new Uint8Array(size));
        expect(client.bufferedBytes).toBeGreaterThan(0);
        expect(serverEar.bytes.length).toBeLessThan(size);
        server.resume();
        let count = 0;
        const whole = Promise.withResolvers<void>();
        serverEar.onData = (chunk) => {
          count += chunk.byteLength;
          if (count === size) whole.resolve();
        };
        await whole.promise;
        expect(client.bufferedBytes).toBe(0);
        expect(clientEar.drains).toBe(1);
      });

      test("half open, each side ends by itself, and what is sent after the other's end arrives", async () => {
        const { client, clientEar, server, serverEar } = await pair(address(), { halfOpen: true });
        server.pause();
        client.write(new Uint8Array(300_000).fill(1));
        client.end();
        server.resume();
        await serverEar.whenEnded.promise;
        expect([serverEar.bytes.length, serverEar.closings, clientEar.closings]).toEqual([300_000, 0, 0]);
        server.write(new Uint8Array([7]));
        server.end();
        expect(await clientEar.whenClosed.promise).toBeNull();
        expect(await serverEar.whenClosed.promise).toBeNull();
        expect(clientEar.bytes).toEqual([7]);
      });

      test("a destroyed connection closes on both sides", async () => {
        const { client, clientEar, serverEar } = await pair(address());
        client.destroy();
        await clientEar.whenClosed.promise;
        await serverEar.whenClosed.promise;
      });

      test("a closed listener refuses, and leaves what it accepted alone", async () => {
        const { listener, client, serverEar } = await pair(address());
        await listener.close();
        await expect(dial(listener.address, new Ear())).rejects.toHaveProperty(
          "code",
          expect.stringMatching(/ECONNREFUSED|ENOENT/),
        );
        client.write(new Uint8Array([9]));
        await serverEar.received(1);
      });
    });
  }

  describe(`${name} sockets`, () => {
    test("an attempt that was aborted before it began rejects with the reason", async () => {
      const reason = new Error("no longer wanted");
      const attempt = async () =>
        await dial({ kind: "tcp", host: "127.0.0.1", port: 1 }, new Ear(), { signal: AbortSignal.abort(reason) });
      await expect(attempt()).rejects.toBe(reason);
    });

    test("an attempt that nothing answers ends with the signal", async () => {
      const reason = new Error("took too long");
      const giveUp = new AbortController();
      // 192.0.2.0/24 is for documentation (RFC 5737): nothing answers, or there is no route.
      const attempt = dial({ kind: "tcp", host: "192.0.2.1", port: 2181 }, new Ear(), { signal: giveUp.signal });
      giveUp.abort(reason);
      await expect(attempt).rejects.toBe(reason);
    });
  });
}
