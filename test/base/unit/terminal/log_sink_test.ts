import { expect, test } from "bun:test";
import { StderrLineSink } from "../../../../src/base/terminal/log_sink.ts";
import { outputPieceBytesMax } from "../../../../src/base/terminal/output_writer.ts";

test("a long line stays whole: other lines and messages wait for its end, also if its writer gives up", async () => {
  const written: string[] = [];
  let full: PromiseWithResolvers<void> | null = null;
  const sink = new StderrLineSink({
    err(text) {
      written.push(text);
      if (written.length === 2) full = Promise.withResolvers();
    },
    written: () => full?.promise ?? Promise.resolve(),
  });
  const stop = new AbortController();
  const line = ["long: ", "x".repeat(3 * outputPieceBytesMax), "\n"];
  const writing = sink.write(line, stop.signal);
  const other = sink.write(["other\n"], new AbortController().signal);
  while (full === null) await new Promise(setImmediate);
  for (let count = 0; count < 1001; count++) sink.err(`message ${count}\n`);
  stop.abort(new Error("the job has ended"));
  await expect(writing).rejects.toThrow("the job has ended");
  expect(written.length).toBe(2);
  (full as PromiseWithResolvers<void>).resolve();
  await other;
  const text = written.join("");
  expect(text.startsWith(`${line.join("")}message 0\nmessage 1\n`)).toBe(true);
  expect(text.endsWith("message 999\nbaton: 1 message was lost here: stderr was full\nother\n")).toBe(true);
});

test("a line is written as it is, and divided between characters; a message has no control characters", async () => {
  const written: [text: string, form: string | undefined][] = [];
  const sink = new StderrLineSink({
    err: (text, form) => void written.push([text, form]),
    written: () => Promise.resolve(),
  });
  const line = `\x1b[31mx${"\u{1f600}".repeat(outputPieceBytesMax)}\n`;
  await sink.write([line], new AbortController().signal);
  sink.err("message\n");
  expect(written.pop()).toEqual(["message\n", undefined]);
  expect(written.map(([text]) => text).join("")).toBe(line);
  for (const [text, form] of written) {
    expect([text.isWellFormed(), Buffer.byteLength(text) <= outputPieceBytesMax, form]).toEqual([
      true,
      true,
      "display",
    ]);
  }
});
