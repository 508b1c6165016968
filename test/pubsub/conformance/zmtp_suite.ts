/** What ZeroMQ's sockets do, seen from both ends of a connection: one suite for every pair of implementations. */
import { describe } from "bun:test";
import type { Implementation } from "../../support/zeromq_peers/implementations.ts";
import { exchangeSuite } from "./zmtp_exchange_suite.ts";
import { ZmtpFixture } from "./zmtp_fixture.ts";
import { flowSuite } from "./zmtp_flow_suite.ts";
import { identitySuite } from "./zmtp_identity_suite.ts";
import { reconnectSuite } from "./zmtp_reconnect_suite.ts";
import { refusalSuite } from "./zmtp_refusal_suite.ts";

export function zmtpSuite(a: Implementation, b: Implementation): void {
  const fixture = new ZmtpFixture(a, b);
  describe("every pair of types", () => exchangeSuite(fixture));
  describe("the flow of messages", () => flowSuite(fixture));
  describe("identities", () => identitySuite(fixture));
  describe("reconnecting", () => reconnectSuite(fixture));
  describe("refusals", () => refusalSuite(fixture));
}
