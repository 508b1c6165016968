import { beforeEach, describe, expect, test } from "bun:test";
import { campaign, type CampaignOptions, resign } from "../../../../src/coordination/election/campaign.ts";
import {
  appendLeaderGrant,
  fillInLeaderTokens,
  type Grant,
  type LeaderChange,
  LeaderChanges,
  leaderGrantsMax,
  leaderGrantsSince,
} from "../../../../src/coordination/election/election_history.ts";
import {
  checkLeaderValue,
  electionStateCodec,
  parseLeaderGrants,
} from "../../../../src/coordination/election/election_state.ts";
import { readLeaderStatus, watchLeader } from "../../../../src/coordination/election/leader_status.ts";
import type { FakeZooKeeper } from "../../../support/fake_zookeeper.ts";
import { LockBench } from "../../../support/lock_bench.ts";

let bench: LockBench;
beforeEach(() => void (bench = new LockBench()));

async function lead(value: string, options: Partial<CampaignOptions> = {}) {
  const zk = bench.client();
  return { zk, lease: await bench.within(stand(zk, value, options)) };
}

const stand = (zk: FakeZooKeeper, value: string, options: Partial<CampaignOptions> = {}) =>
  campaign(zk, "echo", { value, clock: bench.clock, ...options });

const grantOf = (index: number, token = index * 10): Grant => ({
  index,
  token: BigInt(token),
  value: `v${index}`,
  sinceMs: 0,
  id: `g${index}`,
});

describe("the history", () => {
  test("names each grant with its token, though none could know its own", async () => {
    const tokens: bigint[] = [];
    for (let term = 1; term <= 3; term++) {
      const { lease } = await lead(`host${term}:1`);
      tokens.push(lease.fencingToken);
      const { leader, history } = await bench.within(readLeaderStatus(bench.client(), "echo"));
      expect(leader).toMatchObject({
        index: term,
        token: lease.fencingToken,
        value: `host${term}:1`,
        id: lease.holderId,
      });
      expect(history.map(({ token }) => token)).toEqual(tokens);
      await lease.release();
    }
    expect((await bench.within(readLeaderStatus(bench.client(), "echo"))).leader).toBeNull();
  });

  test("is kept by somebody who only tells those it passes", async () => {
    const first = await lead("one:1");
    const patient = stand(bench.client(), "two:1", { priority: 200 });
    await bench.clock.advance(0);
    const urgent = stand(bench.client(), "three:1", { priority: 50 });
    await bench.clock.advance(0);
    const { leader } = await bench.within(readLeaderStatus(bench.client(), "echo"));
    expect(leader).toMatchObject({ token: first.lease.fencingToken, value: "one:1" });
    await first.lease.release();
    await bench.within(urgent.then((lease) => lease.release()));
    await bench.within(patient);
    const { history } = await bench.within(readLeaderStatus(bench.client(), "echo"));
    expect(history.map(({ index, value }) => [index, value])).toEqual([[1, "one:1"], [2, "three:1"], [3, "two:1"]]);
  });

  test("goes on counting after everybody has left and what is empty was reaped", async () => {
    await (await lead("one:1")).lease.release();
    for (let level = 0; level < 3; level++) bench.tree.reap();
    await lead("two:1");
    expect((await bench.within(readLeaderStatus(bench.client(), "echo"))).leader?.index).toBe(2);
  });

  test("has no more than the last 64 grants, and counts on", () => {
    let history: Grant[] = [];
    for (let term = 1; term <= 100; term++) {
      history = fillInLeaderTokens(
        appendLeaderGrant(history, { value: "v", sinceMs: 0, id: `g${term}` }),
        BigInt(term),
      );
    }
    expect(history.length).toBe(leaderGrantsMax);
    expect([history[0]?.index, history.at(-1)?.index, history.at(-1)?.token]).toEqual([37, 100, 100n]);
  });

  test("of something else is refused, and the node is named", () => {
    const data = new TextEncoder().encode('{"layout":1,"limit":null,"history":[{"index":0}]}');
    expect(() => parseLeaderGrants({ data, mzxid: 1n }, "/baton/elections/echo")).toThrow(
      '"/baton/elections/echo" is not an election of this version of baton: ' +
        'its history contains the invalid entry {"index":0}',
    );
    const state = electionStateCodec("v", "/e");
    expect(parseLeaderGrants({ data: state.initial(null), mzxid: 1n }, "/e")).toEqual([]);
  });
});

describe("whoever has seen a grant is told of", () => {
  const history = [3, 4, 5].map((index) => grantOf(index));

  test("what came after it", () => {
    expect(leaderGrantsSince(history, grantOf(5))).toEqual({ missed: 0, grants: [] });
    expect(leaderGrantsSince(history, grantOf(3))).toEqual({ missed: 0, grants: history.slice(1) });
    expect(leaderGrantsSince(history, grantOf(2))).toEqual({ missed: 0, grants: history });
  });

  test("how many are gone from the history", () => {
    expect(leaderGrantsSince(history, grantOf(1))).toEqual({ missed: 1, grants: history });
  });

  test("a history that has begun anew, where nobody knows how many", () => {
    const anew = [1, 2].map((index) => grantOf(index, 100 + index));
    expect(leaderGrantsSince(anew, grantOf(5))).toEqual({ missed: null, grants: anew });
    expect(leaderGrantsSince(anew, grantOf(1))).toEqual({ missed: null, grants: anew });
  });
});

describe("the changes of an election", () => {
  const kinds = (changes: LeaderChange[]) =>
    changes.map((change) =>
      change.kind === "elected" ? change.grant.index : change.kind === "missed" ? `-${change.count}` : change.kind
    );
  const reading = (from: number, to: number, isLed = true) => {
    const history = Array.from({ length: to - from + 1 }, (_, at) => grantOf(from + at));
    return { history, leader: isLed ? history.at(-1) ?? null : null };
  };

  test("begin with who leads now, and each is told once", () => {
    const changes = new LeaderChanges();
    expect(kinds(changes.changesAfter(reading(1, 3)))).toEqual([3]);
    expect(kinds(changes.changesAfter(reading(1, 3)))).toEqual([]);
    expect(kinds(changes.changesAfter(reading(1, 3, false)))).toEqual(["vacant"]);
    expect(kinds(changes.changesAfter(reading(1, 3, false)))).toEqual([]);
    expect(kinds(changes.changesAfter(reading(1, 5)))).toEqual([4, 5]);
    expect(kinds(changes.changesAfter(reading(1, 6, false)))).toEqual([6, "vacant"]);
    expect(kinds(changes.changesAfter(reading(20, 83)))[0]).toBe("-13");
  });

  test("of one that nobody has stood for yet begin with nobody", () => {
    const changes = new LeaderChanges();
    expect(kinds(changes.changesAfter({ leader: null, history: [] }))).toEqual(["vacant"]);
    expect(kinds(changes.changesAfter(reading(1, 2)))).toEqual([1, 2]);
    const late = new LeaderChanges();
    late.changesAfter({ leader: null, history: [] });
    expect(kinds(late.changesAfter(reading(5, 6)))).toEqual(["-4", 5, 6]);
  });

  test("are followed over a new session without missing one", async () => {
    const changes = new LeaderChanges();
    const told: LeaderChange[] = [];
    const follow = async (zk: FakeZooKeeper) => {
      for await (const change of watchLeader(zk, "echo", { changes, clock: bench.clock })) told.push(change);
    };
    const first = bench.client();
    const following = follow(first).catch((reason) => reason);
    await bench.clock.advance(0);
    await (await lead("one:1")).lease.release();
    await bench.clock.advance(0);
    await first.close();
    await bench.within(following);
    await (await lead("two:1")).lease.release();
    await lead("three:1");
    const second = follow(bench.client());
    second.catch(() => {});
    await bench.clock.advance(0);
    const values = told.flatMap((change) => change.kind === "elected" ? [change.grant.value] : []);
    expect(values).toEqual(["one:1", "two:1", "three:1"]);
  });
});

describe("a leader", () => {
  test("that is asked to resign loses the leadership for its user, and holds it until the release", async () => {
    const { lease } = await lead("one:1");
    const next = stand(bench.client(), "two:1");
    const resigning = resign(bench.client(), "echo", {
      clock: bench.clock,
      waitMs: 5000,
      revocation: { by: "ann", reason: "an upgrade" },
    });
    await bench.clock.advance(100);
    expect(String(lease.lost.reason)).toContain('Leadership "echo" was ended by ann, reason "an upgrade"');
    expect((await bench.within(readLeaderStatus(bench.client(), "echo"))).leader?.value).toBe("one:1");
    await lease.release();
    expect((await bench.within(resigning)).outcome).toBe("released");
    expect((await bench.within(next)).fencingToken).toBeGreaterThan(lease.fencingToken);
  });

  test("of worse priority is asked to step down, one of the same or better is not", async () => {
    const { lease } = await lead("one:1", { priority: 100 });
    const same = stand(bench.client(), "same:1", { priority: 100, preempt: true });
    await bench.clock.advance(100);
    expect(lease.lost.aborted).toBe(false);
    const better = stand(bench.client(), "better:1", { priority: 99, preempt: true });
    await bench.clock.advance(100);
    expect(String(lease.lost.reason)).toContain("a candidate of priority 99 is better");
    await lease.release();
    const leader = await bench.within(better);
    await bench.clock.advance(100);
    expect(leader.lost.aborted).toBe(false);
    await leader.release();
    await bench.within(same);
  });
});

test("a value is one line of 1,024 bytes at most", () => {
  checkLeaderValue("ü".repeat(512));
  expect(() => checkLeaderValue("ü".repeat(513))).toThrow(
    "A candidate's value of 1026 bytes is too long: the maximum is 1024",
  );
  expect(() => checkLeaderValue("")).toThrow("it is empty");
  expect(() => checkLeaderValue("a\nb")).toThrow("it contains a control character");
});
