import { expect, test } from "bun:test";
import { ForwardWarnings } from "../../../../src/retry/dead_letters/forward_warnings.ts";

function warnings() {
  const lines: string[] = [];
  return {
    lines,
    of: new ForwardWarnings((level, _, sentence) => void lines.push(`${level}: ${sentence.split(";")[0]}`)),
  };
}

test("a sink that fails is one warning until it works again, also if its opening has given the first", () => {
  const { lines, of } = warnings();
  of.ofOpening("warning", "unreachable", "--dead-letter: no broker");
  for (let time = 0; time < 13; time++) of.noteFailure("no broker", null);
  expect(lines.filter((line) => line.startsWith("warning"))).toEqual(["warning: --dead-letter: no broker"]);
  expect(lines.length).toBe(14);
  of.noteForwarded("a-1");
  of.noteFailure("refused", null);
  expect(lines.at(-1)).toBe("warning: refused");
});

test("each letter that fails by itself is named once until it is delivered", () => {
  const { lines, of } = warnings();
  for (const id of ["a-1", "a-2", "a-1", "a-2"]) of.noteFailure("too large", id);
  expect(lines.map((line) => line.split(" ")[0])).toEqual(["warning:", "warning:", "detail:", "detail:"]);
  of.noteForwarded("a-1");
  of.noteFailure("too large", "a-1");
  expect(lines.at(-1)).toBe("warning: the dead letter a-1 was not delivered: too large");
});
