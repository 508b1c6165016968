/**
 * Runs of one pool that are told different things, on real servers: all but one kind are refused before anything is
 * run.
 */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { connectToZooKeeper } from "../../../src/protocols/zookeeper/zookeeper_client.ts";
import { parseZooKeeperServers } from "../../../src/protocols/zookeeper/hosts.ts";
import type { BatonError } from "../../../src/base/errors.ts";
import type { PoolRunOptions } from "../../../src/coordination/pool/pool_run_options.ts";
import {
  defaultPoolPathTemplates,
  poolPath,
  type PoolPathTemplates,
} from "../../../src/coordination/pool/pool_path.ts";
import { systemClock } from "../../../src/base/support/clock.ts";
import { clearPoolResults } from "../../../src/coordination/pool/clear_pool_results.ts";
import { backends, describeBackend, type RunningBackend, zooKeeperEnsemble } from "../../support/backends.ts";
import { eventually } from "../../support/eventually.ts";
import { failureCode } from "../../support/failure_code.ts";
import { LockCrew } from "../../support/lock_crew.ts";
import { pathIn, pool } from "../../support/pool_crew.ts";
import { PoolWork } from "../../support/pool_work.ts";

setDefaultTimeout(30_000);

const pathWith = (crew: LockCrew, templates: Partial<PoolPathTemplates>) =>
  poolPath("c", { root: crew.root, templates: { ...defaultPoolPathTemplates, ...templates } });

for (const kind of [...backends, zooKeeperEnsemble]) {
  describeBackend(kind, () => {
    let backend: RunningBackend;
    beforeAll(async () => void (backend = await kind.start({ containerCheckMs: 100 })), 60_000);
    afterAll(() => backend.close());

    test("settings that differ from those of a running call are refused; nothing is run, listed or left", async () => {
      await using crew = new LockCrew(backend.servers);
      const [a, b] = await crew.clients(2);
      if (!a || !b) throw new Error("no clients");
      const work = new PoolWork();
      let lists = 0;
      const counted = { items: ["1", "2"], wait: 10_000, list: () => (lists++, Promise.resolve(["1", "2"])) };
      const cases: [string, Partial<PoolRunOptions>, Partial<PoolRunOptions>][] = [
        ["CONFIG", {}, { path: pathWith(crew, { item: "{root}/items/{component}/{item}" }) }],
        ["CONFIG", { path: pathWith(crew, { item: "{root}/items/{component}/{item}" }) }, {}],
        ["CONFIG", {}, { path: pathWith(crew, { component: "{root}/components/{component}" }) }],
        ["LIMIT_MISMATCH", {}, { total: 9 }],
        ["LIMIT_MISMATCH", { total: 9 }, {}],
        ["LIMIT_MISMATCH", { total: 9 }, { total: 8 }],
        ["none", {}, { path: pathWith(crew, { item: `${crew.root}/locks/c%2F{item}` }) }],
      ];
      for (const [code, options, others] of cases) {
        const first = pool(crew, a, work, { items: ["1"], ...options });
        await eventually(() => work.running.size === 1);
        lists = 0;
        const second = failureCode(pool(crew, b, work, { ...counted, ...others }));
        if (code === "none") await eventually(() => work.running.size === 2);
        else expect([await second, lists, work.running.size]).toEqual([code, 0, 1]);
        await work.endAll();
        expect(await second).toBe(code);
        expect(await first).toMatchObject({ done: 1 });
        await eventually(async () => ((await b.exists(pathIn(crew).runs))?.numChildren ?? 0) === 0);
      }
    });

    test("a run that waits for the component, or finds it busy, learns of other settings at once", async () => {
      await using crew = new LockCrew(backend.servers);
      const [a, b] = await crew.clients(2);
      if (!a || !b) throw new Error("no clients");
      const listing = Promise.withResolvers<string[]>();
      let isListing = false;
      const work = new PoolWork();
      const first = pool(crew, a, work, { items: [], list: () => (isListing = true, listing.promise) });
      await eventually(() => isListing);
      for (const wait of ["none", "forever"] as const) {
        expect(await failureCode(pool(crew, b, work, { items: ["1"], total: 1, wait }))).toBe("LIMIT_MISMATCH");
        expect(await failureCode(pool(crew, b, work, { items: ["1"], wait: "none" }))).toBe("LOCK_BUSY");
      }
      listing.resolve([]);
      await first;
    });

    test("of many that start at once with one of two settings, only one kind runs", async () => {
      await using crew = new LockCrew(backend.servers);
      const clients = await crew.clients(6);
      for (let round = 0; round < 10; round++) {
        const works = [new PoolWork(), new PoolWork()];
        const paths = [{}, { component: "{root}/components/{component}", item: "{root}/items/{component}/{item}" }];
        const refused: string[] = [];
        const runs = clients.map((zk, index) => {
          const path = pathWith(crew, paths[index % 2] ?? {});
          const work = works[index % 2] ?? new PoolWork();
          const run = pool(crew, zk, work, { items: [String(index)], path, wait: 20_000 });
          return run.then(() => {}, ({ code }: BatonError) => void refused.push(code));
        });
        const sizes = () => works.map(({ running }) => running.size).sort();
        // Whoever was refused later might have found nobody any more.
        await eventually(() => sizes()[1] === 3 && refused.length === 3, { what: "one kind to run", withinMs: 10_000 });
        expect([sizes(), refused]).toEqual([[0, 3], ["CONFIG", "CONFIG", "CONFIG"]]);
        for (const work of works) await work.endAll();
        await Promise.all(runs);
      }
    });

    test("when a session ends, so do its settings; nothing is left of a pool that nobody runs", async () => {
      await using crew = new LockCrew(backend.servers);
      const [a, b] = await crew.clients(2);
      if (!a || !b) throw new Error("no clients");
      const work = new PoolWork();
      const gone = await connectToZooKeeper({
        servers: parseZooKeeperServers(backend.servers),
        sessionTimeoutMs: 20_000,
      });
      const first = pool(crew, gone, work, { items: ["1"], total: 1 }).catch(() => {});
      await eventually(() => work.running.size === 1);
      expect(await failureCode(pool(crew, a, work, { items: ["2"] }))).toBe("LIMIT_MISMATCH");
      await gone.close();
      await work.endAll();
      await first;
      const second = pool(crew, a, work, { items: ["2"] });
      await eventually(() => work.running.has("2"));
      const { own, runs } = pathIn(crew);
      await clearPoolResults(b, { path: pathIn(crew), named: null, clock: systemClock() });
      expect((await b.getChildren(runs)).children.length).toBe(1); // what is in use is not forgotten
      await work.endAll();
      await second;
      await eventually(async () => await b.exists(own) === null, { what: "the server to reap it", withinMs: 25_000 });
    });
  });
}
