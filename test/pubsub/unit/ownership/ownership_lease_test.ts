import { expect, test } from "bun:test";
import { leaseEndMs } from "../../../../src/protocols/zookeeper/session_timing.ts";
import { OwnershipLease, topicOwnershipEndMs } from "../../../../src/pubsub/ownership/ownership_lease.ts";
import { FakeClock } from "../../../support/fake_clock.ts";
import { FakeSession } from "../../../support/fake_zookeeper.ts";

test("the ownership lease ends two thirds of T after the last request that the leader has answered", () => {
  for (const timeoutMs of [2000, 10_000, 60_000]) {
    expect(topicOwnershipEndMs(leaseEndMs(5000, timeoutMs), timeoutMs)).toBeCloseTo(5000 + timeoutMs * 2 / 3, 6);
  }
});

test("nothing is confirmed after the lease has run out, until it is renewed; nothing after its end", async () => {
  const clock = new FakeClock();
  const session = new FakeSession(1n, clock, 9000);
  session.renew(leaseEndMs(clock.now(), 9000));
  const lease = new OwnershipLease(session, clock);
  await clock.advance(5999);
  expect([lease.isHeld(), lease.isConfirmed()]).toEqual([true, true]);
  await clock.advance(1);
  expect([lease.isHeld(), lease.isConfirmed()]).toEqual([false, false]);
  session.renew(leaseEndMs(clock.now(), 9000));
  expect(lease.isConfirmed()).toBe(true);
  lease.end();
  expect(lease.isConfirmed()).toBe(false);
  const other = new OwnershipLease(session, clock);
  expect(other.isHeld()).toBe(true);
  session.end("expired");
  expect(other.isHeld()).toBe(false);
});
