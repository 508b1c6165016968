/** A reply cut at every request of the owner, the receiver and the proxy: one owner, and nothing lost or left over. */
import { expect, test } from "bun:test";
import { isTransientFailure } from "../../../../src/coordination/nodes/node_requests.ts";
import { cutEverywhere } from "../../../support/cut_everywhere.ts";
import { eventually } from "../../../support/eventually.ts";
import { FakeTree } from "../../../support/fake_tree.ts";
import { type Cut, FakeZooKeeper } from "../../../support/fake_zookeeper.ts";
import { hastyClock } from "../../../support/hasty_clock.ts";
import { OwnershipCrew } from "../../../support/ownership_crew.ts";

const clock = hastyClock(100);

/** Which of them has its answer lost; they connect in this order. */
const parties = ["the owner", "the receiver", "the proxy"];

for (const [index, party] of parties.entries()) {
  test(`the answer to any request of ${party} is lost`, async () => {
    await cutEverywhere(async (cut?: Cut) => {
      const tree = new FakeTree();
      const clients: FakeZooKeeper[] = [];
      const connect = () => {
        const own = cut !== undefined && clients.length === index ? { cut } : {};
        clients.push(new FakeZooKeeper(tree, clock, { timeoutMs: 1e9, ...own }));
        return Promise.resolve(clients.at(-1) as FakeZooKeeper);
      };
      await using crew = new OwnershipCrew("/baton", connect, clock);
      crew.handoffMs = 10_000;
      const one = await crew.start("s1");
      const two = await crew.start("s2");
      const router = await crew.router();
      expect(await crew.put(router, "t", "a")).toEqual({ seq: 1, by: "s1" });
      // Refused before anything was sealed: an operator asks again.
      await eventually(async () => (await one.ownership.handOff("t", "s2")).kind === "moved");
      expect(await crew.put(router, "t", "b")).toEqual({ seq: 2, by: "s2" });
      await eventually(() => one.store.row("t").copy === null);
      expect(two.store.content("t")?.log).toEqual(["a", "b"]);
      expect([one.store.row("t").staged, two.store.row("t").staged]).toEqual([null, null]);
      expect(crew.problems.filter((problem) => !isTransientFailure(problem))).toEqual([]);
      return clients[index]?.sent.length ?? 0;
    });
  }, 60_000);
}
