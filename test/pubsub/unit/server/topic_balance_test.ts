import { expect, test } from "bun:test";
import { decideTopicsToGiveAway } from "../../../../src/pubsub/server/topic_balance.ts";

const shareOf = (counts: Readonly<Record<string, number>>, server = "s1") =>
  decideTopicsToGiveAway(new Map(Object.entries(counts)), server);

test("a server gives topics away only if it has clearly more than its share", () => {
  expect(shareOf({ s1: 10, s2: 0 })).toEqual({ to: "s2", count: 5 });
  expect(shareOf({ s1: 10, s2: 10, s3: 0 })).toBeNull(); // 10 is not more than 1.25 × 6.7 + 2
  expect(shareOf({ s1: 30, s2: 30, s3: 0 })).toEqual({ to: "s3", count: 10 });
  expect(shareOf({ s1: 3, s2: 0 })).toBeNull();
  expect(shareOf({ s1: 2, s2: 9 })).toBeNull();
});

test("a server that is alone, or takes no topics, gives none", () => {
  expect(shareOf({ s1: 100 })).toBeNull();
  expect(shareOf({ s2: 100, s3: 0 })).toBeNull();
  expect(shareOf({})).toBeNull();
});

test("servers that share by this rule come to rest with even shares", () => {
  const counts = new Map([["s1", 1000], ["s2", 3], ["s3", 0], ["s4", 400]]);
  for (let check = 0; check < 100; check++) {
    for (const server of counts.keys()) {
      const share = decideTopicsToGiveAway(counts, server);
      if (share === null) continue;
      counts.set(server, (counts.get(server) ?? 0) - share.count);
      counts.set(share.to, (counts.get(share.to) ?? 0) + share.count);
    }
  }
  const mean = 1403 / 4;
  expect([...counts.keys()].flatMap((server) => decideTopicsToGiveAway(counts, server) ?? [])).toEqual([]);
  for (const count of counts.values()) expect(count).toBeLessThanOrEqual(1.25 * mean + 2);
});
