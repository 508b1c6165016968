/** `baton pubsub proxy` as typed, with the compiled binary. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { spawnSync } from "node:child_process";
import { hostname } from "node:os";
import { connectToZooKeeper } from "../../../src/protocols/zookeeper/zookeeper_client.ts";
import { parseZooKeeperServers } from "../../../src/protocols/zookeeper/hosts.ts";
import { PubsubPath } from "../../../src/pubsub/ownership/pubsub_path.ts";
import { BatonSession, type Running } from "../../support/baton_session.ts";
import { eventually } from "../../support/eventually.ts";
import { freePorts } from "../../support/free_ports.ts";
import { ProxyClient } from "../../support/proxy_client.ts";
import { startRole } from "../../support/session_talker.ts";

setDefaultTimeout(60_000);

let session: BatonSession;
beforeAll(() => session = new BatonSession({ BATON_SERVERS: "embedded", BATON_SESSION_TIMEOUT: "2s" }));
afterAll(() => session[Symbol.asyncDispose]());

const endpointOf = ({ stderr }: Running) => /takes requests at (\S+?),/.exec(stderr())?.[1] ?? "";

test("finds servers by the embedded keeper, answers the paper's messages, has metrics, and ends with 0", async () => {
  const server = await startRole(session, "server --id s1 --data-dir s1 --metrics-listen unix:$dir/server");
  const proxy = await startRole(session, "proxy --id p1 --metrics-listen unix:$dir/metrics --log json");
  const page = async (path: string) =>
    (await session.run(`curl -s --unix-socket "$dir/metrics" http://localhost${path}`)).stdout;
  await using client = new ProxyClient(endpointOf(proxy));
  expect((await client.plain("SUBSCRIBE alice news")).status).toBe("OK");
  expect((await client.plain("PUT bob news 1", "hello")).status).toBe("OK");
  expect(await client.plain("GET alice news -1")).toMatchObject({ status: "OK", sender: "s1", text: "hello" });
  expect((await client.plain("nonsense")).status).toBe("BAD_REQUEST");
  expect(await page("/healthz")).toBe("ok\n");
  const numbers = await page("/metrics");
  expect(numbers).toContain('baton_pubsub_proxy_responses_total{status="OK"} ');
  expect(numbers).toContain("baton_pubsub_proxy_servers 1\n");
  expect(numbers).toContain('baton_pubsub_proxy_request_seconds_count{name="PUT"} 1\n');
  expect(numbers).toContain('baton_pubsub_proxy_request_seconds_bucket{name="GET",le="+Inf"} 1\n');
  const atServer = (await session.run('curl -s --unix-socket "$dir/server" http://localhost/metrics')).stdout;
  expect(atServer).toContain('baton_pubsub_server_request_seconds_count{name="PUT"} 1\n');
  expect(numbers).toContain("baton_pubsub_proxy_clients ");
  expect(numbers).toContain('baton_pubsub_proxy_server_connected{server="s1"} 1\n');
  await eventually(async () => (await page("/metrics")).includes('baton_pubsub_proxy_server_topics{server="s1"} 1\n'), {
    withinMs: 15_000,
  });
  server.child.kill("SIGTERM");
  expect((await server.ended).code).toBe(0);
  await eventually(async () => await page("/healthz") === "there is no server\n");
  proxy.child.kill("SIGTERM");
  const { code, stderr } = await proxy.ended;
  const events = stderr.trim().split("\n").map((line) => (JSON.parse(line) as { event: string }).event);
  expect([code, events]).toEqual([0, ["metrics", "serving", "stopping", "left"]]);
});

test("a proxy that is killed is known again as soon as it is back, however long its session goes on", async () => {
  const [port] = await freePorts(1);
  const words = `proxy --id again --session-timeout 60s --listen tcp://127.0.0.1:${port}`;
  const first = await startRole(session, words);
  await using zk = await connectToZooKeeper({
    servers: parseZooKeeperServers(`unix:${session.keeperFolder}/keeper.sock`),
  });
  const owner = async () => (await zk.exists(new PubsubPath().proxy("again")))?.ephemeralOwner;
  const before = await eventually(owner);
  first.child.kill("SIGKILL");
  await first.ended;
  const again = await startRole(session, words);
  await eventually(async () => await owner() !== before, { withinMs: 10_000 });
  const taken = await session.run(`"$baton" pubsub ${words}`);
  expect([taken.code, taken.stderr]).toEqual([73, expect.stringContaining("Cannot listen on")]);
  again.child.kill("SIGINT");
  expect((await again.ended).code).toBe(0);
  expect(await owner()).toBe(undefined);
});

const hasNetworks = spawnSync("unshare", ["-n", "true"]).status === 0;
if (!hasNetworks) console.error("MISSING: this user may not make a network; proxies of the same name are not tried");

test.skipIf(!hasNetworks)(
  "proxies with the same host name and port in networks of their own do not push each other out",
  async () => {
    const inContainer = async (words: string) => {
      const running = session.start(
        `exec unshare -n sh -c 'ip link set lo up; exec "$baton" pubsub proxy "$@"' sh ${words}`,
      );
      await eventually(() => /takes requests at|its id is in use/.test(running.stderr()), { withinMs: 15_000 });
      return running;
    };
    const listen = "--insecure --listen tcp://0.0.0.0:5001";
    const first = await inContainer(`${listen} --advertise tcp://172.17.0.2:5001`);
    const second = await inContainer(`${listen} --advertise tcp://172.17.0.3:5001`);
    await using zk = await connectToZooKeeper({
      servers: parseZooKeeperServers(`unix:${session.keeperFolder}/keeper.sock`),
    });
    const ids = async () => (await zk.getChildren(new PubsubPath().proxies)).children;
    const announced = await eventually(async () => {
      const known = (await ids()).filter((id) => id.includes("172.17"));
      return known.length < 2 ? null : known.sort(); // a proxy takes requests before it is announced
    });
    expect(announced).toEqual([`${hostname()}-172.17.0.2-5001`, `${hostname()}-172.17.0.3-5001`]);
    // One that was given the id of another: it waits, says for whom, and goes.
    const node = new PubsubPath().proxy("twin");
    const twin = await inContainer(`${listen} --id twin --advertise tcp://px:5001`);
    const owner = async () => (await zk.exists(node))?.ephemeralOwner;
    const before = await eventually(owner);
    const other = await inContainer(`${listen} --id twin --advertise tcp://px:5001`);
    expect(await other.ended).toMatchObject({
      code: 78,
      stderr: expect.stringContaining("another process uses this id, at tcp://px:5001"),
    });
    expect(await owner()).toBe(before);
    for (const { child, ended } of [first, second, twin]) {
      child.kill("SIGTERM");
      expect((await ended).code).toBe(0);
    }
  },
);

test("server and proxy say when the coordination service is away, and when it is back", async () => {
  await using own = new BatonSession({ BATON_SERVERS: "embedded", BATON_SESSION_TIMEOUT: "2s" });
  const roles = ["server --id s1 --data-dir s1", "proxy --id p1 --listen ipc://$dir/p1"].map((words) =>
    own.start(`exec "$baton" pubsub ${words}`)
  );
  const said = (sentence: RegExp) =>
    eventually(() => roles.every((role) => sentence.test(role.stderr())), { what: String(sentence), withinMs: 30_000 });
  await said(/serves|takes requests/);
  process.kill(own.keeperPid() ?? 0, "SIGSTOP");
  await said(
    /warning: "s1" serves no requests until the coordination service at unix:|"p1" does not reach the coordination/,
  );
  process.kill(own.keeperPid() ?? 0, "SIGCONT");
  await said(
    /"s1" has a lease and serves again, after \d+ s|"p1" reaches the coordination service again, after \d+ s/,
  );
  for (const { child } of roles) child.kill("SIGTERM");
  expect(await Promise.all(roles.map(async ({ ended }) => (await ended).code))).toEqual([0, 0]);
});

test("listens at several endpoints, ipc among them", async () => {
  const proxy = await startRole(session, "proxy --listen tcp://127.0.0.1:0,ipc://$dir/front");
  const [tcp = ""] = endpointOf(proxy).split(" ");
  for (const endpoint of [tcp, `ipc://${session.path("front")}`]) {
    await using client = new ProxyClient(endpoint);
    expect((await client.plain("HELLO me")).status).toBe("OK");
  }
  proxy.child.kill("SIGTERM");
  expect((await proxy.ended).code).toBe(0);
});

test("each way of not starting has its number and its sentence", async () => {
  const refused = async (words: string, code: number, says: string) => {
    const ended = await session.run(`"$baton" pubsub proxy ${words}`);
    expect([ended.code, ended.stderr]).toEqual([code, expect.stringContaining(says)]);
  };
  await refused("now", 64, 'unexpected argument "now"');
  await refused("--listen nonsense", 64, "nonsense");
  await refused("--listen tcp://127.0.0.1:0 --advertise nonsense", 64, "nonsense");
  await refused("--listen tcp://0.0.0.0:0", 64, "other machines cannot use");
  await refused("--max-connections 0", 64, "--max-connections");
  await refused("--servers 127.0.0.1:1 --connect-timeout 200ms", 69, "127.0.0.1:1");
  await refused("--insecure --listen tcp://192.0.2.1:1", 73, "this machine has no such address");
  await refused("--metrics-listen nonsense", 64, "nonsense");
});
