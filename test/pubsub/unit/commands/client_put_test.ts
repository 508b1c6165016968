import { expect, test } from "bun:test";
import { PutStopSignals } from "../../../../commands/pubsub/client_put.ts";
import { StoppedBySignal } from "../../../../src/base/process/supervise/signal_source.ts";

test("a signal that came before the put began is the first of the two that end it", () => {
  using ending = new PutStopSignals(AbortSignal.abort(new StoppedBySignal("SIGTERM")));
  expect(ending.signal.aborted).toBe(false);
});
