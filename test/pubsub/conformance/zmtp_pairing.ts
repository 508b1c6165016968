/** The whole suite for two implementations, with those that are missing named aloud. */
import { describe, setDefaultTimeout } from "bun:test";
import { describeWithPeer } from "../../support/peers.ts";
import type { Implementation } from "../../support/zeromq_peers/implementations.ts";
import { zmtpSuite } from "./zmtp_suite.ts";

// A test that is over its time ends all that follow: bun kills the processes of both sides with it.
setDefaultTimeout(60_000);

export function describePairing(a: Implementation, b: Implementation): void {
  const title = `${a.name} (a) and ${b.name} (b)`;
  const suite = () => zmtpSuite(a, b);
  if (a.peer === null && b.peer === null) describe(title, suite);
  else if (a.peer === null || b.peer === null) describeWithPeer(a.peer ?? b.peer ?? "zeromq", title, suite);
  else describeWithPeer(a.peer, title, () => describeWithPeer(b.peer ?? "zeromq", "control", suite));
}
