import { describe, expect, test } from "bun:test";
import { parseArgs } from "../../../src/terminal/parse_args.ts";

const specs = {
  try: { flag: "-n, --try", takesValue: false },
  quiet: { flag: "-q, --quiet", takesValue: false },
  wait: { flag: "-w, --wait", takesValue: true },
  reason: { flag: "--reason", takesValue: true },
  items: { flag: "--items", takesValue: true, isOnce: true },
  where: { flag: "--where", takesValue: true, isOnce: true, isList: true },
};

describe("the shapes of a flag", () => {
  const cases: [words: string[], flags: Record<string, string>, names?: string[]][] = [
    [["-w", "10s"], { wait: "10s" }],
    [["-w10s"], { wait: "10s" }],
    [["--wait", "10s"], { wait: "10s" }],
    [["--wait=10s"], { wait: "10s" }],
    [["--wait="], { wait: "" }],
    [["--reason=a=b"], { reason: "a=b" }],
    [["-nq"], { try: "true", quiet: "true" }],
    [["-nw", "10s"], { try: "true", wait: "10s" }],
    [["-nw10s"], { try: "true", wait: "10s" }],
    [["-w", "1s", "-w", "2s"], { wait: "2s" }],
    [["--items", "a", "--items=a"], { items: "a" }],
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
    [
      ["--where", "key=a", "--where", "error=b"],
      '--where is given twice, with "key=a" and with "error=b": write several values as one list: --where key=a,error=b',
    ],
    [["--constructor"], "There is no option --constructor"],
  ];
  for (const [words, message] of mistakes) {
    test(`${words.join(" ")}: ${message}`, () => expect(() => parseArgs(specs, words)).toThrow(message));
  }
});
