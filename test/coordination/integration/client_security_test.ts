import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connectToZooKeeper, type ZooKeeperConnectOptions } from "../../../src/protocols/zookeeper/zookeeper_client.ts";
import { encodeSessionHandle, endSessionOfDeadProcess } from "../../../src/protocols/zookeeper/end_session.ts";
import { parseZooKeeperServers } from "../../../src/protocols/zookeeper/hosts.ts";
import type { ZooKeeper } from "../../../src/protocols/zookeeper/zookeeper.ts";
import type { Address } from "../../../src/base/sockets/connection.ts";
import { systemClock } from "../../../src/base/support/clock.ts";
import { describeBackend, type RunningBackend, zooKeeper } from "../../support/backends.ts";
import { ChaosProxy } from "../../support/chaos_proxy.ts";
import { eventually } from "../../support/eventually.ts";
import { freePorts } from "../../support/free_ports.ts";

const nothing = new Uint8Array(0);
const fixture = (name: string) => join(import.meta.dir, "../../fixtures/tls", name);
const pem = (name: string) => readFileSync(fixture(name), "utf8");
const ca = pem("ca.pem");
const clientCertificate = { cert: pem("client.pem"), key: pem("client_key.pem") };

describeBackend(zooKeeper, () => {
  let backend: RunningBackend;
  let securePort = 0;
  const folder = mkdtempSync(join(tmpdir(), "baton-security-"));
  beforeAll(async () => {
    [securePort = 0] = await freePorts(1);
    const keyStore = join(folder, "server.pem");
    writeFileSync(keyStore, pem("server_key.pem") + pem("server.pem"));
    const jaas = join(folder, "jaas.conf");
    writeFileSync(
      jaas,
      'Server { org.apache.zookeeper.server.auth.DigestLoginModule required user_ada="pass, \\"word\\""; };',
    );
    backend = await zooKeeper.start({
      configLines: [
        `secureClientPort=${securePort}`,
        "serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory",
        `ssl.keyStore.location=${keyStore}`,
        "ssl.keyStore.type=PEM",
        `ssl.trustStore.location=${fixture("ca.pem")}`,
        "ssl.trustStore.type=PEM",
        "authProvider.sasl=org.apache.zookeeper.server.auth.SASLAuthenticationProvider",
      ],
      // Since 3.9 a server refuses DIGEST-MD5 by default.
      javaProperties: { "java.security.auth.login.config": jaas, "zookeeper.fips-mode": "false" },
    });
  }, 40_000);
  afterAll(async () => {
    await backend.close();
    rmSync(folder, { recursive: true, force: true });
  });

  const open = (servers: string, options: Partial<ZooKeeperConnectOptions>): Promise<ZooKeeper> =>
    connectToZooKeeper({ servers: parseZooKeeperServers(servers), connectTimeoutMs: 10_000, ...options });

  test(
    "another process ends a session over TLS with a client certificate, or after SASL, by what is in its handle",
    async () => {
      const ways: [string, Partial<ZooKeeperConnectOptions>][] = [
        [`localhost:${securePort}`, { tls: { ca, ...clientCertificate } }],
        [backend.servers, { auth: [{ scheme: "sasl", credentials: 'ada:pass, "word"' }] }],
      ];
      for (const [servers, options] of ways) {
        const zk = await open(servers, options);
        await using other = await open(servers, options);
        const { path } = await zk.create("/ended-", nothing, { mode: "ephemeralSequential" });
        const handle = encodeSessionHandle({ servers: parseZooKeeperServers(servers), ...options }, zk.session);
        expect(await endSessionOfDeadProcess(handle, { clock: systemClock(), limitMs: 10_000 })).toBe(true);
        await other.sync("/");
        expect(await other.exists(path)).toBeNull();
        await zk.close();
      }
    },
    30_000,
  );

  test("TLS with a client certificate carries a session, and its identity is the certificate's", async () => {
    await using zk = await open(`localhost:${securePort}`, { tls: { ca, ...clientCertificate } });
    const acl = [{ perms: 31, id: { scheme: "x509", id: "CN=client" } }];
    const { path } = await zk.create("/tls-", nothing, { mode: "ephemeralSequential", acl });
    await zk.setData(path, nothing, 0);
    await using stranger = await open(backend.servers, {});
    await expect(stranger.getData(path)).rejects.toHaveProperty("reason", "NOAUTH");
  });

  test(
    "a TLS connection that goes silent, and one that is cut, is left for another server within the lease",
    async () => {
      const secure: Address = { kind: "tcp", host: "127.0.0.1", port: securePort };
      const proxies = [await ChaosProxy.start(secure), await ChaosProxy.start(secure)];
      try {
        const servers = proxies.map(({ servers }) => servers).join(",");
        await using zk = await open(servers, { tls: { ca, ...clientCertificate }, sessionTimeoutMs: 6000 });
        const { path } = await zk.create("/tls-moves-", nothing, { mode: "ephemeralSequential" });
        // On a busy machine the client tries both: the connection that it did not take closes a moment later.
        const connected = () => proxies.filter(({ connections }) => connections > 0);
        const here = await eventually(() => connected().length === 1 && connected()[0]);
        const { connections } = zk.session;
        here.blackHole();
        const lost = await zk.setData(path, nothing, -1).then(() => "done", (error) => error.reason);
        expect(lost).toBe("CONNECTIONLOSS");
        expect((await zk.exists(path))?.ephemeralOwner).toBe(zk.session.id);
        expect(zk.session.connections).toBe(connections + 1);
        expect(zk.session.leaseEndMs()).toBeGreaterThan(systemClock().now());
        for (const proxy of proxies) proxy.cut();
        for (const proxy of proxies) proxy.heal();
        await eventually(() => zk.session.connections === connections + 2);
        expect((await zk.exists(path))?.ephemeralOwner).toBe(zk.session.id);
      } finally {
        for (const proxy of proxies) await proxy.close();
      }
    },
    20_000,
  );

  test("TLS with an authority that is not trusted ends as unreachable and says why", async () => {
    const failed = open(`localhost:${securePort}`, { tls: clientCertificate });
    await expect(failed).rejects.toMatchObject({ code: "UNREACHABLE", message: expect.stringMatching(/certificate/) });
  });

  test("SASL DIGEST-MD5 proves who we are", async () => {
    const auth = [{ scheme: "sasl", credentials: 'ada:pass, "word"' }];
    await using ada = await open(backend.servers, { auth });
    const acl = [{ perms: 31, id: { scheme: "sasl", id: "ada" } }];
    const { path } = await ada.create("/sasl-", nothing, { mode: "ephemeralSequential", acl });
    await ada.setData(path, nothing, 0);
    await using stranger = await open(backend.servers, {});
    await expect(stranger.getData(path)).rejects.toHaveProperty("reason", "NOAUTH");
  });

  test("a wrong SASL password is refused", async () => {
    const failed = open(backend.servers, { auth: [{ scheme: "sasl", credentials: "ada:guess" }] });
    await expect(failed).rejects.toMatchObject({ code: "REFUSED", reason: "AUTHFAILED" });
  });
});
