import { afterAll, beforeAll, expect, test } from "bun:test";
import { execFileSync } from "node:child_process";
import { closeSync, constants, mkdtempSync, openSync, readFileSync, readSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { OutputChannel } from "../../../../src/base/terminal/io.ts";
import { eventually } from "../../../support/eventually.ts";

const folder = mkdtempSync(join(tmpdir(), "baton-output-"));
afterAll(() => rmSync(folder, { recursive: true }));

// Both ends of a pipe, with an open file each; the write end blocks, as that of a shell does.
let reader = 0;
let writer = 0;
beforeAll(() => {
  const path = join(folder, "pipe");
  execFileSync("mkfifo", [path]);
  reader = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  writer = openSync(path, constants.O_WRONLY);
});

/** What the pipe has now. */
function readPipe(): Uint8Array {
  const bytes = new Uint8Array(1 << 20);
  try {
    return bytes.subarray(0, readSync(reader, bytes));
  } catch (thrown) {
    expect((thrown as NodeJS.ErrnoException).code).toBe("EAGAIN");
    return new Uint8Array();
  }
}

/** Reads until nothing waits. */
async function readAll(output: OutputChannel): Promise<string> {
  const chunks: Uint8Array[] = [];
  let isWritten = false;
  const written = output.written().then(() => isWritten = true);
  await eventually(() => {
    chunks.push(readPipe());
    return isWritten;
  }, { what: "everything to be written" });
  await written;
  return Buffer.concat([...chunks, readPipe()]).toString();
}

const line = (number: number) => `${number} ${"x".repeat(4000)}\n`;

test("writes to a full pipe return, and the reader gets all of them in order", async () => {
  const output = new OutputChannel(writer);
  const lines = Array.from({ length: 100 }, (_, number) => line(number));
  for (const each of lines) output.write(each);
  expect(output.waiting.length).toBeGreaterThan(0);
  output.write("€".repeat(300_000)); // more than the pipe has room for
  expect(await readAll(output)).toBe(`${lines.join("")}${"€".repeat(300_000)}`);
  expect(output.waiting).toEqual([]);
});

test("the mode of the open file, which other processes share, stays as it was", async () => {
  const output = new OutputChannel(writer);
  for (let number = 0; number < 50; number++) output.write(line(number));
  const [, flags = ""] = /^flags:\s*([0-7]+)/m.exec(readFileSync(`/proc/self/fdinfo/${writer}`, "latin1")) ?? [];
  expect(Number.parseInt(flags, 8) & constants.O_NONBLOCK).toBe(0);
  await readAll(output);
});

test("messages beyond the limit are lost, and their number is told in their place", async () => {
  const output = new OutputChannel(writer);
  while (output.waiting.length === 0) output.write(line(0));
  await readAll(output);
  const waitingMax = 3;
  for (let number = 0; number < 1000; number++) output.write(line(number), waitingMax);
  expect(output.waiting).toHaveLength(waitingMax);
  const lost = output.lost;
  expect(lost).toBeGreaterThan(900);
  const told = (await readAll(output)).split("\n").map((text) => text.slice(0, 80));
  expect(told.slice(0, 1000 - lost).map((text) => text.split(" ")[0])).toEqual(
    Array.from({ length: 1000 - lost }, (_, number) => String(number)),
  );
  expect(told.slice(1000 - lost)).toEqual([`baton: ${lost} messages were lost here: stderr was full`, ""]);
  output.write("after\n", waitingMax);
  expect(await readAll(output)).toBe("after\n");
});

test("one message is written whole, however long it is", async () => {
  const output = new OutputChannel(writer);
  const text = `${"€x".repeat(100_000)}\n`;
  output.write(text, 1);
  expect(await readAll(output)).toBe(text);
  expect(output.lost).toBe(0);
});

test("a wait for the reader ends with the signal, and the text still waits", async () => {
  const output = new OutputChannel(writer);
  while (output.waiting.length === 0) output.write(line(0));
  const stop = new AbortController();
  const written = output.written(stop.signal);
  stop.abort(new Error("enough"));
  await expect(written).rejects.toThrow("enough");
  expect(output.waiting.length).toBeGreaterThan(0);
  await readAll(output);
});

test("a file without room fails, also later", () => {
  const output = new OutputChannel(openSync("/dev/full", "w"));
  expect(() => output.write("x")).toThrow(/ENOSPC/);
  expect(() => output.write("")).toThrow(/ENOSPC/);
  expect(output.failure).toMatchObject({ code: "ENOSPC" });
});

test("the read end of a pipe is no output", () => {
  expect(() => new OutputChannel(reader).write("x")).toThrow(/EBADF/);
});

test("a file has what was written when the write returns", () => {
  const path = join(folder, "file");
  const fd = openSync(path, "w");
  const output = new OutputChannel(fd);
  const long = "ä".repeat(200_000);
  output.write(long);
  output.write("end");
  expect(output.waiting).toEqual([]);
  closeSync(fd);
  expect(readFileSync(path, "utf8")).toBe(`${long}end`);
});

test("a pipe without a reader fails, also while text waits", async () => {
  const path = join(folder, "left");
  execFileSync("mkfifo", [path]);
  const left = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  const output = new OutputChannel(openSync(path, constants.O_WRONLY));
  while (output.waiting.length === 0) output.write(line(0));
  closeSync(left);
  await output.written();
  expect(output.failure).toMatchObject({ code: "EPIPE" });
  expect(output.waiting).toEqual([]);
});

test("a pipe that another program has made non-blocking is written like any other", async () => {
  const path = join(folder, "shared");
  execFileSync("mkfifo", [path]);
  const both = openSync(path, constants.O_RDWR | constants.O_NONBLOCK);
  const output = new OutputChannel(both);
  while (output.waiting.length === 0) output.write(line(0));
  const bytes = new Uint8Array(1 << 20);
  let isWritten = false;
  void output.written().then(() => isWritten = true);
  await eventually(() => {
    if (!isWritten) readSync(both, bytes);
    return isWritten;
  }, { what: "the rest to be written" });
  expect(output.failure).toBeNull();
  closeSync(both);
});
