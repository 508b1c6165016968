/** `baton cron`: what it says about crontab files, and what it runs. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { backends, describeBackend, type RunningBackend } from "../support/backends.ts";
import { BatonSession } from "../support/baton_session.ts";
import { connect } from "../../src/zookeeper/zookeeper_client.ts";
import { parseServers } from "../../src/zookeeper/hosts.ts";

setDefaultTimeout(60_000);

describe("without a server", () => {
  let session: BatonSession;
  beforeAll(() => session = new BatonSession({ BATON_SERVERS: "127.0.0.1:1", TZ: "UTC" }));
  afterAll(() => session[Symbol.asyncDispose]());

  test("check counts the jobs of a valid file, and names each mistake with its line", async () => {
    writeFileSync(session.path("good.cron"), "#baton name=nightly\n0 3 * * * true\n@hourly true\n");
    expect(await session.run('"$baton" cron check good.cron')).toMatchObject({
      code: 0,
      stdout: "",
      stderr: "baton: good.cron: 2 jobs, no mistakes\n",
    });
    writeFileSync(session.path("bad.cron"), "MAILTO=x\n0 25 * * * true\n0 3 * * * root true\n");
    const bad = await session.run('"$baton" cron check bad.cron');
    expect(bad).toMatchObject({ code: 78, stdout: "" });
    expect(bad.stderr.split("\n").map((line) => line.slice(0, 40))).toEqual([
      'baton: bad.cron:2: "0 25 * * *" is not a',
      'baton: bad.cron:3: "root" is a user of t',
      "baton: bad.cron:1: warning: baton sends ",
      "baton: bad.cron: 0 jobs, 2 mistakes",
      "",
    ]);
    expect((await session.run('"$baton" cron next bad.cron')).code).toBe(78);
    expect(await session.run('"$baton" cron check missing.cron')).toMatchObject({ code: 74, stdout: "" });
  });

  test("next prints the ticks of all jobs in their order, and local times around the end of daylight saving", async () => {
    writeFileSync(
      session.path("fleet.cron"),
      "CRON_TZ=Europe/Berlin\n#baton name=fixed\n30 2 * * * true\n#baton name=follows\n*/30 2 * * * date +\\%F\n",
    );
    const shown = await session.run('"$baton" cron next fleet.cron -n 3 --from 2026-10-24T22:00Z');
    expect(shown).toMatchObject({ code: 0, stderr: "" });
    expect(shown.stdout.split("\n").map((line) => line.trimEnd().replaceAll(/ {2,}/g, " | "))).toEqual([
      "TICK | LOCAL TIME | NAME | COMMAND",
      "2026-10-25T00:00Z | Sun 2026-10-25 02:00 CEST | follows | date +%F",
      "2026-10-25T00:30Z | Sun 2026-10-25 02:30 CEST | fixed | true",
      "2026-10-25T00:30Z | Sun 2026-10-25 02:30 CEST | follows | date +%F",
      "2026-10-25T01:00Z | Sun 2026-10-25 02:00 CET | follows | date +%F",
      "2026-10-26T01:30Z | Mon 2026-10-26 02:30 CET | fixed | true",
      "2026-10-27T01:30Z | Tue 2026-10-27 02:30 CET | fixed | true",
      "",
    ]);
  });
});

for (const kind of backends) {
  describeBackend(kind, () => {
    let backend: RunningBackend;
    let session: BatonSession;
    beforeAll(async () => {
      backend = await kind.start();
      session = new BatonSession({ BATON_SERVERS: backend.servers, TZ: "UTC" });
    }, 40_000);
    afterAll(async () => {
      await session[Symbol.asyncDispose]();
      await backend.close();
    });

    test("reset sets back a schedule that is settled up to a time in the future, and nothing else", async () => {
      const call = '"$baton" lock wound --tick "*/5 * * * *" --catch-up 1h -- true';
      expect((await session.run('"$baton" cron reset wound')).code).toBe(1);
      expect((await session.run(call)).code).toBe(0);
      const unchanged = await session.run('"$baton" cron reset wound');
      expect(unchanged).toMatchObject({ code: 1, stdout: "" });
      expect(unchanged.stderr).toContain("which is not in the future: nothing was changed");
      await using zk = await connect({ servers: parseServers(backend.servers), connectTimeoutMs: 10_000 });
      const [id] = (await zk.getChildren("/baton/ticks/wound")).children;
      const path = `/baton/ticks/wound/${id}`;
      const { data, stat } = await zk.getData(path);
      const uptoMs = Date.now() + 3_600_000;
      const wound = { ...JSON.parse(new TextDecoder().decode(data)), uptoMs };
      await zk.setData(path, new TextEncoder().encode(JSON.stringify(wound)), stat.version);
      expect(await session.run(call)).toMatchObject({ code: 78 });
      const reset = await session.run('"$baton" cron reset wound --json');
      expect(reset.code).toBe(0);
      expect(JSON.parse(reset.stdout).schedules[0].settled_until).toBe(new Date(uptoMs).toISOString());
      const after = await session.run('"$baton" history wound --json');
      expect(Date.parse(JSON.parse(after.stdout).schedules[0].settled_until)).toBeLessThanOrEqual(Date.now() + 1000);
      expect((await session.run(call)).code).toBe(81);
    });
  });
}
