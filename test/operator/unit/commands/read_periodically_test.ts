import { expect, test } from "bun:test";
import { readPeriodically } from "../../../../commands/operator/read_periodically.ts";
import { sleep } from "../../../../src/base/support/deadline.ts";
import { ZooKeeperError } from "../../../../src/protocols/zookeeper/zookeeper_error.ts";
import { FakeClock } from "../../../support/fake_clock.ts";

/**
 * Starts readings that each take as long as the next number says; a negative one fails after that time. Returns when
 * they started.
 */
function startReadings(tookMs: readonly number[]) {
  const clock = new FakeClock(0);
  const stop = new AbortController();
  const startsMs: number[] = [];
  const late: string[] = [];
  const read = async () => {
    const ms = tookMs[startsMs.length] ?? 0;
    startsMs.push(clock.now());
    await sleep(clock, Math.abs(ms), stop.signal);
    if (ms < 0) throw new ZooKeeperError("CONNECTIONLOSS", "read");
  };
  const readings = readPeriodically(read, {
    ...{ ended: new AbortController().signal, clock, signal: stop.signal, everyMs: 2000 },
    onLate: (message: string) => late.push(message),
  });
  const done = (async () => {
    for await (const _reading of readings) { /* only the times count */ }
  })();
  return { clock, startsMs, late, end: () => (stop.abort(), done) };
}

test("a reading that takes long is followed by a longer rest", async () => {
  const { clock, startsMs, end } = startReadings([1000, 0]);
  await clock.advance(3999);
  expect(startsMs).toEqual([0]);
  await clock.advance(1);
  expect(startsMs).toEqual([0, 4000]);
  await end();
});

test("after an outage the next reading comes as soon as after any other", async () => {
  const { clock, startsMs, late, end } = startReadings([-60_000, 60_000, 0]);
  await clock.advance(62_000);
  expect(late).toHaveLength(1);
  expect(startsMs).toEqual([0, 62_000]);
  // A reading during which the server stood still says little about the work.
  await clock.advance(70_000);
  expect(startsMs).toEqual([0, 62_000, 132_000]);
  await end();
});
