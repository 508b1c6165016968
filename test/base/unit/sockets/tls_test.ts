import { afterEach, describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Address, TlsOptions } from "../../../../src/base/sockets/connection.ts";
import { dial } from "../../../../src/base/sockets/dial.ts";
import { listen } from "../../../../src/base/sockets/listen.ts";
import { type Listener } from "../../../../src/base/sockets/connection.ts";

const pem = (name: string) => readFileSync(join(import.meta.dir, "../../../fixtures/tls", name), "utf8");
const ca = pem("ca.pem");
const server: TlsOptions = { cert: pem("server.pem"), key: pem("server_key.pem") };
const client: TlsOptions = { cert: pem("client.pem"), key: pem("client_key.pem") };

const listeners: Listener[] = [];
afterEach(async () => {
  for (const listener of listeners.splice(0)) await listener.close();
});

async function echo(tls: TlsOptions): Promise<number> {
  const listener = await listen({ kind: "tcp", host: "127.0.0.1", port: 0 }, (connection) => ({
    onData: (chunk) => connection.write(chunk.slice()),
    onClosed() {},
  }), { tls });
  listeners.push(listener);
  return listener.address.kind === "tcp" ? listener.address.port : 0;
}

/** What comes back, or the code of the error. */
async function ask(address: Address, tls: TlsOptions): Promise<string> {
  const answer = Promise.withResolvers<string>();
  try {
    const connection = await dial(address, {
      onData(chunk) {
        answer.resolve(new TextDecoder().decode(chunk));
        connection.destroy();
      },
      onClosed: (error) => answer.resolve(error === null ? "closed" : `broken: ${error.message}`),
    }, { tls });
    connection.write(new TextEncoder().encode("hello"));
    return await answer.promise;
  } catch (error) {
    return error instanceof Error && "code" in error ? String(error.code) : String(error);
  }
}

describe("TLS", () => {
  test("carries bytes when the certificate is of a trusted authority and has the name", async () => {
    const port = await echo(server);
    expect(await ask({ kind: "tcp", host: "localhost", port }, { ca })).toBe("hello");
    expect(await ask({ kind: "tcp", host: "127.0.0.1", port }, { ca })).toBe("hello");
    expect(await ask({ kind: "tcp", host: "127.0.0.1", port }, { ca, serverName: "keeper.example" })).toBe("hello");
  });

  test("refuses a certificate of another authority, or with another name", async () => {
    const port = await echo(server);
    expect(await ask({ kind: "tcp", host: "127.0.0.1", port }, {})).toMatch(/UNABLE_TO|SELF_SIGNED/);
    expect(await ask({ kind: "tcp", host: "127.0.0.1", port }, { ca, serverName: "other.example" })).toBe(
      "ERR_TLS_CERT_ALTNAME_INVALID",
    );
  });

  test("closes the oldest that is silent instead of shaking hands, when there are too many", async () => {
    const listener = await listen({ kind: "tcp", host: "127.0.0.1", port: 0 }, (connection) => ({
      onData: (chunk) => connection.write(chunk.slice()),
      onClosed() {},
    }), { tls: server, handshakesMax: 3 });
    listeners.push(listener);
    const closed: number[] = [];
    const silent = [];
    const firstTwo = Promise.withResolvers<void>();
    for (const index of [0, 1, 2, 3]) {
      silent.push(
        await dial(listener.address, {
          onData() {},
          onClosed: () => {
            if (closed.push(index) === 2) firstTwo.resolve();
          },
        }),
      );
    }
    // The fifth, which comes to an end, and counts no more.
    expect(await ask(listener.address, { ca })).toBe("hello");
    expect(await ask(listener.address, { ca })).toBe("hello");
    await firstTwo.promise;
    expect(closed).toEqual([0, 1]);
    for (const one of silent) one.destroy();
  });

  test("closes whoever is silent instead of shaking hands, and whoever says something else", async () => {
    const listener = await listen({ kind: "tcp", host: "127.0.0.1", port: 0 }, () => ({ onData() {}, onClosed() {} }), {
      tls: server,
      handshakeMsMax: 50,
    });
    listeners.push(listener);
    const closed = Promise.withResolvers<string>();
    await dial(listener.address, { onData() {}, onClosed: () => closed.resolve("closed") });
    expect(await closed.promise).toBe("closed");
    const foreign = Promise.withResolvers<string>();
    const talker = await dial(listener.address, { onData() {}, onClosed: () => foreign.resolve("closed") });
    talker.write(new TextEncoder().encode("GET / HTTP/1.0\r\n\r\n"));
    expect(await foreign.promise).toBe("closed");
  });

  test("refuses a client without a certificate when the server names an authority", async () => {
    const port = await echo({ ...server, ca });
    const address: Address = { kind: "tcp", host: "127.0.0.1", port };
    expect(await ask(address, { ca, ...client })).toBe("hello");
    expect(await ask(address, { ca })).not.toBe("hello");
  });
});
