import { expect, test } from "bun:test";
import { toFlagSpecs } from "../../../../../commands/run_command.ts";
import {
  poolCommandSettings,
  poolCommandSyntax,
  readPoolOperation,
  readPoolOptions,
} from "../../../../../commands/coordination/pool/pool_options.ts";
import { decidePoolEnding } from "../../../../../commands/coordination/pool/run_pool.ts";
import { commonCommandSettings } from "../../../../../commands/command.ts";
import { parseArgs } from "../../../../../src/base/terminal/parse_args.ts";
import { resolveSettings } from "../../../../../src/base/config/resolve_settings.ts";
import { BatonError } from "../../../../../src/base/errors.ts";
import { fakeIo } from "../../../../support/fake_io.ts";

function callOf(words: string[], env: Record<string, string> = {}) {
  const settings = { ...commonCommandSettings, ...poolCommandSettings };
  const { flags, names, command } = parseArgs(toFlagSpecs(settings), words, poolCommandSyntax);
  const sources = { flags, env, files: [] };
  return { values: resolveSettings(settings, sources), names, command, sources, io: fakeIo() };
}

function refusalOf(...words: string[]): string {
  try {
    readPoolOptions(callOf(words));
  } catch (thrown) {
    if (thrown instanceof BatonError) return `${thrown.code}: ${thrown.message}`;
    throw thrown;
  }
  return "nothing";
}

test("items come from one place", () => {
  const source = (...words: string[]) => readPoolOptions(callOf(["c", ...words, "--", "true"])).items;
  expect(source("--items", "-")).toEqual({ kind: "stdin" });
  expect(source("--items", "@list")).toEqual({ kind: "file", file: "list" });
  expect(source("--items", "a,b")).toEqual({ kind: "list", list: "a,b" });
  expect(source("--query", "ls | sort")).toEqual({ kind: "query", line: "ls | sort" });
  expect(refusalOf("c", "--", "true")).toStartWith("USAGE: baton pool needs --items or --query");
  expect(refusalOf("c", "--items", "a", "--query", "ls", "--", "true")).toBe(
    "USAGE: --items and --query cannot be used together",
  );
});

test("one component, and a command", () => {
  expect(refusalOf("--items", "a", "--", "true")).toStartWith("USAGE: baton pool needs the name of a component");
  expect(refusalOf("a", "b", "--items", "a", "--", "true")).toStartWith("USAGE: baton pool takes one component");
  expect(refusalOf("a", "--items", "a")).toStartWith("USAGE: baton pool needs a command, as in");
});

test("a bad template is told with where it stands", () => {
  const call = callOf(["c", "--items", "a", "--", "true"], { BATON_POOL_ITEM_PATH: "/{component}/{batch}" });
  expect(() => readPoolOptions(call)).toThrow(/^BATON_POOL_ITEM_PATH: .*\{batch\} is not one of/);
  const env = { BATON_POOL_ITEM_PATH: "/{component}/{item}", BATON_POOL_COMPONENT_PATH: "/x/{item}" };
  const other = callOf(["c", "--items", "a", "--", "true"], env);
  expect(() => readPoolOptions(other)).toThrow(
    /^BATON_POOL_COMPONENT_PATH: .*\{item\} is not one of \{root\} and \{component\}$/,
  );
  const relative = callOf(["c", "--items", "a", "--", "true"], { BATON_POOL_ITEM_PATH: "{component}/{9}" });
  expect(() => readPoolOptions(relative)).toThrow(/^BATON_POOL_ITEM_PATH: .*is not a ZooKeeper path/);
});

test("a list is run as a whole, a query round by round; each can be had the other way", () => {
  const loops = (...words: string[]) => readPoolOptions(callOf(["c", ...words, "--", "true"])).loop;
  expect([loops("--items", "a"), loops("--items", "-"), loops("--items", "@f")]).toEqual([true, true, true]);
  expect([loops("--query", "ls"), loops("--items", "a", "--one-round")]).toEqual([false, false]);
  expect([loops("--query", "ls", "--loop"), loops("--items", "a", "--loop")]).toEqual([true, true]);
  expect(refusalOf("c", "--items", "a", "--loop", "--one-round", "--", "true")).toBe(
    "USAGE: --loop and --one-round cannot be used together",
  );
});

test("status is a word of its own only where there is no command", () => {
  expect(readPoolOperation(callOf(["status", "c"]))?.component).toBe("c");
  expect(readPoolOperation(callOf(["status", "--items", "a", "--", "true"]))).toBeNull();
  expect(readPoolOperation(callOf(["c"]))).toBeNull();
  expect(readPoolOperation(callOf(["clear", "c", "--items", "a"]))).toMatchObject({
    operation: "clear",
    component: "c",
  });
});

test("what says how items are run is refused where none is, and what a file or a variable says is not", () => {
  const refusal = (...words: string[]) => () => readPoolOperation(callOf(words));
  for (
    const [words, flag] of [
      [["-j", "2"], "--jobs"],
      [["--total", "3"], "--total"],
      [["--loop"], "--loop"],
      [["--one-round"], "--one-round"],
      [["--joblog", "f"], "--joblog"],
      [["--done-ttl", "1h"], "--done-ttl"],
      [["-w", "1s"], "--wait"],
      [["--status-fd", "3"], "--status-fd"],
      [["--kill-after", "1s"], "--kill-after"],
      [["--scope", "cluster"], "--scope"],
    ] as const
  ) {
    const what = `${flag} is for a call that runs items, not for baton pool`;
    expect(refusal("status", "c", ...words)).toThrow(`${what} status`);
    expect(refusal("clear", "c", ...words)).toThrow(`${what} clear`);
  }
  const looked = callOf(["status", "c", "--query", "ls", "--query-timeout", "1s", "--json"], { BATON_SCOPE: "user" });
  expect(readPoolOperation(looked)).toMatchObject({ component: "c", items: { kind: "query" } });
});

test("the exit code follows from what became of the items", () => {
  const counts = { claimed: 0, done: 0, failed: 0, busy: 0, skipped: 0, remaining: 0 };
  const endOf = (part: Partial<typeof counts>, total?: number, more: { loop?: boolean; isStopped?: boolean } = {}) =>
    decidePoolEnding("c", { ...counts, ...part }, { codeOfFailure: 79, total, loop: false, isStopped: false, ...more });
  const codeOf = (part: Partial<typeof counts>) => endOf(part).exitCode;
  expect(codeOf({})).toBe(0);
  expect(codeOf({ skipped: 3 })).toBe(0);
  expect(codeOf({ claimed: 2, done: 2, busy: 1 })).toBe(0);
  expect(codeOf({ claimed: 2, done: 1, failed: 1 })).toBe(79);
  expect(codeOf({ busy: 1, skipped: 3 })).toBe(75);
  expect(codeOf({ claimed: 1, done: 1, remaining: 7 })).toBe(0); // -j is full: they are the next call's
  expect(endOf({ remaining: 2, busy: 1 }, 3)).toMatchObject({
    exitCode: 75,
    reason: "nothing_free",
    message: 'no item of pool "c" can start: 3 items run already, the limit of --total; 2 items are left',
  });
  const some = { claimed: 1, done: 1, remaining: 7 };
  expect(endOf(some, 1, { loop: true })).toMatchObject({
    exitCode: 75,
    reason: "items_left",
    message: 'no other item of pool "c" can start: 1 item runs already, the limit of --total; 7 items are left',
  });
  expect(endOf(some, 1, { loop: true, isStopped: true })).toMatchObject({ exitCode: 0, reason: "done" });
  expect(endOf({ remaining: 1 })).toMatchObject({
    exitCode: 75,
    message: 'no item of pool "c" was started; 1 item is left',
  });
});

test("a command follows the component without --, and a mistyped operation is recognized", () => {
  const said = (words: string[]) => {
    try {
      return String(readPoolOptions(callOf(words)));
    } catch (thrown) {
      return thrown instanceof Error ? thrown.message : "";
    }
  };
  expect(readPoolOptions(callOf(["x", "--items", "a", "./work.sh", "{}", "-j", "2"])).command).toEqual([
    "./work.sh",
    "{}",
    "-j",
    "2",
  ]);
  expect(callOf(["status", "x"])).toMatchObject({ names: ["status", "x"], command: null });
  expect(said(["staus", "x"])).toBe('There is no "baton pool staus", did you mean "status"?');
  expect(said(["x", "y", "--items", "a", "--", "true"])).toBe(
    'baton pool takes one component before --, but "x", "y" were given; ' +
      "if these words are a command that contains --, write another -- before the command",
  );
});
