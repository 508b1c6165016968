import { describe, expect, test } from "bun:test";
import { LeaderProof } from "../../../../src/protocols/zookeeper/leader_proof.ts";
import { zooKeeperErrorNumbers } from "../../../../src/protocols/zookeeper/jute/zookeeper_error_codes.ts";
import {
  multiOperationCode,
  zooKeeperOperations,
} from "../../../../src/protocols/zookeeper/jute/zookeeper_operations.ts";
import { seededRandom, testSeed } from "../../../support/random.ts";

const seed = testSeed();
const relayMs = 1000;
const sync: number = zooKeeperOperations.sync.code;

/** Sends a request, and reads its response 1 ms later. */
function exchange(proof: LeaderProof, sentMs: number, { code = sync, err = 0 } = {}): void {
  const provesMs = proof.recordSent(sentMs);
  proof.recordResponse({ code, sentMs, provesMs }, { err, nowMs: sentMs + 1 });
}

/** Sends requests, all of which are answered at `answeredMs`. */
function exchangeLate(proof: LeaderProof, sentTimesMs: readonly number[], answeredMs: number): void {
  const sent = sentTimesMs.map((sentMs) => ({ code: sync, sentMs, provesMs: proof.recordSent(sentMs) }));
  for (const request of sent) proof.recordResponse(request, { err: 0, nowMs: answeredMs });
}

/**
 * Runs a client, a follower and a leader for a minute. In the first 50 s, holes in the network hold the client's
 * requests back. The leader asks the follower for its clients every half tick. Calls `read` after each response, with
 * the send time of the last request that the leader had heard of when it received the answered one.
 */
function runEnsemble(proof: LeaderProof, random: () => number, read: (knownMs: number) => void): void {
  const halfTickMs = relayMs / 4;
  const asksAtMs = Math.floor(random() * halfTickMs);
  let waiting: { code: number; sentMs: number; provesMs: number }[] = [];
  let nextMs = 0;
  let holeEndMs = 0;
  let receivedMs = 0;
  let knownMs = 0;
  for (let nowMs = 1; nowMs <= 60_000; nowMs++) {
    if (nowMs >= nextMs) {
      nextMs = nowMs + Math.ceil(random() * relayMs / 2);
      const code = random() < 0.5 ? sync : zooKeeperOperations.ping.code;
      waiting.push({ code, sentMs: nowMs, provesMs: proof.recordSent(nowMs) });
    }
    if (nowMs < 50_000 && random() < 0.0005) holeEndMs = nowMs + Math.ceil(random() * 3 * relayMs);
    if (nowMs % halfTickMs === asksAtMs) knownMs = receivedMs;
    if (nowMs < holeEndMs) continue;
    for (const request of waiting) {
      receivedMs = request.sentMs;
      proof.recordResponse(request, { err: 0, nowMs });
      read(knownMs);
    }
    waiting = [];
  }
}

describe("what the leader has vouched for", () => {
  test("is the handshake at first: sessions are made and taken up again at the leader", () => {
    expect(new LeaderProof(relayMs, 50).provenMs).toBe(50);
  });

  test("is the last request that a follower must have told it of before the answered one was sent", () => {
    const proof = new LeaderProof(relayMs, 0);
    for (const sentMs of [100, 500, 900, 1300, 1700]) exchange(proof, sentMs);
    expect(proof.provenMs).toBe(500);
  });

  test("does not depend on how late the answer comes, nor on what was sent since", () => {
    const proof = new LeaderProof(relayMs, 0);
    exchange(proof, 100);
    const provesMs = proof.recordSent(1100);
    for (let sentMs = 1110; sentMs < 9000; sentMs += 10) proof.recordSent(sentMs);
    proof.recordResponse({ code: sync, sentMs: 1100, provesMs }, { err: 0, nowMs: 9000 });
    expect(proof.provenMs).toBe(100);
  });

  test("is no request that the network may have held back with the answered one", () => {
    const proof = new LeaderProof(relayMs, 0);
    exchange(proof, 100);
    exchangeLate(proof, [400, 1500], 1600);
    // The follower may have received both at 1590, and have told the leader of neither when it passed on the second.
    expect(proof.provenMs).toBe(100);
    exchange(proof, 1600 + relayMs / 2 - 1);
    expect(proof.provenMs).toBe(100);
    exchange(proof, 1600 + relayMs / 2);
    expect(proof.provenMs).toBe(400);
  });

  test("is not moved by what a follower answers itself, nor by a refusal", () => {
    const proof = new LeaderProof(relayMs, 0);
    const { ping, exists, getData, getChildren2, setWatches } = zooKeeperOperations;
    for (let sentMs = 100; sentMs <= 5000; sentMs += 100) exchange(proof, sentMs, { code: ping.code });
    for (const { code } of [exists, getData, getChildren2, setWatches]) exchange(proof, 6000, { code });
    exchange(proof, 6000, { err: zooKeeperErrorNumbers.THROTTLEDOP });
    expect(proof.provenMs).toBe(0);
  });

  test.each([["multi", multiOperationCode], ["create2", zooKeeperOperations.create2.code], [
    "delete",
    zooKeeperOperations.delete.code,
  ]])(
    "is moved by a %s",
    (_name, code) => {
      const proof = new LeaderProof(relayMs, 0);
      exchange(proof, 100);
      exchange(proof, 1100, { code });
      expect(proof.provenMs).toBe(100);
    },
  );

  test("is never later than the truth, and at most a grain earlier, however much is sent", () => {
    const proof = new LeaderProof(relayMs, 0);
    for (let sentMs = 1; sentMs <= 20_000; sentMs++) {
      exchange(proof, sentMs, { code: sentMs % 500 === 0 ? sync : zooKeeperOperations.ping.code });
      if (sentMs % 500 !== 0 || sentMs <= 2000) continue;
      expect(proof.provenMs).toBeLessThanOrEqual(sentMs - relayMs);
      expect(proof.provenMs).toBeGreaterThan(sentMs - relayMs - relayMs / 16 - 1);
    }
  });

  test(`is what the leader has heard of, whatever the network holds back [BATON_SEED=${seed}]`, () => {
    const random = seededRandom(seed);
    for (let run = 0; run < 40; run++) {
      const proof = new LeaderProof(relayMs, 0);
      runEnsemble(proof, random, (knownMs) => expect(proof.provenMs).toBeLessThanOrEqual(knownMs));
      expect(proof.provenMs).toBeGreaterThan(55_000);
    }
  });

  test("is every answer where there is one server only", () => {
    const proof = new LeaderProof(0, 0);
    exchange(proof, 700, { code: zooKeeperOperations.ping.code });
    expect(proof.provenMs).toBe(700);
  });
});
