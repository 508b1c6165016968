import { expect, test } from "bun:test";
import { chooseTextPainter } from "../../../../src/base/terminal/color.ts";
import { printTable, tableHeadCells } from "../../../../src/base/terminal/table.ts";
import { fakeIo } from "../../../support/fake_io.ts";

test("colors are on where the output is a terminal; NO_COLOR, CLICOLOR_FORCE and TERM=dumb decide otherwise", () => {
  const cases: [isTerminal: boolean, env: Record<string, string>, isPainted: boolean][] = [
    [true, {}, true],
    [false, {}, false],
    [true, { TERM: "xterm" }, true],
    [true, { TERM: "dumb" }, false],
    [true, { NO_COLOR: "1" }, false],
    [true, { NO_COLOR: "" }, true],
    [true, { CLICOLOR: "0" }, false],
    [false, { CLICOLOR: "1" }, false],
    [false, { CLICOLOR_FORCE: "1" }, true],
    [false, { CLICOLOR_FORCE: "0" }, false],
    [false, { CLICOLOR_FORCE: "" }, false],
    [true, { NO_COLOR: "1", CLICOLOR_FORCE: "1" }, false],
  ];
  for (const [stdoutIsTerminal, env, isPainted] of cases) {
    const io = fakeIo({ stdoutIsTerminal, env });
    const painted = chooseTextPainter(io, "stdout")("red", "x");
    expect([stdoutIsTerminal, env, painted]).toEqual([stdoutIsTerminal, env, isPainted ? "\x1b[31mx\x1b[39m" : "x"]);
  }
});

test("stdout and stderr are asked separately", () => {
  const io = fakeIo({ stderrIsTerminal: true });
  expect(chooseTextPainter(io, "stdout")("bold", "x")).toBe("x");
  expect(chooseTextPainter(io, "stderr")("bold", "x")).toBe("\x1b[1mx\x1b[22m");
});

test("columns are aligned by what is visible, and text from outside cannot bring codes of its own", () => {
  const rows = [tableHeadCells(["KIND", "NAME"]), ["lock", { text: "a\x1b[31m", style: "green" as const }], ["x", "b"]];
  const plain = fakeIo();
  printTable(plain, rows);
  expect(plain.stdout()).toBe("KIND  NAME\nlock  a\u{fffd}[31m\nx     b\n");
  const colored = fakeIo({ stdoutIsTerminal: true });
  printTable(colored, rows);
  expect(colored.stdout()).toBe(
    "\x1b[1mKIND\x1b[22m  \x1b[1mNAME\x1b[22m\nlock  \x1b[32ma\u{fffd}[31m\x1b[39m\nx     b\n",
  );
});
