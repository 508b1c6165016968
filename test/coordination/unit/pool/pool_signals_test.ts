import { expect, test } from "bun:test";
import { PoolSignals } from "../../../../src/coordination/pool/pool_signals.ts";
import { FakeClock } from "../../../support/fake_clock.ts";

function handMade() {
  const listeners = new Map<(signal: NodeJS.Signals) => void, readonly NodeJS.Signals[]>();
  return {
    source: {
      hangUpIgnored: false,
      listen(signals: readonly NodeJS.Signals[], listener: (signal: NodeJS.Signals) => void) {
        listeners.set(listener, signals);
        return () => listeners.delete(listener);
      },
    },
    send(signal: NodeJS.Signals) {
      for (const [listener, signals] of [...listeners]) if (signals.includes(signal)) listener(signal);
    },
  };
}

test("a signal that asks for the end stops the taking and goes on to the jobs; others only go on", () => {
  const { source, send } = handMade();
  using signals = new PoolSignals(source, { drains: false, clock: new FakeClock() });
  const heard: string[] = [];
  signals.listen(["SIGTERM", "SIGUSR1"], (signal) => heard.push(signal));
  send("SIGUSR1");
  expect([heard, signals.stop.aborted]).toEqual([["SIGUSR1"], false]);
  send("SIGTERM");
  expect([heard, signals.stop.aborted]).toEqual([["SIGUSR1", "SIGTERM"], true]);
});

test("with --drain the first goes no further, nor does its echo; the second does, and QUIT always", async () => {
  const { source, send } = handMade();
  const clock = new FakeClock();
  using signals = new PoolSignals(source, { drains: true, clock });
  const heard: string[] = [];
  signals.listen(["SIGTERM", "SIGQUIT"], (signal) => heard.push(signal));
  const ofTaking: string[] = [];
  signals.forClaiming().listen(["SIGTERM"], (signal) => ofTaking.push(signal));
  send("SIGTERM");
  expect([heard, ofTaking, signals.stop.aborted]).toEqual([[], ["SIGTERM"], true]);
  send("SIGTERM"); // as timeout(1) does it
  expect(heard).toEqual([]);
  await clock.advance(200);
  send("SIGTERM");
  expect(heard).toEqual(["SIGTERM"]);
  const other = handMade();
  using quit = new PoolSignals(other.source, { drains: true, clock });
  quit.listen(["SIGQUIT"], (signal) => heard.push(signal));
  other.send("SIGQUIT");
  expect(heard).toEqual(["SIGTERM", "SIGQUIT"]);
});
