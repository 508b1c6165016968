import { afterAll, expect, test } from "bun:test";
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type CommandStatusReport, StatusReportWriter } from "../../../../src/base/terminal/status_report.ts";

const folder = mkdtempSync(join(tmpdir(), "baton-status-"));
afterAll(() => rmSync(folder, { recursive: true }));

const report: CommandStatusReport = {
  version: 1,
  command: "lock",
  names: ["a"],
  reason: "command_exited",
  exit_code: 0,
  signal: null,
  command_status: { code: 0, signal: null },
  fencing_tokens: ["9007199254740993"],
  waited_ms: 1,
  held_ms: 2,
  message: null,
};

test("one line goes to the descriptor and to the file", () => {
  const fd = openSync(join(folder, "fd"), "w");
  using status = new StatusReportWriter({ fd, file: join(folder, "file"), inheritedFds: [fd] });
  expect(status.write(report)).toEqual([]);
  closeSync(fd);
  for (const name of ["fd", "file"]) {
    const text = readFileSync(join(folder, name), "utf8");
    expect(text).toEndWith("}\n");
    expect(JSON.parse(text)).toEqual(report);
  }
});

test("a descriptor that is not open, or that baton opened itself, is refused", () => {
  expect(() => new StatusReportWriter({ fd: 987, inheritedFds: [987] })).toThrow(
    "--status-fd 987: descriptor 987 is not open",
  );
  const fd = openSync(join(folder, "own"), "w");
  expect(() => new StatusReportWriter({ fd, inheritedFds: [] })).toThrow("is not open");
  closeSync(fd);
});

test("a file that cannot be created is refused before anything is done", () => {
  expect(() => new StatusReportWriter({ file: join(folder, "none/file"), inheritedFds: [] })).toThrow(
    /--status-file .* cannot create the file/,
  );
});

test("what cannot be written is said, not thrown", () => {
  using status = new StatusReportWriter({ file: "/dev/full", inheritedFds: [] });
  expect(status.write(report).join()).toMatch(/Cannot write --status-file \/dev\/full: no space left on device;/);
});

test.skipIf(process.platform !== "linux")("a descriptor that is open for reading only is refused", () => {
  const fd = openSync("/dev/null", "r");
  expect(() => new StatusReportWriter({ fd, inheritedFds: [fd] })).toThrow(`descriptor ${fd} is open for reading only`);
  closeSync(fd);
});
