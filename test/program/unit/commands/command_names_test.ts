import { expect, test } from "bun:test";
import { runCommandLine } from "../../../../commands/command_line.ts";
import { findCommandName, firstCommandWords, listSubcommands } from "../../../../commands/command_names.ts";
import { exitCodes } from "../../../../src/base/exit_codes.ts";
import { fakeIo } from "../../../support/fake_io.ts";

test("a name of two words is found before one of the first alone", () => {
  const commands = { lock: 0, "box open": 0, "box shut": 0, box: 0 };
  expect(findCommandName(["lock", "open"], commands)).toBe("lock");
  expect(findCommandName(["box", "open", "x"], commands)).toBe("box open");
  expect(findCommandName(["box", "x"], commands)).toBe("box");
  expect(findCommandName(["open"], commands)).toBeNull();
  expect(findCommandName(["toString"], commands)).toBeNull();
  expect(findCommandName([], commands)).toBeNull();
  expect(listSubcommands("box", Object.keys(commands))).toEqual(["open", "shut"]);
  expect(firstCommandWords(Object.keys(commands))).toEqual(["lock", "box"]);
});

test("a group without a command of it is 64 and lists them; with --help it is 0", async () => {
  const io = fakeIo();
  expect(await runCommandLine(["pubsub"], io)).toBe(exitCodes.USAGE);
  expect([io.stdout(), io.stderr().includes("pubsub keygen")]).toEqual(["", true]);
  for (const words of [["pubsub", "--help"], ["help", "pubsub"]]) {
    const asked = fakeIo();
    expect(await runCommandLine(words, asked)).toBe(exitCodes.SUCCESS);
    expect(asked.stdout()).toContain("pubsub keygen");
  }
});

test("an unknown command of a group is 64, with the word that was meant, and points to the group's help", async () => {
  const io = fakeIo();
  expect(await runCommandLine(["pubsub", "keygne"], io)).toBe(exitCodes.USAGE);
  expect(io.stderr()).toBe(
    'baton: There is no command "pubsub keygne", did you mean "keygen"?\nbaton: see: baton pubsub --help\n',
  );
  const other = fakeIo();
  await runCommandLine(["pubsub", "keygen", "--frce", "a"], other);
  expect(other.stderr()).toContain("baton: see: baton pubsub keygen --help\n");
});

test("help on a command of a group takes both words", async () => {
  const io = fakeIo();
  expect(await runCommandLine(["help", "pubsub", "keygen"], io)).toBe(exitCodes.SUCCESS);
  expect(io.stdout()).toStartWith("baton pubsub keygen [FILE]");
  const spoken = fakeIo();
  expect(await runCommandLine(["help", "lock", "who"], spoken)).toBe(exitCodes.USAGE);
});

test("what is typed of a group is completed word by word", async () => {
  const offered = async (...words: string[]) => {
    const io = fakeIo();
    await runCommandLine(["__complete", ...words], io);
    return io.stdout().trimEnd().split("\n").map((line) => line.split("\t")[0]);
  };
  expect(await offered("pubs")).toEqual(["words", "pubsub"]);
  expect(await offered("pubsub", "")).toContain("keygen");
  expect(await offered("pubsub", "keygen", "--fo")).toEqual(["words", "--force"]);
  expect(await offered("pubsub", "keygen", "")).toEqual(["files"]);
  expect(await offered("pubsub", "nothing", "")).toEqual(["words"]);
  expect(await offered("help", "conn")).toEqual(["words", "connection"]);
  expect(await offered("help", "pubsub", "ke")).toEqual(["words", "keygen"]);
  expect(await offered("help", "lock", "")).toEqual(["words"]);
});
