import { expect, test } from "bun:test";
import { failure } from "../../../../src/clients/zookeeper/zookeeper_error.ts";

test("a change whose answer never came may have been done; a read has done nothing", () => {
  expect(failure({ action: "create", path: "/a" }, "CONNECTIONLOSS")).toMatchObject({ code: "OUTCOME_UNKNOWN" });
  const read = failure({ action: "read", path: "/a", reads: true }, "CONNECTIONLOSS");
  expect(read).toMatchObject({ code: "UNREACHABLE", reason: "CONNECTIONLOSS", path: "/a" });
});
