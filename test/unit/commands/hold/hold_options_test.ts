import { expect, test } from "bun:test";
import { holdSettings } from "../../../../commands/hold/hold_options.ts";
import { lockCommandSettings } from "../../../../commands/lock/lock_options.ts";

test("--max-hold is about the script: baton hold has no child, and has ended by then", () => {
  const { help, ...rest } = holdSettings.maxHold;
  expect(help).toBe("stop the script so long after the grant");
  const { help: lockHelp, ...lockRest } = lockCommandSettings.maxHold;
  expect(lockHelp).toBe("stop the child so long after the grant; then exit 124");
  expect(rest).toEqual(lockRest);
});
