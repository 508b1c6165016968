import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { OutputFolder, printOutput } from "../../../../commands/cron/job_output.ts";
import { logSinkOf } from "../../../../src/terminal/service_stderr.ts";
import { systemClock } from "../../../../src/support/clock.ts";

let folder = "";
beforeEach(() => folder = mkdtempSync(join(tmpdir(), "baton-output-")));
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const run = { name: "backup", pid: 7, tickMs: Date.UTC(2026, 0, 2, 3, 4), attempt: 2 };
async function* chunks(...parts: (string | Uint8Array)[]): AsyncGenerator<Uint8Array> {
  for (const part of parts) {
    yield await Promise.resolve(typeof part === "string" ? new TextEncoder().encode(part) : part);
  }
}
async function printed(format: "text" | "json", ...parts: (string | Uint8Array)[]): Promise<string> {
  let text = "";
  const sink = { err: (line: string) => void (text += line), ready: () => Promise.resolve() };
  await printOutput(sink, { ...run, format }, chunks(...parts), new AbortController().signal);
  return text;
}

test("each line has the name and the process, however it was divided; a last line needs no line feed", async () => {
  const euro = new TextEncoder().encode("€");
  expect(await printed("text", "a", "b\n\nc", euro.subarray(0, 1), euro.subarray(1), "\nd")).toBe(
    "backup[7]: ab\nbackup[7]: \nbackup[7]: c€\nbackup[7]: d\n",
  );
  expect(await printed("text")).toBe("");
});

test("a long line is divided, because it is kept in memory", async () => {
  const lines = (await printed("text", "x".repeat(10_000), "x".repeat(10_000))).split("\n");
  expect(lines.map((line) => line.length - "backup[7]: ".length)).toEqual([...Array(16).fill(1200), 800, -11]);
});

test("output without end is written in pieces that a pipe takes whole, and other work goes on between them", async () => {
  async function* endless(): AsyncGenerator<Uint8Array> {
    for (;;) yield await Promise.resolve(new TextEncoder().encode("€\n".repeat(20_000)));
  }
  const reader = new AbortController();
  const pieces: string[] = [];
  const sink = logSinkOf({ err: (text) => void pieces.push(text) }, { libc: null, clock: systemClock() });
  setTimeout(() => reader.abort(new Error("enough")), 1);
  await expect(printOutput(sink, { ...run, format: "text" }, endless(), reader.signal)).rejects.toThrow("enough");
  expect(pieces.length).toBeGreaterThan(0);
  const sizes = pieces.map((piece) => new TextEncoder().encode(piece).length);
  expect(Math.max(...sizes)).toBeLessThanOrEqual(4096);
  expect(pieces.every((piece) => piece.endsWith("\n"))).toBe(true);
});

test("a stderr that nobody reads delays the output of commands", async () => {
  const written: string[] = [];
  let waits = 0;
  const libc = { waitWritable: () => ++waits > 3 };
  const sink = logSinkOf({ err: (text) => void written.push(text) }, { libc, clock: systemClock() });
  await printOutput(sink, { ...run, format: "text" }, chunks("x\n"), new AbortController().signal);
  expect(written).toEqual(["backup[7]: x\n"]);
  expect(waits).toBeGreaterThan(3);
});

test("in a JSON log each line is an object", async () => {
  const [first = "", rest] = (await printed("json", '"a"\n')).split("\n");
  expect([JSON.parse(first), rest]).toEqual([
    { time: expect.any(String), level: "info", event: "output", message: '"a"', name: "backup", pid: 7 },
    "",
  ]);
});

test("each run has a file, and the oldest ones of the name are removed", async () => {
  const output = new OutputFolder(join(folder, "logs"), 2);
  for (const [minute, name] of [[1, "a/b"], [2, "a/b"], [3, "a/b"], [1, "other"]] as const) {
    await output.write({ ...run, name, tickMs: run.tickMs + minute * 60_000 }, chunks(`run ${minute}`));
  }
  expect(readdirSync(join(folder, "logs")).sort()).toEqual(["a%2Fb", "other"]);
  const files = readdirSync(join(folder, "logs/a%2Fb")).sort();
  expect(files).toEqual(["2026-01-02T0306Z-2.log", "2026-01-02T0307Z-2.log"]);
  expect(readFileSync(join(folder, "logs/a%2Fb", files[1] ?? ""), "utf8")).toBe("run 3");
});

test("output that cannot be written is read to its end, and the failure is reported", async () => {
  const output = new OutputFolder(join(folder, "logs"), 2);
  mkdirSync(join(folder, "logs/backup/2026-01-02T0304Z-2.log"), { recursive: true });
  let isRead = false;
  async function* whole() {
    yield* chunks("a", "b");
    isRead = true;
  }
  await expect(output.write(run, whole())).rejects.toThrow("EISDIR");
  expect(isRead).toBe(true);
  expect(() => new OutputFolder("/proc/none", 1)).toThrow("Cannot create --output-dir /proc/none");
});
