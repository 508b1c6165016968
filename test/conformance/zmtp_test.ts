/**
 * baton's sockets and libzmq's: each with itself, and each with the other on both sides. libzmq with libzmq is the
 * control: what it does not do either is no rule.
 */
import { describe } from "bun:test";
import { describeWithPeer } from "../support/peers.ts";
import * as peers from "../support/zeromq_peers/implementations.ts";
import { zmtpSuite } from "./zmtp_suite.ts";

const { libzmqInNode, libzmqInPython, oldLibzmqInNode, own } = peers;

const pairings: readonly (readonly [peers.Implementation, peers.Implementation])[] = [
  [libzmqInNode, libzmqInPython],
  [own, own],
  [own, libzmqInNode],
  [libzmqInNode, own],
  [own, libzmqInPython],
  [libzmqInPython, own],
  [own, oldLibzmqInNode],
  [oldLibzmqInNode, own],
];

for (const [a, b] of pairings) {
  const title = `${a.name} (a) and ${b.name} (b)`;
  const suite = () => zmtpSuite(a, b);
  if (a.peer === null && b.peer === null) describe(title, suite);
  else if (a.peer === null || b.peer === null) describeWithPeer(a.peer ?? b.peer ?? "zeromq", title, suite);
  else describeWithPeer(a.peer, title, () => describeWithPeer(b.peer ?? "zeromq", "control", suite));
}
