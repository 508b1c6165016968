import { expect, test } from "bun:test";
import { BatonError } from "../../../../src/base/errors.ts";
import { CandidateSession } from "../../../../src/coordination/connect/candidate_session.ts";
import { parseZooKeeperServers } from "../../../../src/protocols/zookeeper/hosts.ts";
import type { ZooKeeper } from "../../../../src/protocols/zookeeper/zookeeper.ts";
import { FakeClock } from "../../../support/fake_clock.ts";

test("of one outage only the first try to open a session may speak, and the next outage has its own", async () => {
  const clock = new FakeClock(0);
  const told: string[] = [];
  const tries: boolean[] = [];
  let ended = new AbortController();
  let failuresLeft = 0;
  const session = new CandidateSession({
    connect: (_options, isRetry) => {
      tries.push(isRetry);
      if (failuresLeft-- > 0) return Promise.reject(new BatonError("UNREACHABLE", "zk1: no such host name"));
      ended = new AbortController();
      return Promise.resolve({ session: { ended: ended.signal } } as unknown as ZooKeeper);
    },
    options: { servers: parseZooKeeperServers("zk1") },
    clock,
    isPatient: true,
    onUnreachable: (why) => told.push(why),
  });
  const { signal } = new AbortController();
  await session.openSession(signal);
  for (const _ of [1, 2]) {
    ended.abort();
    failuresLeft = 2;
    const opened = session.openSession(signal);
    await clock.advance(60_000);
    await opened;
  }
  expect(tries).toEqual([false, false, true, true, false, true, true]);
  expect(told).toEqual(["zk1: no such host name", "zk1: no such host name"]);
});
