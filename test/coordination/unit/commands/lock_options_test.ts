import { describe, expect, test } from "bun:test";
import {
  type LockCommandOptions,
  lockCommandSettings,
  readLockOptions,
} from "../../../../commands/coordination/lock_options.ts";
import { fakeIo } from "../../../support/fake_io.ts";
import { callOf } from "../../../program/unit/commands/call_of.ts";

async function optionsOf(...words: string[]): Promise<LockCommandOptions> {
  const io = fakeIo({ env: { HOME: "/nonexistent", BATON_LOCK_BACKGROUND_WAIT: "2s" } });
  return readLockOptions(await callOf(lockCommandSettings, words, io));
}

describe("what a command line comes to", () => {
  test("an exclusive lock, waited for as long as it takes", async () => {
    expect(await optionsOf("nightly", "--", "./backup.sh", "-n")).toMatchObject({
      names: ["nightly"],
      command: ["./backup.sh", "-n"],
      mode: "exclusive",
      waitMs: undefined,
      values: { priority: 100, killAfter: 5000, signal: "SIGTERM", onDoubt: "ignore", root: "/baton" },
    });
  });

  test("-n does not wait, -w waits as long as it says", async () => {
    expect((await optionsOf("-n", "a", "--", "true")).waitMs).toBe(0);
    expect((await optionsOf("-w", "10s", "a", "--", "true")).waitMs).toBe(10_000);
  });

  test("-s is shared, -N is a semaphore", async () => {
    expect((await optionsOf("-s", "a", "--", "true")).mode).toBe("shared");
    expect(await optionsOf("-N3", "a", "--", "true")).toMatchObject({ mode: "permit", limit: 3 });
  });

  test("background waits by its own setting, and -w wins over it", async () => {
    expect((await optionsOf("--priority", "background", "a", "--", "true")).waitMs).toBe(2000);
    expect((await optionsOf("--priority", "250", "-w", "5s", "a", "--", "true")).waitMs).toBe(5000);
    expect((await optionsOf("--priority", "199", "a", "--", "true")).waitMs).toBeUndefined();
  });

  test("several names come sorted, each once, so that two calls cannot wait for each other", async () => {
    expect((await optionsOf("b", "a", "b", "--", "true")).names).toEqual(["a", "b"]);
  });
});

describe("what does not fit together is refused", () => {
  const mistakes: [words: string[], message: RegExp][] = [
    [[], /needs the name of a lock/],
    [["--", "true"], /needs the name of a lock/],
    [["a"], /needs a command, as in: baton lock NAME COMMAND/],
    [["a", "--"], /needs a command, as in: baton lock NAME COMMAND/],
    [["a", "-n", "-w", "1s", "--", "true"], /-n and -w cannot be used together/],
    [["a", "-s", "-N", "2", "--", "true"], /-s and -N cannot be used together/],
    [["a", "-w", "10 s", "--", "true"], /--wait: "10 s" is not a duration/],
    [["a", "-E", "256", "--", "true"], /--conflict-exit-code: "256" is not a whole number from 0 to 255/],
    [["a", "--session-timeout", "1s", "--", "true"], /--session-timeout: "1s" is not a duration of at least 2s/],
    [["a", "--session-timeout", "30d", "--", "true"], /--session-timeout: "30d" is not a duration of at most 576h/],
  ];
  for (const [words, message] of mistakes) {
    test(`baton lock ${words.join(" ")}`, async () => {
      await expect(optionsOf(...words)).rejects.toThrow(message);
    });
  }
});
