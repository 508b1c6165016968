import { expect, test } from "bun:test";
import { printInternalError, runCommandLine } from "../../../../commands/command_line.ts";
import { exitCodes } from "../../../../src/base/exit_codes.ts";
import { fakeIo } from "../../../support/fake_io.ts";

test("an unknown command is 64, with the word that was meant", async () => {
  const io = fakeIo();
  expect(await runCommandLine(["whoo"], io)).toBe(exitCodes.USAGE);
  expect(io.stderr()).toBe('baton: There is no command "whoo", did you mean "who"?\nbaton: see: baton --help\n');
  expect(await runCommandLine(["constructor"], fakeIo())).toBe(exitCodes.USAGE);
});

test("what nobody threw on purpose is 70, and asks to be reported", async () => {
  const out = () => {
    throw new TypeError("a bug");
  };
  const io = fakeIo({ out });
  expect(await runCommandLine(["help"], { ...io, out })).toBe(exitCodes.INTERNAL);
  expect(io.stderr()).toStartWith("baton: internal error, please report it: a bug\nTypeError: a bug\n");
  expect(printInternalError("thrown text", fakeIo())).toBe(exitCodes.INTERNAL);
});

test("help names no variable for a setting that each component has of its own: none is read", async () => {
  const io = fakeIo();
  expect(await runCommandLine(["pool", "--help"], io)).toBe(exitCodes.SUCCESS);
  expect(io.stdout()).toContain("[BATON_SCOPE]");
  expect(io.stdout()).not.toContain("BATON_POOL_COMPONENT_NAME");
});
