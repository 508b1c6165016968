import { expect, test } from "bun:test";
import { ScriptWatch } from "../../../../src/coordination/hold/script_process.ts";
import { FakeClock } from "../../../support/fake_clock.ts";

test.if(process.platform === "linux")(
  "the end of a script is reported once, however often it is looked at",
  async () => {
    const clock = new FakeClock();
    using watch = new ScriptWatch({ pid: 0x7fffffff, startTicks: 1 }, clock);
    let hasEnded = false;
    watch.ended.then(() => hasEnded = true);
    await clock.advance(9);
    watch.checkFaster(); // as each signal to its processes does
    expect(hasEnded).toBe(false);
    await clock.advance(1);
    expect(hasEnded).toBe(true);
    expect(clock.timers).toBe(0);
  },
);
