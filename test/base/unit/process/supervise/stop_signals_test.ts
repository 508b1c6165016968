import { expect, test } from "bun:test";
import type { SignalSource } from "../../../../../src/base/process/supervise/signal_source.ts";
import { TwoStageStopListener } from "../../../../../src/base/process/supervise/two_stage_stop.ts";
import { FakeClock } from "../../../../support/fake_clock.ts";

/** Sends signals, and says what was made of them. */
function listening(clock: FakeClock) {
  const heard: string[] = [];
  let send = (_: NodeJS.Signals) => {};
  const source: SignalSource = {
    hangUpIgnored: false,
    listen: (_, listener) => {
      send = listener;
      return () => send = () => {};
    },
  };
  const stop = new TwoStageStopListener({
    source,
    clock,
    onFirst: (signal) => heard.push(`first ${signal}`),
    onSecond: (signal) => heard.push(`second ${signal}`),
  });
  return { heard, stop, send: (signal: NodeJS.Signals) => send(signal) };
}

test("the signal that timeout(1) sends to the process and to its group is one request to stop", async () => {
  const clock = new FakeClock();
  const { heard, stop, send } = listening(clock);
  expect(stop.finish.aborted).toBe(false);
  send("SIGTERM");
  send("SIGTERM");
  await clock.advance(199);
  send("SIGTERM");
  expect(heard).toEqual(["first SIGTERM"]);
  expect(stop.finish.reason).toMatchObject({ name: "StoppedBySignal", signal: "SIGTERM" });
  expect(stop.now.aborted).toBe(false);
});

test("another signal at once is the second request, and a third one asks for nothing", async () => {
  const clock = new FakeClock();
  const { heard, stop, send } = listening(clock);
  send("SIGTERM");
  send("SIGINT");
  expect(stop.now.reason).toMatchObject({ name: "StoppedBySignal", signal: "SIGINT" });
  await clock.advance(200);
  send("SIGTERM");
  expect(heard).toEqual(["first SIGTERM", "second SIGINT"]);
});

test("the same signal later is the second request; none is heard after the end", async () => {
  const clock = new FakeClock();
  const { heard, send } = listening(clock);
  send("SIGTERM");
  await clock.advance(200);
  send("SIGTERM");
  expect(heard).toEqual(["first SIGTERM", "second SIGTERM"]);
  const other = listening(clock);
  other.stop[Symbol.dispose]();
  other.send("SIGTERM");
  expect(other.heard).toEqual([]);
});
