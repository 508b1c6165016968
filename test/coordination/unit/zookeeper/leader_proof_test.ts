import { describe, expect, test } from "bun:test";
import { LeaderProof } from "../../../../src/protocols/zookeeper/leader_proof.ts";
import { zooKeeperErrorNumbers } from "../../../../src/protocols/zookeeper/jute/zookeeper_error_codes.ts";
import {
  multiOperationCode,
  zooKeeperOperations,
} from "../../../../src/protocols/zookeeper/jute/zookeeper_operations.ts";

const relayMs = 1000;
const sync = zooKeeperOperations.sync.code;

describe("what the leader has vouched for", () => {
  test("is the handshake at first: sessions are made and taken up again at the leader", () => {
    expect(new LeaderProof(relayMs, 50).provenMs).toBe(50);
  });

  test("is the last request that a follower must have told it of before the answered one was sent", () => {
    const proof = new LeaderProof(relayMs, 0);
    const proves = [100, 500, 900, 1300, 1700].map((sentMs) => proof.recordSent(sentMs));
    proof.recordResponse(sync, 0, proves[4] ?? NaN);
    expect(proof.provenMs).toBe(500);
  });

  test("does not depend on how late the answer comes, nor on what was sent since", () => {
    const proof = new LeaderProof(relayMs, 0);
    proof.recordSent(100);
    const proves = proof.recordSent(1100);
    for (let sentMs = 1110; sentMs < 9000; sentMs += 10) proof.recordSent(sentMs);
    proof.recordResponse(sync, 0, proves);
    expect(proof.provenMs).toBe(100);
  });

  test("is not moved by what a follower answers itself, nor by a refusal", () => {
    const proof = new LeaderProof(relayMs, 0);
    let proves = 0;
    for (let sentMs = 100; sentMs <= 5000; sentMs += 100) proves = proof.recordSent(sentMs);
    for (const name of ["ping", "exists", "getData", "getChildren2", "setWatches"] as const) {
      proof.recordResponse(zooKeeperOperations[name].code, 0, proves);
    }
    proof.recordResponse(sync, zooKeeperErrorNumbers.THROTTLEDOP, proves);
    expect(proof.provenMs).toBe(0);
  });

  test.each([["multi", multiOperationCode], ["create2", zooKeeperOperations.create2.code], [
    "delete",
    zooKeeperOperations.delete.code,
  ]])(
    "is moved by a %s",
    (_name, code) => {
      const proof = new LeaderProof(relayMs, 0);
      proof.recordSent(100);
      proof.recordResponse(code, 0, proof.recordSent(1100));
      expect(proof.provenMs).toBe(100);
    },
  );

  test("is never later than the truth, and at most a grain earlier, however much is sent", () => {
    const proof = new LeaderProof(relayMs, 0);
    for (let sentMs = 1; sentMs <= 20_000; sentMs++) {
      const proves = proof.recordSent(sentMs);
      if (sentMs % 500 !== 0 || sentMs <= 2000) continue;
      proof.recordResponse(sync, 0, proves);
      expect(proof.provenMs).toBeLessThanOrEqual(sentMs - relayMs);
      expect(proof.provenMs).toBeGreaterThan(sentMs - relayMs - relayMs / 16 - 1);
    }
  });

  test("is every answer where there is one server only", () => {
    const proof = new LeaderProof(0, 0);
    proof.recordResponse(zooKeeperOperations.ping.code, 0, proof.recordSent(700));
    expect(proof.provenMs).toBe(700);
  });
});
