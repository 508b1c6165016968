/**
 * What scripts/compile.sh asks of Bun: Bun ignores an option that it does not know, without a word. And what a start
 * costs.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { BatonSession } from "../../support/baton_session.ts";

const project = join(import.meta.dir, "../../..");
const program = "test/fixtures/compiled_calls.ts";

const folder = mkdtempSync(join(tmpdir(), "baton-compile-"));
/** A small program, compiled as baton is. */
const small = join(folder, "program");

beforeAll(() => {
  const built = spawnSync("sh", ["-c", `. scripts/compile.sh && compile_baton "$0" "" ${program}`, small], {
    cwd: project,
    encoding: "utf8",
  });
  expect(built.status, built.stderr).toBe(0);
}, 60_000);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test("a binary starts with high thresholds for the compilation of JavaScript", () => {
  expect(spawnSync(small, ["300"], { encoding: "utf8" }).stdout).toBe("not optimized\n");
  // Without the option, the same program is optimized.
  expect(spawnSync(process.execPath, [program, "20000"], { cwd: project, encoding: "utf8" }).stdout).toBe(
    "optimized\n",
  );
}, 60_000);

test.skipIf(process.platform !== "linux")("a start touches few pages more than that of a small program", async () => {
  await using session = new BatonSession();
  /**
   * Page faults of a command and its children, each time that it runs; the first run starts the keeper, and does not
   * count.
   */
  const pageFaults = async (command: string) => {
    const { code, stderr } = await session.run(`${command} >/dev/null`);
    expect(code, stderr).toBe(0);
    // The shell's line in /proc has the faults of the children that it has waited for.
    const { stdout } = await session.run(`for n in 1 2 3; do ${command} >/dev/null; done; cat "/proc/$$/stat"`);
    return Number(stdout.slice(stdout.lastIndexOf(")") + 2).split(" ")[8]) / 3;
  };
  const smallest = await pageFaults(`${small} 1`);
  const ratio = async (command: string) => Math.round(await pageFaults(command) / smallest * 100) / 100;
  const ratios = {
    version: await ratio("$baton --version"),
    lock: await ratio("$baton lock -q x true"),
    ls: await ratio("$baton ls -q"),
  };
  console.log(`page faults ÷ the ${Math.round(smallest)} of a small program: ${JSON.stringify(ratios)}`);
  // A new limit is a decision: measure the start with scripts/bench first.
  expect(ratios.version).toBeLessThan(2.8);
  // `ls` reads the options of all products, whose rows it lists.
  expect(ratios.ls).toBeLessThan(3.9);
  expect(ratios.lock).toBeLessThan(6.2); // baton and its guard
}, 60_000);
