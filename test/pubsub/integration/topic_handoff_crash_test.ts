/** A handoff cut at every step of either side: one owner, nothing lost, nothing left over. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { connectToZooKeeper } from "../../../src/protocols/zookeeper/zookeeper_client.ts";
import { parseZooKeeperServers } from "../../../src/protocols/zookeeper/hosts.ts";
import { newGuid } from "../../../src/base/support/guid.ts";
import { describeBackend, type RunningBackend } from "../../support/backends.ts";
import { CrashPoint } from "../../support/crash_point.ts";
import { eventually } from "../../support/eventually.ts";
import { type CrewServer, OwnershipCrew } from "../../support/ownership_crew.ts";
import { tierBackends } from "../../support/tier.ts";

setDefaultTimeout(60_000);

/** What happens to one side at a step: its process is gone before or after it, or its session ends. */
const faults = ["before", "after", "session"] as const;
type Fault = typeof faults[number];
/** Rounds at a time. */
const roundsAtOnce = 6;

for (const kind of tierBackends) {
  describeBackend(kind, () => {
    let backend: RunningBackend;
    beforeAll(async () => void (backend = await kind.start()), 60_000);
    afterAll(() => backend.close());

    /** False when the handoff, and all that came after it, took fewer steps than that. */
    async function round(side: "s1" | "s2", fault: Fault, step: number, isCutOff: boolean): Promise<boolean> {
      await using crew = new OwnershipCrew(
        `/crew-${newGuid().slice(0, 12)}`,
        () => connectToZooKeeper({ servers: parseZooKeeperServers(backend.servers), sessionTimeoutMs: 10_000 }),
      );
      crew.handoffMs = 300;
      const crash = new CrashPoint(0, fault === "session" ? "before" : fault);
      const never = new CrashPoint();
      const one = await crew.start("s1", side === "s1" ? crash : never);
      const two = await crew.start("s2", side === "s2" ? crash : never);
      const router = await crew.router();
      for (const id of ["a", "b"]) await crew.put(router, "t", id);
      one.store.move("t", 1, 1);
      // The owner counts its topic when it likes: not a step of the handoff.
      await eventually(async () => (await one.zk.exists(crew.path.ownedTopics("s1")))?.numChildren === 1);
      const isHit = aim(crash, side === "s1" ? one : two, fault, step);

      if (isCutOff) crew.cutOff.add("s2");
      const moving = one.ownership.handOff("t", "s2").then(() => {}, () => {});
      await Promise.race([moving, crash.crashed]);
      if (crash.isCrashed) await crew.start(side);
      else crash.crashIn(0); // the handoff is over

      const last = await crew.put(router, "t", "c");
      expect(last.seq).toBe(3);
      const stores = ["s1", "s2"].map((id) => crew.store(id));
      await eventually(() => stores.filter((store) => store.row("t").copy !== null).length === 1, {
        what: "the old copy to be dropped",
        withinMs: 20_000,
      });
      await eventually(() => stores.every((store) => store.row("t").staged === null), { withinMs: 20_000 });
      expect(crew.store(last.by).content("t")).toEqual({ log: ["a", "b", "c"], cursor: 1 });
      return isHit();
    }

    function aim(crash: CrashPoint, server: CrewServer, fault: Fault, step: number): () => boolean {
      if (fault !== "session") {
        crash.crashIn(step);
        return () => crash.isCrashed;
      }
      const target = crash.steps.length + step;
      let isHit = false;
      const { zk } = server;
      crash.onStep = (count) => {
        if (count !== target) return;
        isHit = true;
        void zk.close();
      };
      return () => isHit;
    }

    async function everyStep(what: string, side: "s1" | "s2", fault: Fault, isCutOff = false): Promise<void> {
      for (let first = 1;; first += roundsAtOnce) {
        const steps = Array.from({ length: roundsAtOnce }, (_, index) => first + index);
        const hits = await Promise.all(steps.map((step) => round(side, fault, step, isCutOff)));
        if (!hits.includes(false)) continue;
        const count = first + hits.indexOf(false) - 1;
        console.log(`handoff: ${what}: ${count} steps`);
        expect(count).toBeGreaterThan(4);
        return;
      }
    }

    for (const side of ["s1", "s2"] as const) {
      for (const fault of faults) {
        const who = side === "s1" ? "the owner" : "the receiver";
        const what = fault === "session" ? `${who}'s session ends at` : `${who} is gone ${fault}`;
        test(`${what} each step of a handoff`, () => everyStep(`${what} each step`, side, fault));
      }
    }

    for (const fault of faults) {
      const what = fault === "session" ? "its session ends at" : `it is gone ${fault}`;
      test(`the receiver is cut off, and the owner takes the topic back: ${what} each step`, async () => {
        await everyStep(`taking back, ${what} each step`, "s1", fault, true);
      });
    }
  });
}
