/**
 * What an operator meets who gives the wrong password or the wrong certificate, on a real ZooKeeper with TLS and SASL.
 */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { createHash } from "node:crypto";
import { writeFileSync } from "node:fs";
import type { ZooKeeper } from "../../../src/protocols/zookeeper/zookeeper.ts";
import { connectToZooKeeper } from "../../../src/protocols/zookeeper/zookeeper_client.ts";
import { parseZooKeeperServers } from "../../../src/protocols/zookeeper/hosts.ts";
import { type RunningBackend, zooKeeper } from "../../support/backends.ts";
import { BatonSession } from "../../support/baton_session.ts";
import { CertificateAuthority, type Issued } from "../../support/certificate_authority.ts";
import { freePorts } from "../../support/free_ports.ts";
import { describeWithPeer } from "../../support/peers.ts";
import { TlsFront } from "../../support/tls_front.ts";

setDefaultTimeout(60_000);

const storePassword = "changeit";

describeWithPeer("zookeeper", "a real ZooKeeper with TLS and SASL", () => {
  let session: BatonSession;
  let backend: RunningBackend;
  let authority: CertificateAuthority;
  let other: CertificateAuthority;
  let client: Issued;
  /** host:port where TLS is spoken. */
  let secure = "";
  let admin: ZooKeeper;
  const fronts: TlsFront[] = [];

  beforeAll(async () => {
    session = new BatonSession();
    [authority, other] = await Promise.all(
      ["good", "other"].map((name) => CertificateAuthority.start(session.folder, name)),
    ) as [CertificateAuthority, CertificateAuthority];
    const server = await authority.issue("server", { names: "DNS:localhost,IP:127.0.0.1" });
    client = await authority.issue("jobs", { passphrase: "opens it" });
    const keyStore = await authority.keyStore(server, storePassword);
    const jaas = session.path("jaas.conf");
    writeFileSync(jaas, 'Server { org.apache.zookeeper.server.auth.DigestLoginModule required user_ada="secret"; };');
    const [port = 0] = await freePorts(1);
    secure = `localhost:${port}`;
    backend = await zooKeeper.start({
      configLines: [
        `secureClientPort=${port}`,
        "serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory",
        `ssl.keyStore.location=${keyStore}`,
        `ssl.keyStore.password=${storePassword}`,
        "ssl.keyStore.type=PKCS12",
        `ssl.trustStore.location=${authority.ca}`,
        "ssl.trustStore.type=PEM",
        "authProvider.sasl=org.apache.zookeeper.server.auth.SASLAuthenticationProvider",
      ],
      javaProperties: { "java.security.auth.login.config": jaas },
      superDigest: `super:${createHash("sha1").update("super:sees all").digest("base64")}`,
    });
    const auth = [{ scheme: "digest", credentials: "super:sees all" }];
    admin = await connectToZooKeeper({ servers: parseZooKeeperServers(backend.servers), auth });
  });
  afterAll(async () => {
    await admin?.close();
    for (const front of fronts) front.close();
    await backend?.close();
    await session?.[Symbol.asyncDispose]();
  });

  /** A command's words behind `baton`; what it says ends with its code. */
  const baton = (words: string, env: Record<string, string> = {}) => session.run(`"$baton" ${words}`, env);
  const trusting = (ca: string) => `--tls-ca ${ca}`;
  const as = ({ cert, key }: Issued) => `--tls-cert ${cert} --tls-key ${key}`;
  const unlock = { BATON_TLS_PASSPHRASE: "opens it" };
  const quick = "--connect-timeout 20s";

  describe("TLS", () => {
    test("carries a lock, and the creator is whom the certificate names", async () => {
      const words = `lock -q -z ${secure} ${trusting(authority.ca)} ${
        as(client)
      } --acl creator --root /tls l -- echo holds`;
      expect(await baton(words, unlock)).toMatchObject({ code: 0, stdout: "holds\n", stderr: "" });
      const { acl } = await admin.getAcl("/tls/locks");
      expect(acl).toEqual([{ perms: 31, id: { scheme: "x509", id: "CN=jobs" } }]);
      expect(await baton(`lock -q -z ${backend.servers} --root /tls l -- echo never`)).toMatchObject({
        code: 77,
        stdout: "",
      });
    });

    test("a passphrase that does not open the key is told with the key's file", async () => {
      const ended = await baton(`lock -z ${secure} ${trusting(authority.ca)} ${as(client)} a -- true`, {
        BATON_TLS_PASSPHRASE: "guess",
      });
      expect(ended.code).toBe(64);
      expect(ended.stderr).toContain(client.key);
    });

    const refusals: [what: string, make: () => Promise<string>, says: RegExp][] = [
      ["none", () => Promise.resolve(""), /it requires a client certificate; set tls\.cert/],
      [
        "one that has expired",
        async () => as(await authority.issue("late", { isExpired: true })),
        /it refuses the certificate in tls\.cert \(alert: certificate (unknown|expired)\)/,
      ],
      [
        "one of an authority that the server does not know",
        async () => as(await other.issue("stranger")),
        /it refuses the certificate in tls\.cert \(alert: (certificate unknown|unknown ca)\)/,
      ],
    ];
    for (const [what, make, says] of refusals) {
      test(`a client certificate: ${what} is 77 at once`, async () => {
        const ended = await baton(
          `lock ${quick} -z ${secure} ${trusting(authority.ca)} ${await make()} a -- echo never`,
        );
        expect(ended).toMatchObject({ code: 77, stdout: "" });
        expect(ended.stderr).toMatch(says);
        expect(ended.quietMs).toBeLessThan(15_000);
      });
    }

    /** Somebody else's TLS in front of the same ZooKeeper. */
    async function front(issued: Issued): Promise<string> {
      const { address } = backend.nodes[0] ?? {};
      if (address?.kind !== "tcp") throw new Error("The server has no port");
      const started = await TlsFront.start(address.port, {
        cert: authority.read(issued.cert),
        key: authority.read(issued.key),
      });
      fronts.push(started);
      return `localhost:${started.port}`;
    }

    test("a server whose certificate has expired is 69, and one of two such servers does not matter", async () => {
      const late = await front(await authority.issue("late_server", { names: "DNS:localhost", isExpired: true }));
      const good = await front(await authority.issue("good_server", { names: "DNS:localhost" }));
      const ended = await baton(`lock ${quick} -z ${late} ${trusting(authority.ca)} a -- echo never`);
      expect(ended).toMatchObject({ code: 69, stdout: "" });
      expect(ended.stderr).toMatch(
        /^baton: Cannot open a ZooKeeper session: localhost:\d+ \(127\.0\.0\.1\): its certificate has expired\n$/,
      );
      for (let times = 0; times < 3; times++) {
        const both = await baton(`lock -q ${quick} -z ${late},${good} ${trusting(authority.ca)} two -- echo holds`);
        expect(both).toMatchObject({ code: 0, stdout: "holds\n" });
      }
    });

    test("a server of an unknown authority, or with another name, is 69 at once; a name can be given", async () => {
      const stranger = await front(await other.issue("stranger_server", { names: "DNS:localhost" }));
      const unknown = await baton(`lock ${quick} -z ${stranger} ${trusting(authority.ca)} a -- echo never`);
      expect(unknown).toMatchObject({ code: 69, stdout: "" });
      expect(unknown.stderr).toContain("its certificate is signed by an unknown authority");
      const system = await baton(`lock ${quick} -z ${stranger} --tls a -- echo never`);
      expect(system).toMatchObject({ code: 69, stdout: "" });
      expect(system.stderr).toContain("set tls.ca for others");
      const named = await front(await authority.issue("zk1", { names: "DNS:zk1.example" }));
      const wrong = await baton(`lock ${quick} -z ${named} ${trusting(authority.ca)} a -- echo never`);
      expect(wrong).toMatchObject({ code: 69, stdout: "" });
      expect(wrong.stderr).toContain("its certificate is for another name");
      expect(Math.max(unknown.quietMs, system.quietMs, wrong.quietMs)).toBeLessThan(15_000);
      const right = `lock -q -z ${named} ${trusting(authority.ca)} --tls-server-name zk1.example named -- echo holds`;
      expect(await baton(right)).toMatchObject({ code: 0, stdout: "holds\n" });
    });

    test("TLS to a port without it, and the reverse, ends the call at once with the reason", async () => {
      const short = "--connect-timeout 1h";
      const plain = await baton(`lock ${short} -z ${backend.servers} ${trusting(authority.ca)} a -- echo never`);
      expect(plain).toMatchObject({ code: 69, stdout: "" });
      expect(plain.stderr).toEndWith(": this port does not use TLS\n");
      const secured = await baton(`lock ${short} -z ${secure} a -- echo never`);
      expect(secured).toMatchObject({ code: 69, stdout: "" });
      expect(secured.stderr).toEndWith(": this port needs TLS; set --tls, or --tls-ca FILE\n");
    });
  });

  describe("credentials", () => {
    const auth = (line: string) => ({ BATON_AUTH_CREDENTIALS: line });

    test("SASL: the right password holds a lock that nobody else may touch, a wrong one is 77", async () => {
      const words = `lock -q -z ${backend.servers} --acl creator --root /sasl l -- echo holds`;
      expect(await baton(words, auth("sasl:ada:secret"))).toMatchObject({ code: 0, stdout: "holds\n", stderr: "" });
      const wrong = await baton(words, auth("sasl:ada:guess"));
      expect(wrong).toMatchObject({ code: 77, stdout: "" });
      expect(wrong.stderr).toContain('The server refused the credentials of scheme "sasl"');
      expect(wrong.stderr).not.toContain("guess");
      expect(await baton(`lock -q -z ${backend.servers} --root /sasl l -- echo never`)).toMatchObject({
        code: 77,
        stdout: "",
      });
    });

    test("a wrong password of a digest is found at the node that needs it: 77, without the secret", async () => {
      const words = `lock -q -z ${backend.servers} --acl creator --root /digest l -- echo holds`;
      expect(await baton(words, auth("digest:jo:one"))).toMatchObject({ code: 0, stdout: "holds\n" });
      const wrong = await baton(words, auth("digest:jo:two-secret"));
      expect(wrong).toMatchObject({ code: 77, stdout: "" });
      expect(wrong.stderr).toMatch(
        /NOAUTH: the ACL of "\/digest\/locks\/l.*" does not give this session permission [cr] \(/,
      );
      expect(wrong.stderr).not.toContain("two-secret");
    });
  });

  test("--acl is on everything that a recipe makes", async () => {
    const servers = `-z ${backend.servers} --acl creator --root /closed`;
    const env = { BATON_AUTH_CREDENTIALS: "digest:jo:one" };
    const lines = [
      `lock -q ${servers} l -- true`,
      `lock -q -N 2 ${servers} n -- true`,
      `elect -q ${servers} --value here:1 --restart never e -- true`,
      `barrier -q -N 1 ${servers} b -- true`,
      `barrier -q ${servers} --set g`,
      `pool -q ${servers} --items - --done-ttl 1h p -- true {}`,
    ];
    for (const line of lines) {
      const ended = await session.run(`printf 'one\\ntwo\\n' | "$baton" ${line}`, env);
      expect({ line, ...ended }).toMatchObject({ line, code: 0 });
    }
    const open: string[] = [];
    let seen = 0;
    const walk = async (path: string): Promise<void> => {
      const { acl } = await admin.getAcl(path);
      seen++;
      if (acl.length !== 1 || acl[0]?.id.scheme !== "digest" || !acl[0].id.id.startsWith("jo:")) open.push(path);
      const { children } = await admin.getChildren(path);
      for (const child of children) await walk(`${path}/${child}`);
    };
    await walk("/closed");
    expect(open).toEqual([]);
    expect(seen).toBeGreaterThan(12);
    const stranger = await baton(`lock -q -z ${backend.servers} --root /closed l -- echo never`);
    expect(stranger).toMatchObject({ code: 77, stdout: "" });
  });
});
