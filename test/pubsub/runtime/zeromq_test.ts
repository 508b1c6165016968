/** baton's ZeroMQ sockets under Deno and compiled, with those under Bun, whose conformance is tested elsewhere. */
import { describe, setDefaultTimeout } from "bun:test";
import { exchangeSuite } from "../conformance/zmtp_exchange_suite.ts";
import { ZmtpFixture } from "../conformance/zmtp_fixture.ts";
import { flowSuite } from "../conformance/zmtp_flow_suite.ts";
import { reconnectSuite } from "../conformance/zmtp_reconnect_suite.ts";
import { own, ownCompiled, ownUnderDeno } from "../../support/zeromq_peers/implementations.ts";

setDefaultTimeout(60_000);

for (const other of [ownUnderDeno, ownCompiled]) {
  describe(`${other.name} (a)`, () => {
    const fixture = new ZmtpFixture(other, own);
    describe("every pair of types", () => exchangeSuite(fixture));
    describe("the flow of messages", () => flowSuite(fixture));
    describe("reconnecting", () => reconnectSuite(fixture));
  });
  describe(`${other.name} (b)`, () => flowSuite(new ZmtpFixture(own, other)));
}
