import { describe, expect, test } from "bun:test";
import { LeaderProof } from "../../../../src/clients/zookeeper/leader_proof.ts";
import { zooKeeperErrorNumbers } from "../../../../src/wire/jute/error_codes.ts";
import { multiCode, operations } from "../../../../src/wire/jute/operations.ts";

const relayMs = 1000;
const sync = operations.sync.code;

describe("what the leader has vouched for", () => {
  test("is the handshake at first: sessions are made and taken up again at the leader", () => {
    expect(new LeaderProof(relayMs, 50).provenMs).toBe(50);
  });

  test("is the last request that a follower must have told it of before the answered one was sent", () => {
    const proof = new LeaderProof(relayMs, 0);
    for (const sentMs of [100, 500, 900, 1300, 1700]) proof.sent(sentMs);
    proof.answered(sync, 0, 1700);
    expect(proof.provenMs).toBe(500);
  });

  test("is not moved by what a follower answers itself, nor by a refusal", () => {
    const proof = new LeaderProof(relayMs, 0);
    for (let sentMs = 100; sentMs <= 5000; sentMs += 100) proof.sent(sentMs);
    for (const name of ["ping", "exists", "getData", "getChildren2", "setWatches"] as const) {
      proof.answered(operations[name].code, 0, 5000);
    }
    proof.answered(sync, zooKeeperErrorNumbers.THROTTLEDOP, 5000);
    expect(proof.provenMs).toBe(0);
  });

  test.each([["multi", multiCode], ["create2", operations.create2.code], ["delete", operations.delete.code]])(
    "is moved by a %s",
    (_name, code) => {
      const proof = new LeaderProof(relayMs, 0);
      proof.sent(100);
      proof.answered(code, 0, 1100);
      expect(proof.provenMs).toBe(100);
    },
  );

  test("is never later than the truth, and at most a grain earlier, however much is sent", () => {
    const proof = new LeaderProof(relayMs, 0);
    for (let sentMs = 1; sentMs <= 20_000; sentMs++) {
      proof.sent(sentMs);
      if (sentMs % 500 !== 0 || sentMs <= 2000) continue;
      proof.answered(sync, 0, sentMs);
      expect(proof.provenMs).toBeLessThanOrEqual(sentMs - relayMs);
      expect(proof.provenMs).toBeGreaterThan(sentMs - relayMs - relayMs / 16 - 1);
    }
  });

  test("is every answer where there is one server only", () => {
    const proof = new LeaderProof(0, 0);
    proof.sent(700);
    proof.answered(operations.ping.code, 0, 700);
    expect(proof.provenMs).toBe(700);
  });
});
