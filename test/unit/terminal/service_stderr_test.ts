import { expect, test } from "bun:test";
import { pieceBytesMax, ServiceStderr } from "../../../src/terminal/service_stderr.ts";

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
