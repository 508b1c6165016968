/** docs/examples/ensemble: the files as shipped, with nothing but the places of the servers put in. */
import { expect, setDefaultTimeout, test } from "bun:test";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describeBackend, zooKeeperEnsemble } from "../../support/backends.ts";
import { BatonSession } from "../../support/baton_session.ts";
import { eventually } from "../../support/eventually.ts";

setDefaultTimeout(90_000);

const folder = join(import.meta.dir, "../../../docs/examples/ensemble");
const shipped = (name: string) => readFileSync(join(folder, name), "utf8");

/** What a test has to choose for itself: places, and which servers there are. */
const ownPlaces = /^(#|$|dataDir=|clientPort=|4lw\.|server\.\d)/;

describeBackend(zooKeeperEnsemble, () => {
  test("the shipped files make an ensemble that goes on without one server and stops jobs without two", async () => {
    const configLines = shipped("zoo.cfg").split("\n").filter((line) => !ownPlaces.test(line));
    expect(configLines).toContain("tickTime=500");
    const backend = await zooKeeperEnsemble.start({ configLines });
    await using session = new BatonSession();
    const config = session.path(".config/baton/config.toml");
    mkdirSync(dirname(config), { recursive: true });
    const text = shipped("config.toml");
    expect(text).toContain("zk1:2181,zk2:2181,zk3:2181");
    writeFileSync(config, text.replace("zk1:2181,zk2:2181,zk3:2181", backend.servers));
    try {
      expect(await session.run('"$baton" config check')).toMatchObject({ code: 0 });
      const doctor = await session.run('"$baton" doctor');
      const findings = doctor.stdout.split("\n").filter((line) => line !== "" && !line.startsWith("SEVERITY"));
      // Debian's release is one that can lose acknowledged writes; each of its servers is named.
      const isOld = zooKeeperEnsemble.release === "debian";
      expect([doctor.code, findings.length]).toEqual([0, isOld ? 3 : 0]);
      for (const line of findings) {
        expect(line).toMatch(/^warning +server-release +server 127\.0\.0\.1:\d+ +.*ZOOKEEPER-4785/);
      }
      const other = await session.run('BATON_SERVERS=embedded "$baton" lock nightly -- echo runs');
      expect(other).toMatchObject({ code: 78, stdout: "" });

      const job = session.start('exec "$baton" lock nightly -- sh -c "echo holds; exec sleep 1000"');
      await eventually(() => job.stdout() === "holds\n", { withinMs: 20_000 });
      expect(await session.run('"$baton" lock -n nightly -- echo runs')).toMatchObject({ code: 75, stdout: "" });

      const leader = await backend.leader();
      await leader.kill();
      const told = await eventually(async () => {
        const asked = await session.run('"$baton" who nightly');
        return asked.code === 0 && asked;
      }, { withinMs: 30_000 });
      expect(told.stdout).toContain("holds");
      expect(job.child.exitCode).toBeNull();

      await backend.nodes.find((node) => node !== leader)?.kill();
      expect(await job.ended).toMatchObject({ code: 79 });
    } finally {
      await backend.close();
    }
  });
});
