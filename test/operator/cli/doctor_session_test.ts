/** `baton doctor`, by sessions with the binary, on the keeper and on a real server. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { parseZooKeeperServers } from "../../../src/protocols/zookeeper/hosts.ts";
import { connectToZooKeeper } from "../../../src/protocols/zookeeper/zookeeper_client.ts";
import { BackendSession } from "../../support/backend_session.ts";
import { backends, describeBackend } from "../../support/backends.ts";
import { BatonSession } from "../../support/baton_session.ts";

setDefaultTimeout(60_000);

for (const kind of backends) {
  describeBackend(kind, () => {
    let session: BackendSession;
    beforeAll(async () => void (session = await BackendSession.start(kind, {}, { sessionTimeoutMinMs: 5000 })), 40_000);
    afterAll(() => session?.[Symbol.asyncDispose]());

    test("has nothing to say of locks that are held and waited for", async () => {
      const script = `"$baton" lock -q a -- sh -c '"$baton" elect -q --value v e -- "$baton" doctor'`;
      expect(await session.run(script)).toMatchObject({
        code: 0,
        stdout: "",
        stderr: "baton: checked 1 lock and 1 election: no problems found\n",
      });
    });

    test("tells of another program's nodes, as a table and for programs, with 1", async () => {
      await using zk = await connectToZooKeeper({ servers: parseZooKeeperServers(session.backend.servers) });
      await session.run('"$baton" lock -q a -- true');
      const node = await zk.create("/baton/locks/a/_c_lock-", new Uint8Array(), { mode: "persistentSequential" });
      const table = await session.run('"$baton" doctor -q');
      expect(table).toMatchObject({ code: 1, stderr: "" });
      expect(table.stdout).toMatch(
        /^SEVERITY +ID .*\nproblem +node-foreign +lock "a" +".*_c_lock-0000\d+" is not baton's node: .* --root\n$/,
      );
      const json = await session.run('"$baton" doctor --json -q');
      expect(JSON.parse(json.stdout)).toMatchObject({
        version: 1,
        servers: session.backend.servers,
        session_timeout_ms: 10_000,
        findings: [{ id: "node-foreign", severity: "problem", where: 'lock "a"' }],
      });
      await zk.delete(node.path, -1);
    });

    test("warns of a session timeout that the servers made longer", async () => {
      const ended = await session.run('"$baton" doctor -q --session-timeout 2s');
      const ids = JSON.parse((await session.run('"$baton" doctor --json --session-timeout 2s')).stdout).findings;
      expect(ids).toMatchObject([{ id: expect.stringMatching(/^session-timeout/), where: "session" }]);
      expect(ended.code).toBe(ids[0].severity === "problem" ? 1 : 0);
      expect(ended.stdout).toMatch(/^SEVERITY.*\n(warning|problem) +session-timeout.* session +/);
    });

    test("finds failed items and runs, and dead letters, until somebody mends or ignores them", async () => {
      await session.run('"$baton" pool work --items good,bad --done-ttl 1h -- sh -c \'[ "$BATON_ITEM" = good ]\'');
      await session.run('"$baton" lock daily --tick "0 0 * * *" --timezone UTC --catch-up 1d -- false');
      const found = await session.run('"$baton" doctor --json -q');
      expect(found.code).toBe(1);
      expect(JSON.parse(found.stdout).findings).toMatchObject([
        {
          ...{ id: "pool-items-failed", where: 'pool "work"', what: "1 item failed" },
          action: "run the call again to retry them; to list them: baton pool status work",
        },
        {
          ...{ id: "schedule-failing", where: 'schedule "0 0 * * *" of lock "daily"' },
          action: "see why: baton history daily; run the job by hand if it cannot wait for its next tick, then baton " +
            "history forget daily",
        },
      ]);
      expect(await session.run('"$baton" history forget daily')).toMatchObject({ code: 0 });
      const ids = JSON.parse((await session.run('"$baton" doctor --json -q')).stdout).findings;
      expect(ids.map(({ id }: { id: string }) => id)).toEqual(["pool-items-failed"]);
      await session.run('"$baton" lock daily2 --tick "0 0 * * *" --timezone UTC --catch-up 1d -- false');
      const ignoring = await session.run('"$baton" doctor --ignore pool-items-failed --ignore schedule-failing');
      expect(ignoring).toMatchObject({ code: 0, stdout: "", stderr: expect.stringContaining("no problems found") });
      const wrong = await session.run('"$baton" doctor --ignore pool-items-faild');
      expect(wrong).toMatchObject({ code: 64, stdout: "" });
      expect(wrong.stderr).toMatch(/"pool-items-faild".*did you mean "pool-items-failed".*schedule-overdue/);
    });
  });
}

test("takes no names, and says when no server answers", async () => {
  await using session = new BatonSession({ BATON_SERVERS: "127.0.0.1:1" });
  expect(await session.run('"$baton" doctor x')).toMatchObject({ code: 64, stdout: "" });
  expect(await session.run('"$baton" doctor --connect-timeout 500ms')).toMatchObject({ code: 69, stdout: "" });
});
