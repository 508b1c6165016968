import { describe, setDefaultTimeout } from "bun:test";
import { describeWithPeer } from "../../support/peers.ts";
import * as peers from "../../support/zeromq_peers/implementations.ts";
import { octetsSuite } from "./zmtp_octets_suite.ts";

// A test that is over its time ends all that follow: bun kills the peer with it.
setDefaultTimeout(60_000);

// The control: what libzmq does not do either is no rule.
describeWithPeer("zeromq", `${peers.libzmqInNode.name}, and a peer by hand`, () => octetsSuite(peers.libzmqInNode));
describe(`${peers.own.name}, and a peer by hand`, () => octetsSuite(peers.own));
