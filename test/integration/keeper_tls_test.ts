import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect } from "../../src/zookeeper/zookeeper_client.ts";
import { parseServers } from "../../src/zookeeper/hosts.ts";
import { type Keeper, startKeeper } from "../../src/keeper/lifecycle/start_keeper.ts";
import { eventually } from "../support/eventually.ts";
import { formatAddress, type TlsOptions } from "../../src/sockets/connection.ts";

const pem = (name: string) => readFileSync(join(import.meta.dir, "../fixtures/tls", name), "utf8");
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
  connect({
    gatherEventsMs,
    servers: parseServers(keeper?.addresses.map(formatAddress).join() ?? ""),
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
