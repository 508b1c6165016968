import { expect, test } from "bun:test";
import { failingShellLine, shellExportLines } from "../../../../src/base/support/shell_quote.ts";

function evaluate(lines: string, then: string): { code: number; stdout: string } {
  const { exitCode, stdout } = Bun.spawnSync(["sh", "-c", `eval "$1"; ${then}`, "sh", lines], { env: { OLD: "old" } });
  return { code: exitCode, stdout: stdout.toString() };
}

test("a shell takes in every value as it is", () => {
  const value = "it's \"$HOME\" `id` \\ $(id)\n  two  lines; & | # * ' '' é";
  expect(evaluate(shellExportLines({ V: value }, {}), 'printf %s "$V"').stdout).toBe(value);
  expect(evaluate(shellExportLines({ V: value }, {}), "env").stdout).toContain(`V=${value}`);
  expect(evaluate(shellExportLines({ V: "" }, {}), 'echo "${V-unset}"').stdout).toBe("\n");
});

test("a variable is taken away where it is set", () => {
  const lines = shellExportLines({ OLD: undefined, NONE: undefined, A: "a" }, { OLD: "old" });
  expect(lines).toBe("export A='a'\nunset OLD\n");
  expect(evaluate(lines, 'echo "${OLD-unset}"').stdout).toBe("unset\n");
});

test("what failed fails when it is evaluated, and ends nothing by itself", () => {
  expect(evaluate(failingShellLine(75), 'echo "$?"')).toEqual({ code: 0, stdout: "75\n" });
});
