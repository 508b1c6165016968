import { expect, test } from "bun:test";
import process from "node:process";
import { userName } from "../../../../src/base/support/user_name.ts";

test("the name in the user database, whatever the environment says", () => {
  const before = process.env["LOGNAME"];
  process.env["LOGNAME"] = "somebody-else";
  try {
    expect(userName("/nonexistent")).toBe("somebody-else");
    expect(userName()).not.toBe("somebody-else");
  } finally {
    if (before === undefined) delete process.env["LOGNAME"];
    else process.env["LOGNAME"] = before;
  }
});
