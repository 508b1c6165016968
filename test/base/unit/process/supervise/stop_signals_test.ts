import { expect, test } from "bun:test";
import { listenForStopSignals, type SignalSource } from "../../../../../src/base/process/supervise/signal_source.ts";
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
  const unlisten = listenForStopSignals(source, clock, {
    onFirstSignal: (signal) => heard.push(`first ${signal}`),
    onLaterSignal: (signal) => heard.push(`again ${signal}`),
  });
  return { heard, unlisten, send: (signal: NodeJS.Signals) => send(signal) };
}

test("the signal that timeout(1) sends to the process and to its group is one request to stop", async () => {
  const clock = new FakeClock();
  const { heard, send } = listening(clock);
  send("SIGTERM");
  send("SIGTERM");
  await clock.advance(199);
  send("SIGTERM");
  expect(heard).toEqual(["first SIGTERM"]);
});

test("the same signal later, and another one at once, are a second request", async () => {
  const clock = new FakeClock();
  const { heard, send, unlisten } = listening(clock);
  send("SIGTERM");
  send("SIGINT");
  await clock.advance(200);
  send("SIGTERM");
  expect(heard).toEqual(["first SIGTERM", "again SIGINT", "again SIGTERM"]);
  unlisten();
  send("SIGTERM");
  expect(heard).toHaveLength(3);
});
