/** The shell command of a notice: its input, its processes, its limit. */
import { expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { runNoticeCommand } from "../../../../src/coordination/job/notice_command.ts";
import { systemClock } from "../../../../src/base/support/clock.ts";
import { FakeClock } from "../../../support/fake_clock.ts";
import { eventually } from "../../../support/eventually.ts";

class NoticeBench implements Disposable {
  readonly folder = mkdtempSync(join(tmpdir(), "baton-notice-"));
  readonly stop = new AbortController();

  run(line: string, { text = "", clock = systemClock() } = {}): Promise<string | null> {
    const env = { ...process.env, dir: this.folder };
    return runNoticeCommand({ line, env, text, cwd: this.folder }, { clock, signal: this.stop.signal });
  }

  read(name: string): string {
    return readFileSync(join(this.folder, name), "utf8");
  }

  [Symbol.dispose](): void {
    rmSync(this.folder, { recursive: true });
  }
}

test("gets the text on stdin, and works in its folder; a text that is not read is no failure", async () => {
  using bench = new NoticeBench();
  const text = "line\n".repeat(100_000);
  expect(await bench.run("cat >told; pwd >where", { text })).toBe(null);
  expect(bench.read("told")).toBe(text);
  expect(bench.read("where").trim()).toEndWith(bench.folder);
  expect(await bench.run("true", { text })).toBe(null);
});

test("may leave its work to a background process, as mailers do", async () => {
  using bench = new NoticeBench();
  expect(await bench.run("cat >text; (sleep 0.1; mv text told) &", { text: "sent\n" })).toBe(null);
  expect(bench.read("told")).toBe("sent\n");
});

test("a failure, and a background process that does not end within the limit, are reported", async () => {
  using bench = new NoticeBench();
  expect(await bench.run("exit 3")).toBe("exited with 3");
  expect(await bench.run("kill -9 $$")).toBe("was ended by SIGKILL");
  const clock = new FakeClock();
  let failure = "";
  void bench.run("sleep 100 &", { clock }).then((what) => void (failure = what ?? "success"));
  await eventually(async () => {
    await clock.advance(5000);
    return failure !== "";
  });
  expect(failure).toBe("did not end within 30 s");
});

test("a request to stop ends it at once", async () => {
  using bench = new NoticeBench();
  const running = bench.run("echo >began; sleep 100");
  await eventually(() => Bun.file(join(bench.folder, "began")).exists());
  bench.stop.abort();
  expect(await running).toBe(null);
});
