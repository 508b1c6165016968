/**
 * The command of the npm package: it finds the binary of the platform package, runs it in its place, or says what is
 * missing.
 */
import { afterEach, beforeEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import { spawn, spawnSync } from "node:child_process";
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { eventually } from "../../support/eventually.ts";

setDefaultTimeout(60_000);

const root = join(import.meta.dirname, "../../..");
const shim = join(root, "scripts/packages/npm/baton.js");
const here = `${process.platform}-${process.arch}`;
const main = "@scope/baton";

let folder = "";
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "baton-shim-"));
  mkdirSync(join(folder, "node_modules", main, "bin"), { recursive: true });
  copyFileSync(shim, join(folder, "node_modules", main, "bin/baton.js"));
  const names = [here, `${here}-musl`, "sunos-sparc"].map((platform) => `${main}-${platform}`);
  const description = {
    name: main,
    version: "1.2.3",
    type: "module",
    optionalDependencies: Object.fromEntries(names.map((name) => [name, "1.2.3"])),
  };
  writeFileSync(join(folder, "node_modules", main, "package.json"), JSON.stringify(description));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** A platform package whose binary is a shell script. */
function install(platform: string, script: string): void {
  const target = join(folder, "node_modules", `${main}-${platform}`);
  mkdirSync(join(target, "bin"), { recursive: true });
  writeFileSync(join(target, "package.json"), JSON.stringify({ name: `${main}-${platform}`, version: "1.2.3" }));
  writeFileSync(join(target, "bin/baton"), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
}

const program = () => join(folder, "node_modules", main, "bin/baton.js");
const run = (args: readonly string[], { input = "", node = "node" } = {}) =>
  spawnSync(node, [program(), ...args], { encoding: "utf8", input, cwd: folder });

/** Node before 22.15 stays as the parent of the binary; a later one replaces itself by it. */
const nodes = new Set([
  "node",
  spawnSync("sh", [join(root, "scripts/install_node")], { encoding: "utf8" }).stdout.trim(),
]);

test("a musl that is too old is named, and the binary, which would crash there, is not started", () => {
  const loader = join(folder, "ld-musl-x86_64.so.1");
  for (const [version, status] of [["1.2.3", 69], ["1.1.24", 69], ["1.2.4", 0], ["1.3.0", 0], ["2.0.0", 0]] as const) {
    writeFileSync(loader, `#!/bin/sh\necho "musl libc (x86_64)\nVersion ${version}" >&2; exit 1\n`, { mode: 0o755 });
    install(`${here}-musl`, `# ${loader}\necho started`);
    const ended = run(["version"]);
    expect([version, ended.status, ended.stdout]).toEqual([version, status, status === 0 ? "started\n" : ""]);
    if (status === 69) expect(ended.stderr).toContain(`musl ${version} is too old: baton needs musl 1.2.4 or later`);
  }
});

describe.each([...nodes])("with the package of this platform, under %s", (node) => {
  test("arguments, input, output and the exit code pass through", () => {
    install(here, `read -r line; printf '[%s]' "$line" "$@"; echo warned >&2; exit 7`);
    expect(run(["lock", "a b", "", "--", "*"], { node, input: "hello\n" })).toMatchObject({
      status: 7,
      stdout: "[hello][lock][a b][][--][*]",
      stderr: "warned\n",
    });
  });

  test.each(["SIGTERM", "SIGHUP", "SIGKILL"])("a binary that ends by %s ends the command with that signal", (name) => {
    install(here, `kill -${name.slice(3)} $$`);
    expect(run([], { node })).toMatchObject({ status: null, signal: name });
  });

  test("a signal for the command reaches the binary, which decides about the exit code", async () => {
    install(here, `sleep 60 & trap 'kill $!; echo stopping; exit 3' TERM; echo ready; wait`);
    const child = spawn(node, [program()], { stdio: ["pipe", "pipe", "inherit"] });
    let said = "";
    child.stdout.setEncoding("utf8").on("data", (text: string) => said += text);
    const ended = new Promise((resolve) => child.on("close", (code, signal) => resolve(signal ?? code)));
    await eventually(() => said.includes("ready"), { withinMs: 30_000 });
    child.kill("SIGTERM");
    expect(await ended).toBe(3);
    expect(said).toBe("ready\nstopping\n");
  });
});

test("the package for musl is used where it is the only one", () => {
  if (process.platform !== "linux") return;
  install(`${here}-musl`, "echo musl");
  expect(run([])).toMatchObject({ status: 0, stdout: "musl\n" });
  install(here, "echo glibc");
  expect(run([])).toMatchObject({ status: 0, stdout: "glibc\n" });
});

test("without the package the message names it, the reason and the command that installs it", () => {
  const { status, stdout, stderr } = run(["lock", "a", "--", "true"]);
  expect([status, stdout]).toEqual([69, ""]);
  expect(stderr).toContain(`${main}-${here}`);
  expect(stderr).toContain("--omit=optional");
  expect(stderr).toContain(`npm install --include=optional ${main}@1.2.3\n`);
});

test("a platform without a binary is named, and so are those with one", () => {
  const preload = `data:text/javascript,Object.defineProperty(process,"platform",{value:"win32"})`;
  const { status, stderr } = spawnSync("node", ["--import", preload, program()], { encoding: "utf8" });
  expect(status).toBe(69);
  expect(stderr).toStartWith(
    `baton: there is no binary for win32-${process.arch}. Binaries: ${here}, ${here}-musl, sunos`,
  );
});
