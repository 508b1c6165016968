import { expect, test } from "bun:test";
import process from "node:process";
import { ownUserName } from "../../../../src/base/support/user_name.ts";

test("the name in the user database, whatever the environment says", () => {
  const before = process.env["LOGNAME"];
  process.env["LOGNAME"] = "somebody-else";
  try {
    expect(ownUserName("/nonexistent")).toBe("somebody-else");
    expect(ownUserName()).not.toBe("somebody-else");
  } finally {
    if (before === undefined) delete process.env["LOGNAME"];
    else process.env["LOGNAME"] = before;
  }
});
