import { expect, test } from "bun:test";
import { ErasableTerminalLine } from "../../../../src/base/terminal/progress_line.ts";
import { fakeIo } from "../../../support/fake_io.ts";

test("a line takes the other's place, is cut to the terminal, cannot move the cursor, and is wiped away", () => {
  const io = fakeIo({ stderrIsTerminal: true, columns: 20 });
  {
    using line = new ErasableTerminalLine(io);
    line.show("waiting for \x1b[2Ja long while");
    line.show("soon");
  }
  expect(io.stderr()).toBe("\r\x1b[Kwaiting for \ufffd[2Ja l\r\x1b[Ksoon\r\x1b[K");
  expect(io.stdout()).toBe("");
});

test("what was not shown is not wiped away", () => {
  const io = fakeIo({ stderrIsTerminal: true });
  new ErasableTerminalLine(io)[Symbol.dispose]();
  expect(io.stderr()).toBe("");
});

test("in a pipe, and on a terminal that cannot wipe, it does not fit", () => {
  expect(ErasableTerminalLine.canShow(fakeIo())).toBe(false);
  expect(ErasableTerminalLine.canShow(fakeIo({ stderrIsTerminal: true, env: { TERM: "dumb" } }))).toBe(false);
  expect(ErasableTerminalLine.canShow(fakeIo({ stderrIsTerminal: true, env: { TERM: "xterm" } }))).toBe(true);
});
