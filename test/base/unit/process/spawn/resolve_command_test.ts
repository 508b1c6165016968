import { afterAll, expect, test } from "bun:test";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { resolveCommand } from "../../../../../src/base/process/spawn/resolve_command.ts";

const root = mkdtempSync(join(tmpdir(), "baton-resolve-"));
afterAll(() => rmSync(root, { recursive: true }));

function file(name: string, mode: number): string {
  const path = join(root, name);
  mkdirSync(join(path, ".."), { recursive: true });
  writeFileSync(path, "#!/bin/sh\n");
  chmodSync(path, mode);
  return path;
}

const runs = file("good/tool", 0o755);
const refused = file("bad/tool", 0o644);
mkdirSync(join(root, "folder/tool"), { recursive: true });
const kindOf = (name: string, path?: string) => resolveCommand(name, path).kind;

test("a file that may not be run does not hide one in a later folder", () => {
  expect(resolveCommand("tool", `${root}/bad:${root}/folder:${root}/good`)).toEqual({ kind: "found", path: runs });
});

test("without another one, it is not executable; so is a directory of that name", () => {
  expect(kindOf("tool", `${root}/none:${root}/bad`)).toBe("not_executable");
  expect(kindOf("tool", `${root}/folder`)).toBe("not_executable");
  expect(kindOf(refused)).toBe("not_executable");
  expect(kindOf(`${root}/folder`)).toBe("not_executable");
  expect(kindOf(`${runs}/below`)).toBe("not_executable");
});

test("nothing of that name is not found, by PATH and by path", () => {
  expect(kindOf("tool", `${root}/none:${runs}`)).toBe("not_found");
  expect(kindOf(`${root}/none/tool`)).toBe("not_found");
  expect(kindOf("", "/bin")).toBe("not_found");
});

test("without PATH the system's own folders are searched, and an empty entry is the working directory", () => {
  expect(kindOf("sh", undefined)).toBe("found");
  expect(kindOf("package.json", ":/nowhere")).toBe("not_executable");
});

test("what was found before is not believed for longer than it is there", () => {
  const path = `${root}/first:${root}/good`;
  const first = file("first/tool", 0o755);
  expect(resolveCommand("tool", path)).toEqual({ kind: "found", path: first });
  chmodSync(first, 0o644);
  expect(resolveCommand("tool", path)).toEqual({ kind: "found", path: runs });
  expect(resolveCommand("tool", `${root}/good`)).toEqual({ kind: "found", path: runs });
  rmSync(first);
  expect(kindOf("tool", `${root}/first`)).toBe("not_found");
});

test("a command that is not found: a file of this folder, and a line of a shell, are told how to be run", () => {
  const folder = process.cwd();
  process.chdir(`${root}/good`);
  try {
    expect(resolveCommand("tool", "/none")).toEqual({
      kind: "not_found",
      message: 'Cannot find the command "tool" in any folder of PATH (/none); to run the file of this folder: ./tool',
    });
  } finally {
    process.chdir(folder);
  }
  expect(resolveCommand("echo hi | wc", "/bin")).toEqual({
    kind: "not_found",
    message: 'Cannot find the command "echo hi | wc" in any folder of PATH (/bin); ' +
      "to run a shell command: sh -c 'LINE'",
  });
  expect(resolveCommand("./good/none it", "/bin")).toMatchObject({
    message: 'Cannot run "./good/none it": no such file',
  });
});
