import { expect, test } from "bun:test";
import { ServerConnectReport } from "../../../../src/protocols/zookeeper/connector.ts";

test("an attempt that is cut short does not hide why the one before it failed", () => {
  const report = new ServerConnectReport();
  report.begin("a", 0);
  report.fail("a", "the certificate is not trusted");
  report.begin("a", 990);
  report.begin("b", 0);
  report.waitFor("b", "no response to the handshake");
  expect(report.describe(1000)).toBe("a: the certificate is not trusted; b: no response to the handshake within 1 s");
});
