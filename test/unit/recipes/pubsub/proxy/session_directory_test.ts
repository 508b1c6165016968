/** A proxy's view of servers and topics over its sessions. */
import { expect, test } from "bun:test";
import { PubsubPath } from "../../../../../src/recipes/pubsub/ownership/pubsub_path.ts";
import { SessionDirectory } from "../../../../../src/recipes/pubsub/proxy/session_directory.ts";
import type { Clock } from "../../../../../src/support/clock.ts";
import { FakeTree } from "../../../../support/fake_tree.ts";
import { FakeZooKeeper } from "../../../../support/fake_zookeeper.ts";
import { hastyClock } from "../../../../support/hasty_clock.ts";

test("a proxy that cannot announce itself tries more and more seldom", async () => {
  const hasty = hastyClock(100);
  const waits: number[] = [];
  const clock: Clock = {
    now: () => hasty.now(),
    noticeSuspend: () => {},
    after(delayMs, callback) {
      waits.push(delayMs);
      const immediate = setImmediate(callback);
      return () => clearImmediate(immediate);
    },
  };
  const directory = new SessionDirectory({ path: new PubsubPath("/baton"), clock, onProblem: () => {} });
  const [tree, stopping] = [new FakeTree(), new AbortController()];
  let sessions = 0;
  const open = () => {
    if (++sessions === 40) stopping.abort(new Error("seen enough"));
    return Promise.resolve(new FakeZooKeeper(tree, hasty, { timeoutMs: 1e9 }));
  };
  // No name: the tree refuses it each time.
  const running = directory.run(open, { id: "x".repeat(1025), endpoint: "tcp://p", storeId: "p" }, stopping.signal);
  await running.catch((thrown) => expect(thrown.message).toBe("seen enough"));
  expect(Math.max(...waits)).toBeGreaterThan(1000);
});
