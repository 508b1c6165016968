import { expect, test } from "bun:test";
import { FakeClock } from "../../support/fake_clock.ts";
import { LineSink, pieceBytesMax, ServiceStderr } from "../../../src/terminal/service_stderr.ts";

function stderr() {
  const state = { isFull: false, waitedMs: 0 };
  const written: string[] = [];
  const libc = {
    waitWritable(_fd: number, timeoutMs: number) {
      if (state.isFull) state.waitedMs += timeoutMs;
      return !state.isFull;
    },
  };
  const sink = new ServiceStderr({ err: (text) => void written.push(text) }, libc);
  return { sink, state, written };
}

test("one message waits for a reader that has stopped, the others are lost at once, and their number is told when it reads", () => {
  const { sink, state, written } = stderr();
  sink.err("before\n");
  state.isFull = true;
  for (let count = 0; count < 1000; count++) sink.err("lost\n");
  expect(state.waitedMs).toBe(100);
  state.isFull = false;
  sink.err("after\n");
  sink.err("again\n");
  expect(written).toEqual([
    "before\n",
    "baton: 1000 messages were lost here: stderr was full\n",
    ...["after\n", "again\n"],
  ]);
});

test("a long message is written in pieces that a pipe takes whole", () => {
  const { sink, written } = stderr();
  const text = `${"€x".repeat(10_000)}\n`;
  sink.err(text);
  expect(written.join("")).toBe(text);
  expect(Math.max(...written.map((piece) => Buffer.byteLength(piece)))).toBeLessThanOrEqual(pieceBytesMax);
});

test("a long line stays whole: other lines and messages wait for its end, also when its writer gives up before", async () => {
  const written: string[] = [];
  const state = { isFull: false };
  const clock = new FakeClock();
  const sink = new LineSink({
    err(text) {
      written.push(text);
      if (written.length === 2) state.isFull = true;
    },
  }, { libc: { waitWritable: () => !state.isFull }, clock });
  const stop = new AbortController();
  const line = ["long: ", "x".repeat(3 * pieceBytesMax), "\n"];
  const writing = sink.write(line, stop.signal);
  const other = sink.write(["other\n"], new AbortController().signal);
  while (!state.isFull) await new Promise(setImmediate);
  for (let count = 0; count < 1001; count++) sink.err(`message ${count}\n`);
  stop.abort(new Error("the job has ended"));
  await expect(writing).rejects.toThrow("the job has ended");
  expect(written.length).toBe(2);
  state.isFull = false;
  await clock.advance(1000);
  await other;
  const text = written.join("");
  expect(text.startsWith(`${line.join("")}message 0\nmessage 1\n`)).toBe(true);
  expect(text.endsWith("message 999\nbaton: 1 message was lost here: stderr was full\nother\n")).toBe(true);
});
