/** `baton metrics` on the keeper and on ZooKeeper: printed, written for node_exporter, and served. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { statSync } from "node:fs";
import { join } from "node:path";
import { historyNodePath } from "../../../src/coordination/history/history_log.ts";
import { tickSchedulesFolder } from "../../../src/coordination/tick/tick_state.ts";
import { parseZooKeeperServers } from "../../../src/protocols/zookeeper/hosts.ts";
import { connectToZooKeeper } from "../../../src/protocols/zookeeper/zookeeper_client.ts";
import { BackendSession } from "../../support/backend_session.ts";
import { backends, describeBackend } from "../../support/backends.ts";
import { eventually } from "../../support/eventually.ts";

setDefaultTimeout(60_000);

for (const kind of backends) {
  describeBackend(kind, () => {
    let session: BackendSession;
    beforeAll(async () => void (session = await BackendSession.start(kind)), 40_000);
    afterAll(() => session?.[Symbol.asyncDispose]());

    test("holders, waiters, ended holds, refusals and ticks are printed", async () => {
      const script = `
        "$baton" lock db --history -- true
        "$baton" lock db --history -- sh -c 'env -u BATON_HELD "$baton" lock other -n -- true; "$baton" metrics >"$dir/held"'
        "$baton" lock nightly --tick '* * * * *' --timezone UTC -- true
        "$baton" metrics`;
      const { stdout } = await session.run(script);
      const held = await session.run('cat "$dir/held"');
      expect(held.stdout).toContain('baton_lock_holders{name="db"} 1\n');
      expect(stdout).toContain("baton_up 1\n");
      expect(stdout).toContain('baton_lock_ends_total{name="db",result="done"} 2\n');
      expect(stdout).toContain('baton_lock_hold_seconds_count{name="db"} 2\n');
      expect(stdout).toContain('baton_tick_overdue{name="nightly",schedule="* * * * *"} 0\n');
    });

    test("what an ACL hides is missing in the metrics, and baton doctor says what it could not check", async () => {
      const calls = ["hidden", "shown"].map((name) =>
        `"$baton" lock ${name} --tick '* * * * *' --timezone UTC -- true`
      );
      expect((await session.run(calls.join("; "))).code).toBe(0);
      await using zk = await connectToZooKeeper({
        servers: parseZooKeeperServers(session.backend.servers),
        connectTimeoutMs: 10_000,
      });
      const folder = tickSchedulesFolder("hidden");
      const [id = ""] = (await zk.getChildren(folder)).children;
      for (const path of [historyNodePath("hidden"), `${folder}/${id}`]) {
        await zk.setAcl(path, [{ perms: 16, id: { scheme: "world", id: "anyone" } }], -1);
      }
      const { code, stdout } = await session.run('"$baton" metrics');
      expect(code).toBe(0);
      expect(stdout).toContain('baton_tick_overdue{name="shown",');
      expect(stdout).not.toMatch(/^baton_(tick_|lock_ends_).*name="hidden"/m);
      expect((await session.run('"$baton" doctor -q')).stdout).toMatch(
        /warning +schedule-hidden +lock "hidden" +an ACL hides a schedule of it/,
      );
    });

    test("a file for node_exporter is replaced at once, readable by others; 73 if it cannot be written", async () => {
      expect(await session.run('umask 077; "$baton" metrics --textfile "$dir/b.prom"')).toMatchObject({
        code: 0,
        stdout: "",
      });
      expect(statSync(join(session.folder, "b.prom")).mode & 0o777).toBe(0o644);
      expect((await session.run('cat "$dir/b.prom"; ls "$dir"')).stdout).toMatch(/^baton_up 1$[^]*^b\.prom$/m);
      // Another user of the folder must not be able to have a file elsewhere overwritten.
      const linked =
        'echo kept >"$dir/target"; ln -s target "$dir/c.prom.$$"; exec "$baton" metrics --textfile "$dir/c.prom"';
      expect((await session.run(linked)).code).toBe(0);
      expect((await session.run('cat "$dir/target"; head -n 1 "$dir/c.prom"')).stdout).toMatch(/^kept\n# HELP /);
      expect((await session.run('"$baton" metrics --textfile "$dir/none/b.prom"')).code).toBe(73);
      expect((await session.run('"$baton" metrics --textfile "$dir/b.txt"')).code).toBe(64);
    });

    test("a page is served; it says so when the servers cannot be read, and recovers", async () => {
      const page = session.start('exec "$baton" metrics --listen "unix:$dir/page" --every 1s');
      const ask = async (path: string) => {
        const response = await fetch(`http://baton${path}`, { unix: join(session.folder, "page") }).catch(() => null);
        return response === null ? null : { status: response.status, text: await response.text() };
      };
      await eventually(async () => (await ask("/healthz"))?.status === 200, { withinMs: 20_000 });
      expect((await ask("/metrics"))?.text).toContain("baton_up 1\n");
      const [node] = session.backend.nodes;
      await node?.pause();
      await eventually(async () => (await ask("/metrics"))?.text.includes("baton_up 0\n"), { withinMs: 20_000 });
      expect((await ask("/healthz"))?.status).toBe(503);
      await node?.resume();
      await eventually(async () => (await ask("/metrics"))?.text.includes("baton_up 1\n"), { withinMs: 30_000 });
      page.child.kill("SIGTERM");
      expect(await page.ended).toMatchObject({ signal: "SIGTERM" });
    });
  });
}
