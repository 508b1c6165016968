import { describe, expect, test } from "bun:test";
import {
  checkCycles,
  checkDependencies,
  checkFileNames,
  checkLayers,
  checkPlaces,
} from "../../../scripts/tidy/layers.ts";
import { checkLinks, checkMachinePaths, checkShape, checkTasks, checkWaits } from "../../../scripts/tidy/shape.ts";
import { checkStart } from "../../../scripts/tidy/start.ts";
import { checkComments, checkTypeNames, checkWords } from "../../../scripts/tidy/language.ts";
import type { Finding, SourceFile } from "../../../scripts/tidy/source_file.ts";

type Rule = (file: SourceFile) => Finding[];

const found = (rule: Rule, path: string, text: string) =>
  rule({ path, text }).map(({ line, message }) => `${line}: ${message}`);

/** The rule finds exactly one thing in the bad text, and nothing in the good one. */
function catches(rule: Rule, name: string, path: string, example: { bad: string; good: string; line?: number }): void {
  test(name, () => {
    expect(found(rule, path, example.good)).toEqual([]);
    const findings = rule({ path, text: example.bad });
    expect(findings.length).toBe(1);
    expect(findings[0]?.line).toBe(example.line ?? 1);
  });
}

describe("layers", () => {
  catches(checkLayers, "wire may not import a client", "src/wire/frame.ts", {
    bad: `import { a } from "../support/a.ts";\nimport type { b } from "../zookeeper/b.ts";`,
    good: `import { a } from "../support/a.ts";\nimport { b } from "../errors.ts";`,
    line: 2,
  });
  catches(
    checkLayers,
    "a client may not import what stands on it, not even its types",
    "src/zookeeper/zookeeper_client.ts",
    {
      bad: `import type { Lease } from "../coordination/lease.ts";`,
      good: `import { record } from "../wire/jute/jute_codec.ts";`,
    },
  );
  catches(checkLayers, "coordination knows nothing of bytes", "src/coordination/lock.ts", {
    bad: `import { ByteReader } from "../wire/bytes.ts";`,
    good: `import { permission } from "../wire/jute/zookeeper_operations.ts";`,
  });
  catches(checkLayers, "a dynamic import counts", "src/keeper/lifecycle/start_keeper.ts", {
    bad: `const lock = await import("../../coordination/lock.ts");`,
    good: `const tree = await import("./tree.ts");`,
  });
  catches(checkLayers, "the client and the keeper do not know each other", "src/keeper/lifecycle/start_keeper.ts", {
    bad: `import "../../zookeeper/zookeeper_client.ts";`,
    good: `import "../../sockets/listen.ts";`,
  });
  catches(checkLayers, "the product imports nothing from the tests", "src/support/clock.ts", {
    bad: `import { eventually } from "../../test/support/eventually.ts";`,
    good: `import { BatonError } from "../errors.ts";`,
  });
  catches(checkLayers, "sockets are opened in src/sockets alone", "src/zookeeper/session.ts", {
    bad: `import { connect } from "node:net";`,
    good: `import { randomBytes } from "node:crypto";`,
  });
  catches(checkLayers, "a package that is not a dependency", "src/support/a.ts", {
    bad: `import chalk from "chalk";`,
    good: `import { styleText } from "node:util";`,
  });
  catches(checkLayers, "zod stays where values come in", "src/keeper/state/a.ts", {
    bad: `import { z } from "zod";`,
    good: ``,
  });
  catches(checkLayers, "a folder does not open the folders below it", "src/process/spawn/a.ts", {
    bad: `import { b } from "../supervise/b.ts";`,
    good: `import { b } from "../proc/b.ts";`,
  });

  test("imports that go in a circle are found, those of types too", () => {
    const source = (name: string, imported: string, type = "") => ({
      path: `src/support/${name}.ts`,
      text: `import ${type}{ a } from "./${imported}.ts";`,
    });
    const line = [source("a", "b"), source("b", "c", "type "), source("d", "a")];
    expect(checkCycles(line)).toEqual([]);
    const findings = checkCycles([...line, source("c", "a", "type ")]);
    expect(findings.map(({ path, message }) => [path, message])).toEqual([
      ["src/support/a.ts", "imports go in a circle: src/support/a.ts, src/support/b.ts, src/support/c.ts"],
    ]);
  });

  test("a file name is used once in the product", () => {
    const files = ["src/support/a.ts", "src/wire/b.ts", "test/unit/a.ts"].map((path) => ({ path, text: "" }));
    expect(checkFileNames(files)).toEqual([]);
    expect(checkFileNames([...files, { path: "commands/a.ts", text: "" }]).length).toBe(1);
  });

  test("a new folder has to be given a layer", () => {
    expect(found(checkLayers, "src/gossip/a.ts", "").length).toBe(1);
  });
});

test("a dependency that nothing imports any more", () => {
  const files = [
    { path: "src/config/a.ts", text: `import * as z from "zod/mini";` },
    { path: "src/wire/a.ts", text: `import { salsa20 } from "@noble/ciphers/salsa.js";` },
    { path: "test/a.ts", text: `import "left";` },
  ];
  const dependencies = `{"dependencies":{"zod":"4.0.0","left":"1.0.0","@noble/ciphers":"2.0.0"}}`;
  const findings = checkDependencies(dependencies, files);
  expect(findings.map(({ message }) => message)).toEqual([`nothing imports "left"`]);
});

describe("places", () => {
  catches(checkPlaces, "Bun's own functions", "src/keeper/state/a.ts", {
    bad: `/** Bun.file would do. */\nconst text = await Bun.file("a").text();`,
    good: `// Bun.file would do\nconst runtime = "Bun.file"; const has = "Deno" in globalThis;`,
    line: 2,
  });
  catches(checkPlaces, "Deno's own functions", "commands/lock.ts", { bad: `Deno.exit();`, good: `` });
  catches(checkPlaces, "a second writer of the exit code", "commands/lock.ts", {
    bad: `process.exitCode = exitCodes.busy;`,
    good: `if (process.exitCode === undefined) return;`,
  });
  catches(checkPlaces, "binary results of PostgreSQL", "src/postgres/a.ts", {
    bad: `new pg.Client({ binary: true });`,
    good: `// binary results are text\nnew pg.Client({});`,
  });
  catches(checkLayers, "a second user of pg", "src/retry/queue/a.ts", {
    bad: `import pg from "pg";`,
    good: `import { join } from "node:path";`,
  });
  catches(checkPlaces, "process.exit", "src/process/spawn/run.ts", { bad: `process.exit(1);`, good: `return;` });
  catches(checkPlaces, "a request that is not sent by the client", "src/retry/a.ts", {
    bad: `const response = await fetch(url);`,
    good: `const got = await subscriber.fetch(); async fetch() {}`,
  });
  catches(checkPlaces, "a write to stdout that may block", "commands/who.ts", {
    bad: `writeSync(1, bytes);`,
    good: `io.out(bytes); writeSync(fd, bytes, 1, 2);`,
  });
  catches(checkPlaces, "a message past stderr's owner", "src/zookeeper/a.ts", {
    bad: `process.stderr.write(text);`,
    good: `const { columns } = process.stderr;`,
  });
  catches(checkPlaces, "a number where a name belongs", "commands/lock.ts", {
    bad: `return 75;`,
    good: `return exitCodes.busy;`,
  });
  catches(checkPlaces, "a schema at every start", "commands/who.ts", {
    bad: `import { whoShape } from "./json_shapes/lock_shapes.ts";`,
    good: `import type { WhoJson } from "./json_shapes/lock_shapes.ts";`,
  });
  test("are free in the folders made for them", () => {
    expect(found(checkPlaces, "src/sockets/bun_dial.ts", `Bun.connect({});`)).toEqual([]);
    expect(found(checkPlaces, "commands/main.ts", `process.exitCode = code;`)).toEqual([]);
    expect(found(checkLayers, "src/sockets/dial.ts", `import { connect } from "node:net";`)).toEqual([]);
  });
});

describe("names and sizes", () => {
  const head = "/** Owns it. */\n";
  const lines = (count: number) => head + "const a = 1;\n".repeat(count - 1);
  test("drawers, and names in another case", () => {
    for (const name of ["utils", "helpers", "index", "leaderElection"]) {
      expect(found(checkShape, `src/support/${name}.ts`, head).length).toBe(1);
    }
  });
  catches(checkShape, "a file that is too long", "src/keeper/state/tree.ts", { bad: lines(501), good: lines(500) });
  catches(checkShape, "a function that is too long", "src/keeper/state/tree.ts", {
    bad: `${head}export async function a() {\n${"  b();\n".repeat(69)}}\n`,
    good: `${head}export async function a() {\n${"  b();\n".repeat(68)}}\n`,
    line: 2,
  });
  catches(checkShape, "a method that is too long", "src/keeper/state/tree.ts", {
    bad: `${head}class A {\n  async #grow(a: number): void {\n${"    b();\n".repeat(69)}  }\n}\n`,
    good: `${head}class A {\n  async #grow(a: number): void {\n${"    b();\n".repeat(68)}  }\n}\n`,
    line: 3,
  });
  catches(checkShape, "a module that does not say what it owns", "src/keeper/state/tree.ts", {
    bad: `const a = 1;`,
    good: head,
  });
});

describe("texts", () => {
  catches(checkWaits, "a literal sleep", "test/unit/a_test.ts", {
    bad: `await new Promise((resolve) => setTimeout(resolve, 500));`,
    good: `await eventually(() => done);\nclock.after(500, callback);`,
  });
  catches(checkMachinePaths, "a folder of one machine", "docs/hacking.md", {
    bad: ["", "home", "ann", "baton"].join("/"),
    good: `import("/$bunfs/root/baton") and /var/tmp/baton-0/`,
  });
  const limits = "# Limits\n## Platforms, `x` & more\n```\n# no heading\n```\n## Platforms\n## Platforms\n";
  const hasLimitsOnly: Rule = (file) => checkLinks(file, (path) => path === "docs/limits.md" ? limits : null);
  catches(hasLimitsOnly, "a link that leads nowhere", "docs/adr/0001-a.md", {
    bad: "[a](../limits.md)\n[b](../limit.md)",
    good: "# Here\n[a](../limits.md#platforms) [b](https://example.org/x) [c](#here)",
    line: 2,
  });
  catches(hasLimitsOnly, "a link to a heading that is not there", "docs/adr/0001-a.md", {
    bad: "[a](../limits.md#no-heading)",
    good: "[a](../limits.md#platforms-x--more) [b](../limits.md#platforms-1)",
  });
  catches(hasLimitsOnly, "a link to a heading of the same page that is not there", "docs/adr/0001-a.md", {
    bad: "# Here\n[a](#there)",
    line: 2,
    good: "# Here\n[a](#here)",
  });
  test("tasks that differ", () => {
    expect(checkTasks(`{"scripts":{"a":"b"}}`, `{"tasks":{"a":"b"}}`)).toEqual([]);
    expect(checkTasks(`{"scripts":{"a":"b"}}`, `{"tasks":{"a":"c"}}`).length).toBe(1);
    expect(checkTasks(`{"scripts":{"prepublishOnly":"c","a":"b"}}`, `{"tasks":{"a":"b"}}`)).toEqual([]);
  });
});

describe("language", () => {
  catches(checkComments, "a comment that starts with a preposition", "src/support/a.ts", {
    bad: "/** Of the request that is read. */",
    good: "/** The request that is read. */",
  });
  catches(checkComments, "a comment of many lines", "src/support/a.ts", {
    bad: "/**\n * What is left of it.\n * The rest.\n */",
    good: "/**\n * The rest.\n * What is left of it.\n */",
    line: 2,
  });
  catches(checkComments, "a comment behind code", "src/support/a.ts", {
    bad: "  // By pid.\n  const a = 1;",
    good: "  // The key is the pid,\n  // by which the kernel knows it.",
  });
  catches(checkWords, "a word that has a standard term, in a message", "src/support/a.ts", {
    bad: `throw new Error("nobody holds it");`,
    good: `throw new Error("no process holds it");`,
  });
  catches(checkWords, "a word that has a standard term, on a page", "docs/a.md", {
    bad: "The server answers at once.",
    good: "The server answers immediately.",
  });
  catches(checkWords, "a word that has a standard term, inside a name", "src/support/a.ts", {
    bad: "const deedOfLock = 1;",
    good: "const indeedLock = 1;",
  });

  test("a type name is declared once in the product", () => {
    const a = { path: "src/a.ts", text: "export interface Options {}" };
    const other = { path: "test/a.ts", text: "interface Options {}" };
    expect(checkTypeNames([a, other])).toEqual([]);
    const again = { path: "commands/a.ts", text: "\ntype Options = string;" };
    expect(checkTypeNames([a, again])).toEqual([{
      path: "commands/a.ts",
      line: 2,
      message: "the type name Options is declared in src/a.ts, too",
    }]);
  });
});

test("what is loaded at the start is counted: no types, nothing that import() loads, each file once", () => {
  const files = [
    {
      path: "commands/a.ts",
      text: 'import { b } from "../src/b.ts";\nimport type { D } from "../src/d.ts";\nimport("./e.ts");\n',
    },
    {
      path: "src/b.ts",
      text: 'import {\n  c,\n  type C,\n} from "./c.ts";\nimport { type D } from "./d.ts";\nconst text = 1;\n',
    },
    { path: "src/c.ts", text: 'import "./b.ts";\nexport { x } from "./f.ts";\n/** Not code. */\n' },
    ...["src/d.ts", "src/f.ts", "commands/e.ts"].map((path) => ({ path, text: "const x = 1;\n" })),
  ];
  const found = (modules: number) => checkStart(files, { "commands/a.ts": { modules, kilobytes: 1 } });
  expect(found(4)).toEqual([]);
  expect(found(3)).toEqual([{
    path: "commands/a.ts",
    line: 1,
    message: expect.stringContaining("it loads 4 modules"),
  }]);
});
