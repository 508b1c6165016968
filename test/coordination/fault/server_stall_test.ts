/** One of three servers stands still for longer than T: every running job moves to another server within its lease. */
import { expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "../../../src/base/support/clock.ts";
import { sleep } from "../../../src/base/support/deadline.ts";
import { type ServerNode, zooKeeperEnsemble } from "../../support/backends.ts";
import { eventually } from "../../support/eventually.ts";
import { fourLetterWord } from "../../support/four_letter_word.ts";
import { describeWithPeer } from "../../support/peers.ts";
import { Contender } from "./lock/contender.ts";
import { ObserverProcess } from "./lock/observer_process.ts";
import { batonWrapper } from "./lock/wrappers.ts";

/** tickTime × syncLimit, the time a leader takes to leave a follower behind, is 2 s: well below T/2. */
const server = { tickTimeMs: 500, syncLimit: 4 };
const sessionTimeoutMs = 10_000;
const stalledMs = 1.3 * sessionTimeoutMs;
const jobs = 20;

describeWithPeer("zookeeper", "jobs on three servers", () => {
  test(`${jobs} of ${jobs} survive a follower that stands still, and then the leader`, async () => {
    const folder = mkdtempSync(join(tmpdir(), "baton-stall-"));
    const ensemble = await zooKeeperEnsemble.start(server);
    const observer = new ObserverProcess();
    const contenders: Contender[] = [];
    try {
      for (let number = 0; number < jobs; number++) {
        const name = `job-${number}`;
        const options = { group: "stall", name, lock: name, folder, observer, sessionTimeoutMs };
        contenders.push(await Contender.start(ensemble, { ...options, wrapper: batonWrapper, childKind: "plain" }));
      }
      const missing = () => contenders.filter(({ isIn }) => !isIn).map(({ name, stderr }) => `${name}: ${stderr}`);
      await eventually(() => missing().length === 0, { withinMs: 60_000, what: `${jobs} running jobs` });

      const leader = await ensemble.leader();
      const follower = ensemble.nodes.find((node) => node !== leader);
      if (follower === undefined) throw new Error("Nobody follows");
      await stall(follower);
      expect(missing()).toEqual([]);
      // One server at a time: before the follower is back, the leader's silence would leave no majority.
      await eventually(() => isWhole(leader), { withinMs: 30_000, what: "the follower to be back", everyMs: 50 });
      await stall(await ensemble.leader());
      expect(missing()).toEqual([]);

      for (const contender of contenders) contender.letLeave();
      await eventually(() => contenders.every(({ exit }) => exit !== null), {
        withinMs: 60_000,
        what: "the jobs' end",
      });
      expect(contenders.map(({ exit, stderr }) => exit?.code === 0 ? "" : stderr)).toEqual(contenders.map(() => ""));
    } finally {
      for (const contender of contenders) await contender.close();
      observer[Symbol.dispose]();
      await ensemble.close();
      rmSync(folder, { recursive: true, force: true });
    }
  }, 180_000);
});

async function isWhole(leader: ServerNode): Promise<boolean> {
  return /^zk_synced_followers\t2/m.test(await fourLetterWord(leader.address, "mntr"));
}

/** Stopped for longer than any lease lasts that it alone could renew. */
async function stall(node: ServerNode): Promise<void> {
  node.pause();
  await sleep(systemClock(), stalledMs);
  node.resume();
}
