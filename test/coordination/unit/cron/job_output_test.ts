import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  jobOutputFileBytesMax,
  JobOutputFolder,
  jobOutputLineLengthMax,
  printJobOutput,
} from "../../../../src/coordination/cron/job_output.ts";
import { FakeClock } from "../../../support/fake_clock.ts";
import { readRestOfJobOutput, StderrLineSink } from "../../../../src/base/terminal/log_sink.ts";

let folder = "";
beforeEach(() => folder = mkdtempSync(join(tmpdir(), "baton-output-")));
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const run = { name: "backup", pid: 7, tickMs: Date.UTC(2026, 0, 2, 3, 4), attempt: 2, isTerminal: false };
async function* chunks(...parts: (string | Uint8Array)[]): AsyncGenerator<Uint8Array> {
  for (const part of parts) {
    yield await Promise.resolve(typeof part === "string" ? new TextEncoder().encode(part) : part);
  }
}
type Printed = Partial<Parameters<typeof printJobOutput>[1]>;
async function printed(options: Printed, ...parts: (string | Uint8Array)[]): Promise<string> {
  let text = "";
  const sink = { write: (parts: Iterable<string>) => Promise.resolve(void (text += [...parts].join(""))) };
  await printJobOutput(sink, { ...run, format: "text", ...options }, chunks(...parts), new AbortController().signal);
  return text;
}

test("each line has the name and the process, however it was divided; a last line needs no line feed", async () => {
  const euro = new TextEncoder().encode("€");
  expect(await printed({}, "a", "b\n\nc", euro.subarray(0, 1), euro.subarray(1), "\nd")).toBe(
    "backup[7]: ab\nbackup[7]: \nbackup[7]: c€\nbackup[7]: d\n",
  );
  expect(await printed({})).toBe("");
});

test("a line of any length is whole, also in a JSON log; one without end is divided at 16 MiB", async () => {
  const long = `${"x€\u{1f600}".repeat(100_000)}"\\`;
  const bytes = new TextEncoder().encode(`${long}\n`);
  const parts = Array.from({ length: 9 }, (_, index) => bytes.subarray(index * 100_001, (index + 1) * 100_001));
  expect(await printed({}, "a\n", ...parts, "b")).toBe(`backup[7]: a\nbackup[7]: ${long}\nbackup[7]: b\n`);
  const lines = (await printed({ format: "json" }, ...parts)).trimEnd().split("\n");
  expect(lines.map((line) => JSON.parse(line).message)).toEqual([long]);
  const mebibyte = "x".repeat(1024 * 1024);
  const endless = (await printed({}, ...Array<string>(20).fill(mebibyte))).trimEnd().split("\n");
  const lengths = endless.map((line) => line.length - "backup[7]: ".length);
  expect(lengths).toEqual([jobOutputLineLengthMax + mebibyte.length, 3 * mebibyte.length]);
});

test("a terminal gets no control characters but tabs; elsewhere a line is what the command wrote", async () => {
  const line = "\ufeffa\tb\x1b[31mc\x9b2J\u202ed\r";
  expect(await printed({}, `${line}\n`)).toBe(`backup[7]: ${line}\n`);
  expect(await printed({ isTerminal: true }, `${line}\n`)).toBe("backup[7]: �a\tb�[31mc�2J�d\n");
  const json = (await printed({ format: "json" }, `${line}\x7f\u2028\u{e0001}\n`)).trimEnd();
  expect(json).not.toMatch(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u);
  expect(JSON.parse(json).message).toBe(`${line}\x7f\u2028\u{e0001}`);
});

test("output of a dead command is given up when its reader takes nothing, not while it takes other lines", async () => {
  const clock = new FakeClock();
  const sink = { taken: 0 };
  const isOver = { is: false };
  const rest = readRestOfJobOutput(sink, new Promise(() => {}), { clock, waitMs: 2000 }).then(() =>
    void (isOver.is = true)
  );
  for (let count = 0; count < 10; count++) {
    sink.taken++;
    await clock.advance(2000);
    expect(isOver.is).toBe(false);
  }
  await clock.advance(2000);
  await rest;
  await readRestOfJobOutput(sink, Promise.resolve(), { clock, waitMs: 2000 });
});

test("output without end is written in pieces that a pipe takes whole; other work goes on between", async () => {
  async function* endless(): AsyncGenerator<Uint8Array> {
    for (;;) yield await Promise.resolve(new TextEncoder().encode("€\n".repeat(20_000)));
  }
  const reader = new AbortController();
  const pieces: string[] = [];
  const err = (text: string) => {
    if (pieces.push(text) === 1) setTimeout(() => reader.abort(new Error("enough")), 1);
  };
  const sink = new StderrLineSink({ err, written: () => Promise.resolve() });
  await expect(printJobOutput(sink, { ...run, format: "text" }, endless(), reader.signal)).rejects.toThrow("enough");
  expect(pieces.length).toBeGreaterThan(0);
  const sizes = pieces.map((piece) => new TextEncoder().encode(piece).length);
  expect(Math.max(...sizes)).toBeLessThanOrEqual(4096);
  expect(pieces.every((piece) => piece.endsWith("\n"))).toBe(true);
});

test("a stderr that is not read delays the output of commands", async () => {
  const written: string[] = [];
  const full = Promise.withResolvers<void>();
  const asked = Promise.withResolvers<void>();
  const sink = new StderrLineSink({
    err: (text) => void written.push(text),
    written() {
      asked.resolve();
      return full.promise;
    },
  });
  const printing = printJobOutput(sink, { ...run, format: "text" }, chunks("x\n"), new AbortController().signal);
  await asked.promise;
  expect(written).toEqual([]);
  full.resolve();
  await printing;
  expect(written).toEqual(["backup[7]: x\n"]);
});

test("in a JSON log each line is an object", async () => {
  const [first = "", rest] = (await printed({ format: "json" }, '"a"\n')).split("\n");
  expect([JSON.parse(first), rest]).toEqual([
    { time: expect.any(String), level: "info", event: "output", message: '"a"', name: "backup", pid: 7 },
    "",
  ]);
});

test("each run has a file, and the oldest ones of the name are removed", async () => {
  const output = new JobOutputFolder(join(folder, "logs"), 2);
  for (const [minute, name] of [[1, "a/b"], [2, "a/b"], [3, "a/b"], [1, "other"]] as const) {
    await output.write({ ...run, name, tickMs: run.tickMs + minute * 60_000 }, chunks(`run ${minute}`));
  }
  expect(readdirSync(join(folder, "logs")).sort()).toEqual(["a%2Fb", "other"]);
  const files = readdirSync(join(folder, "logs/a%2Fb")).sort();
  expect(files).toEqual(["2026-01-02T0306Z-2.log", "2026-01-02T0307Z-2.log"]);
  expect(readFileSync(join(folder, "logs/a%2Fb", files[1] ?? ""), "utf8")).toBe("run 3");
});

test("a run with much output has several files, in the order of writing; the newest are kept", async () => {
  const output = new JobOutputFolder(join(folder, "logs"), 3);
  const mebibyte = (index: number) => new Uint8Array(1024 * 1024).fill(97 + index % 26);
  await output.write({ ...run, attempt: 9 }, chunks("before"));
  await output.write({ ...run, attempt: 10 }, chunks(...Array.from({ length: 115 }, (_, index) => mebibyte(index))));
  const names = [10, 11, 12].map((number) => `2026-01-02T0304Z-10.${number}.log`);
  expect(readdirSync(join(folder, "logs/backup")).sort()).toEqual(names);
  const [first, second, last] = names.map((name) => readFileSync(join(folder, "logs/backup", name)));
  expect([first?.length, second?.length, last?.length]).toEqual([
    jobOutputFileBytesMax,
    jobOutputFileBytesMax,
    5 * 1024 * 1024,
  ]);
  expect([first?.[0], last?.at(-1)]).toEqual([mebibyte(90)[0], mebibyte(114)[0]]);
  // A tick that was given back goes on in the last file.
  await output.write({ ...run, attempt: 10 }, chunks("more"));
  expect(readdirSync(join(folder, "logs/backup")).sort()).toContain("2026-01-02T0304Z-10.12.log");
});

test("output that cannot be written is read to its end, and the failure is reported", async () => {
  const output = new JobOutputFolder(join(folder, "logs"), 2);
  mkdirSync(join(folder, "logs/backup/2026-01-02T0304Z-2.log"), { recursive: true });
  let isRead = false;
  async function* whole() {
    yield* chunks("a", "b");
    isRead = true;
  }
  await expect(output.write(run, whole())).rejects.toThrow("EISDIR");
  expect(isRead).toBe(true);
  expect(() => new JobOutputFolder("/proc/none", 1)).toThrow("Cannot write into --output-dir /proc/none");
});

test("output goes on when an old file cannot be removed, which is reported, or its folder was removed", async () => {
  const output = new JobOutputFolder(join(folder, "logs"), 1);
  const old = join(folder, "logs/backup/2026-01-01T0000Z-1.log");
  mkdirSync(old, { recursive: true });
  await expect(output.write(run, chunks("a", "b"))).rejects.toThrow("2026-01-01T0000Z-1.log");
  expect(readFileSync(join(folder, "logs/backup/2026-01-02T0304Z-2.log"), "utf8")).toBe("ab");
  async function* removing() {
    yield new Uint8Array(jobOutputFileBytesMax);
    rmSync(join(folder, "logs"), { recursive: true });
    yield* chunks("after");
  }
  await output.write({ ...run, name: "other" }, removing());
  expect(readFileSync(join(folder, "logs/other/2026-01-02T0304Z-2.2.log"), "utf8")).toBe("after");
});
