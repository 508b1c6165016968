import { expect, test } from "bun:test";
import { ProcessorLease } from "../../../../src/retry/queue/processor_lease.ts";
import { FakeClock } from "../../../support/fake_clock.ts";

test("after a suspend, the first look at a lease that is over ends its tries; its timer would fire later", () => {
  const clock = new FakeClock();
  const lease = new ProcessorLease(1, clock.now(), { clock, leaseMs: 4000 });
  const { lost } = lease.makeTryLease("message", 1);
  clock.stall(5000);
  expect(lost.aborted).toBe(false);
  lease.extend(clock.now());
  expect({ isOver: lease.isOver(), isLost: lost.aborted }).toEqual({ isOver: true, isLost: true });
});
