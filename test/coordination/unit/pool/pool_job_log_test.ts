import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { formatJobLogLine, type LoggedItemTry, PoolJobLog } from "../../../../src/coordination/pool/pool_job_log.ts";

let folder = "";
beforeEach(() => void (folder = mkdtempSync(join(tmpdir(), "baton-joblog-"))));
afterEach(() => rmSync(folder, { recursive: true }));

const ended: LoggedItemTry = { startedMs: 1_700_000_000_123, tookMs: 4, exitCode: 0, signal: 0, command: ["./w", "a"] };
const header = "Seq\tHost\tStarttime\tJobRuntime\tSend\tReceive\tExitval\tSignal\tCommand\n";
const rows = (file: string) =>
  readFileSync(file, "utf8").trimEnd().split("\n").slice(1).map((line) => line.split("\t"));

test("a line has the columns of GNU parallel, and a command that a shell runs again", () => {
  expect(formatJobLogLine(7, "db1", ended)).toBe("7\tdb1\t1700000000.123\t     0.004\t0\t0\t0\t0\t./w a\n");
  const killed = { ...ended, tookMs: 12_345_678, exitCode: 137, signal: 9, command: ["sh", "-c", "echo 'x'\n$1", ""] };
  expect(formatJobLogLine(8, "db1", killed)).toBe(
    "8\tdb1\t1700000000.123\t 12345.678\t0\t0\t137\t9\tsh -c 'echo '\\''x'\\''\0$1' ''\n",
  );
});

test("the numbers follow the starts, the lines the ends; the last try counts", async () => {
  const file = join(folder, "log");
  using log = new PoolJobLog(file);
  expect(readFileSync(file, "utf8")).toBe(header);
  log.start("a");
  log.start("b");
  log.endTry("a", { ...ended, exitCode: 3 });
  log.start("a"); // again
  log.endTry("b", ended);
  log.write("b");
  log.endTry("a", { ...ended, exitCode: 4 });
  log.write("a");
  log.start("c"); // never ends
  expect(rows(file).map(([sequence, host, , , , , code]) => [sequence, host, code])).toEqual([
    ["2", hostname(), "0"],
    ["1", hostname(), "4"],
  ]);
  expect(await log.end()).toBeNull();
});

test("+ appends and writes one header; otherwise the file begins anew", () => {
  const file = join(folder, "log");
  for (const named of [file, `+${file}`, `+${file}`]) {
    using log = new PoolJobLog(named);
    log.start("a");
    log.endTry("a", ended);
    log.write("a");
  }
  expect(rows(file)).toHaveLength(3);
  expect(readFileSync(file, "utf8").split(header)).toHaveLength(2);
  new PoolJobLog(file)[Symbol.dispose]();
  expect(readFileSync(file, "utf8")).toBe(header);
});

test("a file that cannot be created is refused", () => {
  expect(() => new PoolJobLog(join(folder, "none/log"))).toThrow(
    /^Cannot write --joblog .*none\/log: no such file or directory/,
  );
  expect(() => new PoolJobLog("+")).toThrow("Cannot write --joblog ");
});
