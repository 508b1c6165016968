import { describe, expect, test } from "bun:test";
import { countLeadingFlags, parseArgs } from "../../../../src/base/terminal/parse_args.ts";

const specs = {
  try: { flag: "-n, --try", takesValue: false },
  quiet: { flag: "-q, --quiet", takesValue: false },
  wait: { flag: "-w, --wait", aliases: "--timeout, -t", takesValue: true },
  reason: { flag: "--reason", takesValue: true },
  items: { flag: "--items", takesValue: true, joint: "" },
  where: { flag: "--where", takesValue: true, joint: "," },
};

describe("the shapes of a flag", () => {
  const cases: [words: string[], flags: Record<string, string>, names?: string[]][] = [
    [["-w", "10s"], { wait: "10s" }],
    [["-w10s"], { wait: "10s" }],
    [["--wait", "10s"], { wait: "10s" }],
    [["--wait=10s"], { wait: "10s" }],
    [["--wait="], { wait: "" }],
    [["--timeout", "10s"], { wait: "10s" }],
    [["--timeout=10s"], { wait: "10s" }],
    [["-nt10s"], { try: "true", wait: "10s" }],
    [["--reason=a=b"], { reason: "a=b" }],
    [["-nq"], { try: "true", quiet: "true" }],
    [["-nw", "10s"], { try: "true", wait: "10s" }],
    [["-nw10s"], { try: "true", wait: "10s" }],
    [["-w", "1s", "-w", "2s"], { wait: "2s" }],
    [["--items", "a", "--items=a"], { items: "a" }],
    [["--where", "key=a", "--where=error=b"], { where: "key=a,error=b" }],
    [["-w", "-n"], { wait: "-n" }],
    [["a", "-n", "b", "-q"], { try: "true", quiet: "true" }, ["a", "b"]],
    [["-", ""], {}, ["-", ""]],
  ];
  for (const [words, flags, names = []] of cases) {
    test(words.join(" "), () => {
      expect(parseArgs(specs, [...words, "--", "-n"])).toEqual({
        flags: new Map(Object.entries(flags)),
        names,
        command: ["-n"],
      });
    });
  }

  test("nothing behind -- is looked at, and none is not the same as an empty one", () => {
    expect(parseArgs(specs, ["a", "--", "--", "-x", "--wait"]).command).toEqual(["--", "-x", "--wait"]);
    expect(parseArgs(specs, ["a", "--"]).command).toEqual([]);
    expect(parseArgs(specs, ["a"]).command).toBeNull();
  });

  const mistakes: [words: string[], message: string][] = [
    [["--wiat", "1s"], 'There is no option --wiat, did you mean "--wait"?'],
    [["-x"], "There is no option -x"],
    [["-N"], 'There is no option -N, did you mean "-n"?'],
    [["-nx"], "There is no option -x"],
    [["--try=1"], 'The option --try takes no value, but "1" was given'],
    [["-w"], "The option -w needs a value"],
    [["-w", "--", "true"], "The option -w needs a value"],
    [["--items", "a", "--items=b"], '--items is given twice, with "a" and with "b": give only one of them'],
    [["--constructor"], "There is no option --constructor"],
    [["--t", "5"], "There is no option --t"],
    [["--timeot", "5"], "There is no option --timeot"],
  ];
  for (const [words, message] of mistakes) {
    test(`${words.join(" ")}: ${message}`, () => expect(() => parseArgs(specs, words)).toThrow(message));
  }
});

describe("a command without --", () => {
  const syntax = {
    commandAfter: (names: readonly string[]) => names.length === 1,
    flagHints: { "-u, --unlock": "it ends with its command" },
  };
  const cases: [words: string, names: string[], command: string[] | null, flags?: Record<string, string>][] = [
    ["nightly ./backup.sh", ["nightly"], ["./backup.sh"]],
    ["-n nightly -w 5 ./backup.sh -n -w", ["nightly"], ["./backup.sh", "-n", "-w"], { try: "true", wait: "5" }],
    ["nightly sleep 1 --wait=3", ["nightly"], ["sleep", "1", "--wait=3"]],
    ["nightly -", ["nightly"], ["-"]],
    ["nightly -n", ["nightly"], null, { try: "true" }],
    ["-n", [], null, { try: "true" }],
    // -- anywhere ends the names, so that several names are never taken for a command.
    ["a b -- true", ["a", "b"], ["true"]],
    ["a -- b -- c", ["a"], ["b", "--", "c"]],
    ["-- a b", [], ["a", "b"]],
  ];
  for (const [words, names, command, flags = {}] of cases) {
    test(words, () => {
      expect(parseArgs(specs, words.split(" "), syntax)).toEqual({
        flags: new Map(Object.entries(flags)),
        names,
        command,
      });
    });
  }

  const mistakes: [words: string, message: string][] = [
    ["a git -C x -- y", "There is no option -C; if it belongs to git, write -- before git"],
    ["a -C x", "There is no option -C"],
    ["a git -N x -- y", "There is no option -N; if it belongs to git, write -- before git"],
    ["a git --wiat x -- y", 'There is no option --wiat, did you mean "--wait"?'],
    ["-u a", "There is no option -u: it ends with its command"],
    ["--unlock a true", "There is no option --unlock: it ends with its command"],
  ];
  for (const [words, message] of mistakes) {
    test(`${words}: ${message}`, () => {
      expect(() => parseArgs(specs, words.split(" "), syntax)).toThrow(new Error(message));
    });
  }
});

test("leading flags end before the first name and before the first flag of another table", () => {
  const cases: [words: string, count: number][] = [
    ["who -n", 0],
    ["-n who", 1],
    ["-w 5 who -n", 2],
    ["--timeout=5 -nq who", 2],
    ["-n --all who", 1],
    ["-n -- who", 1],
    ["-n", 1],
  ];
  for (const [words, count] of cases) {
    expect([words, countLeadingFlags(specs, words.split(" "))]).toEqual([words, count]);
  }
});
