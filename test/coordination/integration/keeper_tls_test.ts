import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { chmodSync, copyFileSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { type AddressInfo, createServer as createPlainServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createServer } from "node:tls";
import { connectToZooKeeper } from "../../../src/protocols/zookeeper/zookeeper_client.ts";
import { parseZooKeeperServers } from "../../../src/protocols/zookeeper/hosts.ts";
import { type Keeper, startKeeper } from "../../../src/coordination/keeper/lifecycle/start_keeper.ts";
import { encodeSessionHandle, endSessionOfDeadProcess } from "../../../src/protocols/zookeeper/end_session.ts";
import { TlsFiles } from "../../../src/base/sockets/tls_files.ts";
import { whenAborted } from "../../../src/base/support/abort.ts";
import { systemClock } from "../../../src/base/support/clock.ts";
import { ChaosProxy } from "../../support/chaos_proxy.ts";
import { eventually } from "../../support/eventually.ts";
import { formatAddress, type TlsOptions } from "../../../src/base/sockets/connection.ts";

const fixtures = join(import.meta.dir, "../../fixtures/tls");
const pem = (name: string) => readFileSync(join(fixtures, name), "utf8");
const ca = pem("ca.pem");

let root = "";
let keeper: Keeper | null = null;
beforeEach(async () => {
  root = mkdtempSync(join(tmpdir(), "baton-tls-"));
  keeper = await startKeeper({
    dataDir: join(root, "data"),
    listen: [{ kind: "tcp", host: "localhost", port: 0 }],
    tls: { ca, cert: pem("server.pem"), key: pem("server_key.pem") },
  });
});
afterEach(async () => {
  await keeper?.close();
  rmSync(root, { recursive: true, force: true });
});

const open = (tls?: TlsOptions, gatherEventsMs = 0) =>
  connectToZooKeeper({
    gatherEventsMs,
    servers: parseZooKeeperServers(keeper?.addresses.map(formatAddress).join() ?? ""),
    connectTimeoutMs: 1000,
    ...(tls === undefined ? {} : { tls }),
  });

test("a session over TLS with the certificate that the keeper asks for", async () => {
  await using zk = await open({ ca, cert: pem("client.pem"), key: pem("client_key.pem") });
  expect((await zk.create("/a", new Uint8Array(0))).path).toBe("/a");
});

test("over TLS, too, gathered events come after their time, and responses immediately", async () => {
  const tls = { ca, cert: pem("client.pem"), key: pem("client_key.pem") };
  await using zk = await open(tls, 200);
  await using other = await open(tls);
  const events: string[] = [];
  await zk.addRecursiveWatch?.("/", ({ path }) => void events.push(path));
  for (const path of ["/a", "/b", "/c"]) await other.create(path, new Uint8Array(0));
  await eventually(() => events.length === 3, { what: "all events" });
  expect((await zk.getChildren("/")).children).toContain("c");
});

test.each(
  [["without a certificate", { ca }, "REFUSED"], ["without TLS", undefined, "UNREACHABLE"]] as const,
)("no session %s", async (_, tls, code) => {
  await expect(open(tls)).rejects.toMatchObject({ code });
}, 10_000);

/** A keeper and the TLS files of a client, both in `root`, which `renew` replaces by those of another authority. */
async function renewableService() {
  const place = (from: string, names: readonly string[]) => {
    for (const name of names) {
      copyFileSync(join(fixtures, from, name), join(root, name));
      chmodSync(join(root, name), 0o600); // a private key must be, and git keeps no such mode
    }
  };
  const [ofServer, ofClient] = [["server.pem", "server_key.pem"], ["client.pem", "client_key.pem"]] as const;
  place(".", ["ca.pem", ...ofServer, ...ofClient]);
  const path = (name: string) => join(root, name);
  const warnings: string[] = [];
  const renewable = await startKeeper({
    dataDir: path("renewable"),
    listen: [{ kind: "tcp", host: "localhost", port: 0 }],
    tls: new TlsFiles({ ca: path("ca.pem"), cert: path("server.pem"), key: path("server_key.pem") }),
  });
  // The keeper's `ca.pem` is the client's, too: both sides change their authority at the same time.
  const client = new TlsFiles({ ca: path("ca.pem"), cert: path("client.pem"), key: path("client_key.pem") }, {
    warn: (text) => warnings.push(text),
  });
  const [address = { kind: "unix", path: "" } as const] = renewable.addresses;
  return {
    keeper: renewable,
    proxy: await ChaosProxy.start(address),
    client,
    warnings,
    renewServer: () => place("renewed", ["ca.pem", ...ofServer]),
    renewClient: () => place("renewed", ofClient),
  };
}

test("a session survives new connections while both sides renew their certificates one after the other", async () => {
  const service = await renewableService();
  try {
    await using zk = await connectToZooKeeper({
      servers: parseZooKeeperServers(service.proxy.servers.replace("127.0.0.1", "localhost")),
      tls: service.client,
      sessionTimeoutMs: 30_000,
    });
    service.renewServer();
    const refused = { ca: pem("ca.pem"), cert: pem("client.pem"), key: pem("client_key.pem") };
    await eventually(
      () =>
        connectToZooKeeper({ servers: parseZooKeeperServers(service.proxy.servers), tls: refused }).then(
          (it) => it.close(),
          () => true,
        ),
      { what: "the keeper's renewed certificate" },
    );
    service.proxy.cut();
    await eventually(() => zk.session.describeOutage().includes("certificate in tls.cert"), { what: "the reason" });
    service.renewClient();
    await eventually(() => zk.session.state === "connected", { what: "the connection with renewed files" });
    expect(zk.session.describeOutage()).toBe("");
    expect((await zk.create("/renewed", new Uint8Array(0))).path).toBe("/renewed");
  } finally {
    await service.proxy.close();
    await service.keeper.close();
  }
});

test("the handle of a session ends it after the files were renewed", async () => {
  const service = await renewableService();
  try {
    const servers = parseZooKeeperServers(service.proxy.servers.replace("127.0.0.1", "localhost"));
    const zk = await connectToZooKeeper({ servers, tls: service.client, sessionTimeoutMs: 30_000 });
    const handle = encodeSessionHandle({ servers, tls: service.client }, zk.session);
    service.renewServer();
    service.renewClient();
    await eventually(() => endSessionOfDeadProcess(handle, { clock: systemClock(), limitMs: 1000 }), {
      what: "the end of the session",
    });
    await whenAborted(zk.session.ended);
  } finally {
    await service.proxy.close();
    await service.keeper.close();
  }
});

describe("a port of the other kind ends the call with the reason, long before the limit for connecting", () => {
  test("TLS to a keeper without TLS", async () => {
    const plain = await startKeeper({
      dataDir: join(root, "plain"),
      listen: [{ kind: "tcp", host: "localhost", port: 0 }],
    });
    try {
      const servers = parseZooKeeperServers(plain.addresses.map(formatAddress).join());
      await expect(connectToZooKeeper({ servers, tls: { ca }, connectTimeoutMs: 3_600_000 })).rejects.toMatchObject({
        code: "UNREACHABLE",
        message: expect.stringMatching(/: this port does not use TLS$/),
      });
    } finally {
      await plain.close();
    }
  });

  test("no TLS to a port that closes connections which do not begin with a TLS handshake", async () => {
    // A keeper answers with an alert; other servers close the connection.
    const silent = createServer({ key: pem("server_key.pem"), cert: pem("server.pem") }, (socket) => socket.destroy());
    silent.on("tlsClientError", (_, socket) => socket.destroy());
    await new Promise<void>((resolve) => silent.listen(0, "127.0.0.1", resolve));
    const { port } = silent.address() as AddressInfo;
    try {
      await expect(
        connectToZooKeeper({ servers: parseZooKeeperServers(`127.0.0.1:${port}`), connectTimeoutMs: 3_600_000 }),
      ).rejects
        .toMatchObject({ code: "UNREACHABLE", message: expect.stringMatching(/use ZooKeeper's protocol|needs TLS/) });
    } finally {
      silent.close();
    }
  });

  test("a server without a quorum, which closes connections too, is waited for", async () => {
    const closing = createPlainServer((socket) => socket.end());
    await new Promise<void>((resolve) => closing.listen(0, "127.0.0.1", resolve));
    const { port } = closing.address() as AddressInfo;
    try {
      for (const tls of [undefined, { ca }]) {
        const calling = connectToZooKeeper({
          servers: parseZooKeeperServers(`127.0.0.1:${port}`),
          connectTimeoutMs: 300,
          ...(tls === undefined ? {} : { tls }),
        });
        await expect(calling).rejects.toMatchObject({ message: expect.stringMatching(/session within /) });
      }
    } finally {
      closing.close();
    }
  });
});
