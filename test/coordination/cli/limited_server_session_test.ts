/**
 * `baton` on servers that lack operations: ZooKeeper 3.4, and ClickHouse Keeper, which closes connections and cannot
 * resume a session. Plain nodes stand in for containers, and nothing that should go stays.
 */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { parseZooKeeperServers } from "../../../src/protocols/zookeeper/hosts.ts";
import type { ZooKeeper } from "../../../src/protocols/zookeeper/zookeeper.ts";
import { connectToZooKeeper } from "../../../src/protocols/zookeeper/zookeeper_client.ts";
import { BatonSession } from "../../support/baton_session.ts";
import { eventually } from "../../support/eventually.ts";
import { servePage } from "../../support/ui_page.ts";
import { type LimitedKind, LimitedServer } from "../../support/limited_server.ts";

setDefaultTimeout(60_000);

const kinds: readonly LimitedKind[] = ["clickhouse", "zookeeper34"];
describe.each(kinds)("%s", (kind) => {
  let server: LimitedServer;
  let session: BatonSession;
  let keeper: ZooKeeper;
  beforeAll(async () => {
    server = await LimitedServer.start(kind, { sessionTimeoutMinMs: 2000 });
    session = new BatonSession({ BATON_SERVERS: server.servers, BATON_SESSION_TIMEOUT: "4s" });
    keeper = await connectToZooKeeper({
      servers: parseZooKeeperServers(server.keeper.servers),
      sessionTimeoutMs: 10_000,
    });
  });
  afterAll(async () => {
    await session[Symbol.asyncDispose]();
    await keeper.close();
    await server[Symbol.asyncDispose]();
  });

  const nodesBelow = async (path: string): Promise<string[]> => {
    const children = (await keeper.getChildren(path === "" ? "/" : path)).children;
    const below = await Promise.all(
      children.filter((name) => name !== "zookeeper").map(async (name) => {
        const node = `${path}/${name}`;
        return [node, ...await nodesBelow(node)];
      }),
    );
    return below.flat();
  };
  /** Nodes that contain `name`. */
  const nodesOf = async (name: string) => (await nodesBelow("")).filter((node) => node.includes(name));

  test("a lock: one holder at a time, rising tokens, and no nodes afterwards", async () => {
    const section = 'mkdir inside || exit 9; echo "$BATON_FENCING_TOKEN" >>tokens; rmdir inside';
    const loop = `for turn in 1 2 3; do "$baton" lock -w 30s nightly -- sh -c '${section}' || exit; done`;
    const ended = await Promise.all([1, 2, 3].map(() => session.run(loop)));
    expect(ended.map(({ code, stderr }) => [code, stderr])).toEqual([[0, ""], [0, ""], [0, ""]]);
    const tokens = session.read("tokens").trim().split("\n").map(BigInt);
    expect(tokens.length).toBe(9);
    expect(tokens).toEqual([...new Set(tokens)].sort((left, right) => (left < right ? -1 : 1)));
    expect(await nodesOf("nightly")).toEqual([]);
  });

  test("the page shows a lock, its end, and stays connected", async () => {
    const { running, link } = await servePage(session);
    const end = new AbortController();
    const { origin, hash } = new URL(link);
    const headers = { authorization: `Bearer ${hash.slice("#token=".length)}` };
    const response = await fetch(`${origin}/stream`, { headers, signal: end.signal });
    let text = "";
    const reading = response.body?.pipeThrough(new TextDecoderStream()).pipeTo(
      new WritableStream({ write: (piece) => void (text += piece) }),
      { signal: end.signal },
    ).catch(() => {});
    await eventually(() => text.includes('"isComplete":true'), {
      what: `all rows; there is ${text}`,
      withinMs: 20_000,
    });
    const held = session.start('exec "$baton" lock --reason "for the page" shown -- sleep 60');
    await eventually(() => text.includes('"reason":"for the page"'), { what: "the lock", withinMs: 20_000 });
    held.child.kill("SIGTERM");
    await held.ended;
    await eventually(() => text.includes('"shown":null'), { what: "its end", withinMs: 20_000 });
    expect(server.refused.filter((name) => name === "multiRead")).toEqual([]);
    end.abort();
    await reading;
    running.child.kill("SIGTERM");
    await running.ended;
  });

  test("-n, who, ls, permits, readers and hold", async () => {
    const held = session.start(
      `exec "$baton" lock --reason 'for a test' busy -- sh -c 'touch held; cat >/dev/null; exec sleep 60'`,
    );
    await session.made("held");
    expect(await session.run('"$baton" lock -n busy -- true')).toMatchObject({
      code: 75,
      stderr: expect.stringContaining('reason "for a test"'),
    });
    expect((await session.run('"$baton" who busy')).stdout).toContain("for a test");
    expect((await session.run('"$baton" ls')).stdout).toContain("busy");
    held.child.kill("SIGTERM");
    expect((await held.ended).signal).toBe("SIGTERM");
    const permits = [1, 2].map(() => session.run('"$baton" lock -N 2 -w 30s permits -- true'));
    const readers = [1, 2].map(() => session.run('"$baton" lock -s -w 30s readers -- true'));
    for (const { code, stderr } of await Promise.all([...permits, ...readers])) expect([code, stderr]).toEqual([0, ""]);
    const hold =
      'held=$("$baton" hold held --pid $$) || exit; eval "$held"; "$baton" check -q && "$baton" release held';
    expect(await session.run(hold)).toMatchObject({ code: 0, stderr: "" });
    for (const name of ["busy", "permits", "readers", "held"]) {
      await eventually(async () => (await nodesOf(name)).length === 0, { what: `the nodes of ${name} to be gone` });
    }
  });

  test("an election, a barrier, a pool and a tick", async () => {
    const elected = await session.run(`"$baton" elect -q db --value a:1 --restart never -- sh -c '"$baton" leader db'`);
    expect(elected).toMatchObject({ code: 0, stdout: "a:1\n" });
    const members = [1, 2, 3].map(() => session.run(`"$baton" barrier -q all -N 3 -- sh -c 'echo "$BATON_RANK"'`));
    expect((await Promise.all(members)).map(({ stdout }) => stdout).sort()).toEqual(["0\n", "1\n", "2\n"]);
    const pools = [1, 2].map(() =>
      session.run(`"$baton" pool -q items --items a,b,c,d -j 2 -- sh -c 'echo {} >>done'`)
    );
    // A call that ends first exits with 75 if the other one still runs items of the list.
    for (const { code } of await Promise.all(pools)) expect([0, 75]).toContain(code as number);
    expect([...new Set(session.read("done").trim().split("\n"))].sort()).toEqual(["a", "b", "c", "d"]);
    const tick = `"$baton" lock -q --skip hourly --tick '@hourly' --catch-up 2h -- sh -c 'echo ran >>ticks'`;
    await Promise.all([1, 2].map(() => session.run(tick)));
    expect(session.read("ticks")).toBe("ran\n");
    for (const name of ["all", "items"]) expect(await nodesOf(name)).toEqual([]);
  });

  test("a lock of Curator's", async () => {
    const lock = '"$baton" lock -w 30s --recipe curator /app/shared -- true';
    const ended = await Promise.all([1, 2].map(() => session.run(lock)));
    expect(ended.map(({ code, stderr }) => [code, stderr])).toEqual([[0, ""], [0, ""]]);
    expect(await nodesOf("shared")).toEqual([]);
  });

  test("a broken connection loses the lock where no session can be resumed, and only there", async () => {
    const running = session.start(`exec "$baton" lock cut -- sh -c 'touch in-cut; sleep 3; touch end-cut'`);
    await session.made("in-cut");
    server.cut();
    const { code, stderr } = await running.ended;
    if (kind === "zookeeper34") expect([code, stderr]).toEqual([0, ""]);
    else {
      expect(code).toBe(79);
      expect(stderr).toContain("cannot resume a session");
    }
    expect(await session.run('"$baton" lock -q -w 30s cut -- true')).toMatchObject({ code: 0 });
  });

  test("doctor says that no session can be resumed", async () => {
    const { code, stdout } = await session.run('"$baton" doctor --json');
    const { findings } = JSON.parse(stdout) as { findings: { where: string; what: string }[] };
    const found = findings.filter(({ what }) => what.includes("cannot resume a session"));
    expect([code, found.length]).toEqual([0, kind === "clickhouse" ? 1 : 0]);
  });

  test("operations were refused, or never asked for", () => {
    if (kind === "clickhouse") expect(server.refused).toEqual([]);
    else expect(new Set(server.refused)).toEqual(new Set(["create2", "createContainer", "addWatch"]));
  });
});
