/** Texts of servers, backends and other users, on their way to a terminal. */
import { expect, test } from "bun:test";
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import process from "node:process";
import { responseReasonText } from "../../../../src/pubsub/client/requester.ts";
import { type Io, printableLines } from "../../../../src/base/terminal/io.ts";
import { createProcessLog } from "../../../../src/base/terminal/process_log.ts";

const foreign = "bad\x1b]0;title\x07\r\u009b31m\u202e\u2028end";
const harmless = "bad\ufffd]0;title\ufffd\ufffd\ufffd31m\ufffd\ufffdend";

test("messages on stderr have no control characters, but lines and tabs; a display is written as it is", () => {
  expect(printableLines(`a\tb\n${foreign}\n`)).toBe(`a\tb\n${harmless}\n`);
  const script = `import { systemIo } from ${
    JSON.stringify(join(import.meta.dir, "../../../../src/base/terminal/io.ts"))
  };
    const io = systemIo(); io.err(${JSON.stringify(`${foreign}\n`)}); io.err("\\r\\x1b[K", "display");`;
  const { stderr } = spawnSync(process.execPath, ["-e", script], { encoding: "utf8" });
  expect(stderr).toBe(`${harmless}\n\r\x1b[K`);
});

test("a line of a log stays one line; JSON has its characters escaped", () => {
  let said = "";
  const io = { err: (text: string) => void (said += text) } as unknown as Io;
  createProcessLog(io, { who: "baton", format: "text" })("warning", "x", `${foreign}\nbaton: forged`);
  expect(said.split("\n")).toEqual([expect.stringContaining(`warning: ${harmless}\ufffdbaton: forged`), ""]);
  said = "";
  const flag = "\u{1f3f4}\u{e0067}\u{e007f}";
  createProcessLog(io, { who: "baton", format: "json" })("warning", "x", `${foreign}${flag}`);
  expect(printableLines(said)).toBe(said); // nothing is left that stderr would replace
  expect(JSON.parse(said).message).toBe(`${foreign}${flag}`);
});

test("the reason of a server of topics is one line without control characters", () => {
  const body = new TextEncoder().encode(`${foreign}\n2`);
  expect(responseReasonText({ name: "STATUS", sender: "s", status: "FULL", body })).toBe(`${harmless}\ufffd2`);
});
