import { expect, test } from "bun:test";
import { holdSettings } from "../../../../../commands/coordination/hold/hold_options.ts";
import { lockCommandSettings } from "../../../../../commands/coordination/lock_options.ts";

test("--max-hold is about the script: baton hold has no child, and has ended by then", () => {
  const { help, ...rest } = holdSettings.maxHold;
  expect(help).toBe("stop the script if it holds the lock longer than this");
  const { help: lockHelp, ...lockRest } = lockCommandSettings.maxHold;
  expect(lockHelp).toBe("stop the command if it runs longer than this (exit 124)");
  expect(rest).toEqual(lockRest);
});

test("no option speaks of a child, which baton hold has none of, and is otherwise the one of baton lock", () => {
  const told = Object.values(holdSettings).filter(({ help }) => /child/.test(help)).map(({ flag }) => flag);
  expect(told).toEqual([]);
  for (const name of ["killAfter", "onDoubt", "signal"] as const) {
    const { help: _, ...rest } = holdSettings[name];
    const { help: _lock, ...lockRest } = lockCommandSettings[name];
    expect<unknown>(rest).toEqual(lockRest);
  }
});
