import { describe, expect, test } from "bun:test";
import { spawnSync } from "node:child_process";
import {
  checkBreaks,
  checkCycles,
  checkDependencies,
  checkFileNames,
  checkLayers,
  checkPlaces,
} from "../../../../scripts/tidy/layers.ts";
import {
  checkFileShape,
  checkLinks,
  checkMachinePaths,
  checkTasks,
  checkWaits,
} from "../../../../scripts/tidy/shape.ts";
import { checkStartLimits } from "../../../../scripts/tidy/start.ts";
import { checkColumns, checkFunctionNames, checkLineSavers } from "../../../../scripts/tidy/style.ts";
import { checkUnitFolders } from "../../../../scripts/tidy/test_places.ts";
import {
  checkAudience,
  checkExactlyOnce,
  checkPhrases,
  checkWordBudgets,
  countWords,
} from "../../../../scripts/tidy/pages.ts";
import { checkComments, checkTypeNames, checkWords } from "../../../../scripts/tidy/language.ts";
import type { Finding, SourceFile } from "../../../../scripts/tidy/source_file.ts";

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
  catches(checkLayers, "wire may not import a client", "src/base/wire/frame.ts", {
    bad: `import { a } from "../support/a.ts";\nimport type { b } from "../../protocols/zookeeper/b.ts";`,
    good: `import { a } from "../support/a.ts";\nimport { b } from "../errors.ts";`,
    line: 2,
  });
  catches(
    checkLayers,
    "a client may not import what stands on it, not even its types",
    "src/protocols/zookeeper/zookeeper_client.ts",
    {
      bad: `import type { Lease } from "../../coordination/nodes/lease.ts";`,
      good: `import { record } from "./jute/node_records.ts";`,
    },
  );
  catches(checkLayers, "coordination knows nothing of bytes", "src/coordination/lock/lock.ts", {
    bad: `import { ByteReader } from "../../base/wire/bytes.ts";`,
    good: `import { permission } from "../../protocols/zookeeper/jute/zookeeper_operations.ts";`,
  });
  catches(checkLayers, "a dynamic import counts", "src/coordination/keeper/lifecycle/start_keeper.ts", {
    bad: `const lock = await import("../../lock/lock.ts");`,
    good: `const tree = await import("./tree.ts");`,
  });
  catches(
    checkLayers,
    "the client and the keeper do not know each other",
    "src/coordination/keeper/lifecycle/start_keeper.ts",
    {
      bad: `import "../../../protocols/zookeeper/zookeeper_client.ts";`,
      good: `import "../../../base/sockets/listen.ts";`,
    },
  );
  catches(checkLayers, "a product uses the front of another one", "src/pubsub/ownership/a.ts", {
    bad: `import "../../coordination/lock/acquire_lock.ts";`,
    good: `import "../../coordination/nodes/node_paths.ts";`,
  });
  catches(checkLayers, "publish/subscribe does not know retry", "src/pubsub/client/a.ts", {
    bad: `import "../../retry/queue/retry_store.ts";`,
    good: `import "../wire/message.ts";`,
  });
  catches(checkLayers, "a command imports its product alone", "commands/retry/a.ts", {
    bad: `import "../../src/pubsub/server/topic_server.ts";`,
    good: `import "../../src/pubsub/client/publisher.ts";`,
  });
  catches(checkLayers, "the product imports nothing from the tests", "src/base/support/clock.ts", {
    bad: `import { eventually } from "../../../test/support/eventually.ts";`,
    good: `import { BatonError } from "../errors.ts";`,
  });
  catches(checkLayers, "sockets are opened in src/base/sockets alone", "src/protocols/zookeeper/session.ts", {
    bad: `import { connect } from "node:net";`,
    good: `import { randomBytes } from "node:crypto";`,
  });
  catches(checkLayers, "a package that is not a dependency", "src/base/support/a.ts", {
    bad: `import chalk from "chalk";`,
    good: `import { styleText } from "node:util";`,
  });
  catches(checkLayers, "zod stays where values come in", "src/coordination/keeper/state/a.ts", {
    bad: `import { z } from "zod";`,
    good: ``,
  });
  catches(checkLayers, "a folder does not open the folders below it", "src/base/process/spawn/a.ts", {
    bad: `import { b } from "../supervise/b.ts";`,
    good: `import { b } from "../proc/b.ts";`,
  });

  test("the breaks that are known are counted, and may only become fewer", () => {
    const bad = {
      path: "src/pubsub/client/a.ts",
      text: `import "../../retry/queue/b.ts";\nimport "../../retry/queue/c.ts";`,
    };
    const pair = "src/pubsub/client -> src/retry/queue";
    expect(checkBreaks([bad], { [pair]: 2 })).toEqual([]);
    expect(checkBreaks([bad], { [pair]: 1 }).length).toBe(2);
    expect(checkBreaks([bad], { [pair]: 3 }).map(({ message }) => message)).toEqual([
      `"${pair}" has 2 breaks: write 2 in place of 3`,
    ]);
    expect(checkBreaks([], { [pair]: 1 }).map(({ message }) => message)).toEqual([
      `"${pair}" has no break: delete its line`,
    ]);
  });

  test("imports that go in a circle are found, those of types too", () => {
    const source = (name: string, imported: string, type = "") => ({
      path: `src/base/support/${name}.ts`,
      text: `import ${type}{ a } from "./${imported}.ts";`,
    });
    const line = [source("a", "b"), source("b", "c", "type "), source("d", "a")];
    expect(checkCycles(line)).toEqual([]);
    const findings = checkCycles([...line, source("c", "a", "type ")]);
    expect(findings.map(({ path, message }) => [path, message])).toEqual([
      [
        "src/base/support/a.ts",
        "imports go in a circle: src/base/support/a.ts, src/base/support/b.ts, src/base/support/c.ts",
      ],
    ]);
  });

  test("a file name is used once in the product", () => {
    const files = ["src/base/support/a.ts", "src/base/wire/b.ts", "test/base/unit/a.ts"].map((path) => ({
      path,
      text: "",
    }));
    expect(checkFileNames(files)).toEqual([]);
    expect(checkFileNames([...files, { path: "commands/a.ts", text: "" }]).length).toBe(1);
  });

  test("a new folder has to be given a layer", () => {
    expect(found(checkLayers, "src/gossip/a.ts", "").length).toBe(1);
  });
});

test("a dependency that nothing imports any more", () => {
  const files = [
    { path: "src/base/config/a.ts", text: `import * as z from "zod/mini";` },
    { path: "src/base/wire/a.ts", text: `import { salsa20 } from "@noble/ciphers/salsa.js";` },
    { path: "test/a.ts", text: `import "left";` },
  ];
  const dependencies = `{"dependencies":{"zod":"4.0.0","left":"1.0.0","@noble/ciphers":"2.0.0"}}`;
  const findings = checkDependencies(dependencies, files);
  expect(findings.map(({ message }) => message)).toEqual([`nothing imports "left"`]);
});

describe("places", () => {
  catches(checkPlaces, "Bun's own functions", "src/coordination/keeper/state/a.ts", {
    bad: `/** Bun.file would do. */\nconst text = await Bun.file("a").text();`,
    good: `// Bun.file would do\nconst runtime = "Bun.file"; const has = "Deno" in globalThis;`,
    line: 2,
  });
  catches(checkPlaces, "Deno's own functions", "commands/coordination/lock/lock.ts", { bad: `Deno.exit();`, good: `` });
  catches(checkPlaces, "a second writer of the exit code", "commands/coordination/lock/lock.ts", {
    bad: `process.exitCode = exitCodes.busy;`,
    good: `if (process.exitCode === undefined) return;`,
  });
  catches(checkPlaces, "binary results of PostgreSQL", "src/base/postgres/a.ts", {
    bad: `new pg.Client({ binary: true });`,
    good: `// binary results are text\nnew pg.Client({});`,
  });
  catches(checkLayers, "a second user of pg", "src/retry/queue/a.ts", {
    bad: `import pg from "pg";`,
    good: `import { join } from "node:path";`,
  });
  catches(checkPlaces, "process.exit", "src/base/process/spawn/run.ts", { bad: `process.exit(1);`, good: `return;` });
  catches(checkPlaces, "a request that is not sent by the client", "src/retry/a.ts", {
    bad: `const response = await fetch(url);`,
    good: `const got = await subscriber.fetch(); async fetch() {}`,
  });
  catches(checkPlaces, "a write to stdout that may block", "commands/operator/who.ts", {
    bad: `writeSync(1, bytes);`,
    good: `io.out(bytes); writeSync(fd, bytes, 1, 2);`,
  });
  catches(checkPlaces, "a message past stderr's owner", "src/protocols/zookeeper/a.ts", {
    bad: `process.stderr.write(text);`,
    good: `const { columns } = process.stderr;`,
  });
  catches(checkPlaces, "a number where a name belongs", "commands/coordination/lock/lock.ts", {
    bad: `return 75;`,
    good: `return exitCodes.busy;`,
  });
  catches(checkPlaces, "a schema at every start", "commands/operator/who.ts", {
    bad: `import { whoShape } from "../json_shapes/lock_shapes.ts";`,
    good: `import type { WhoJson } from "../json_shapes/lock_shapes.ts";`,
  });
  test("are free in the folders made for them", () => {
    expect(found(checkPlaces, "src/base/sockets/bun_dial.ts", `Bun.connect({});`)).toEqual([]);
    expect(found(checkPlaces, "commands/main.ts", `process.exitCode = code;`)).toEqual([]);
    expect(found(checkLayers, "src/base/sockets/dial.ts", `import { connect } from "node:net";`)).toEqual([]);
  });
});

describe("names and sizes", () => {
  const head = "/** Owns it. */\n";
  const lines = (count: number) => head + "const a = 1;\n".repeat(count - 1);
  test("drawers, and names in another case", () => {
    for (const name of ["utils", "helpers", "index", "leaderElection"]) {
      expect(found(checkFileShape, `src/base/support/${name}.ts`, head).length).toBe(1);
    }
  });
  catches(checkFileShape, "a file that is too long", "src/coordination/keeper/state/tree.ts", {
    bad: lines(801),
    good: lines(800),
  });
  catches(checkFileShape, "a function that is too long", "src/coordination/keeper/state/tree.ts", {
    bad: `${head}export async function a() {\n${"  b();\n".repeat(69)}}\n`,
    good: `${head}export async function a() {\n${"  b();\n".repeat(68)}}\n`,
    line: 2,
  });
  catches(
    checkFileShape,
    "a function whose signature has several lines, and that is too long",
    "src/base/support/tree.ts",
    {
      bad: `${head}export function long(\n  { a }: A<{ b: B }>,\n): Promise<{\n  c: C;\n}> {\n${lines(64)}\n}\n`,
      good: `${head}export function long(\n  { a }: A<{ b: B }>,\n): Promise<{\n  c: C;\n}> {\n${lines(63)}\n}\n`,
      line: 2,
    },
  );
  catches(checkFileShape, "a method that is too long", "src/coordination/keeper/state/tree.ts", {
    bad: `${head}class A {\n  async #grow(a: number): void {\n${"    b();\n".repeat(69)}  }\n}\n`,
    good: `${head}class A {\n  async #grow(a: number): void {\n${"    b();\n".repeat(68)}  }\n}\n`,
    line: 3,
  });
  catches(checkFileShape, "a module that does not say what it owns", "src/coordination/keeper/state/tree.ts", {
    bad: `const a = 1;`,
    good: head,
  });
});

describe("style", () => {
  const spaces = (count: number) => " ".repeat(count);
  catches(checkColumns, "a line of code that is too long", "src/base/support/a.ts", {
    bad: `const a = 1;\nconst b = "${spaces(108)}";`,
    good: `const b = "${spaces(107)}";\nconst c = "${"é".repeat(107)}";`,
    line: 2,
  });
  catches(checkColumns, "a string of the product that is too long", "commands/operator/a.ts", {
    bad: `  "${spaces(118)}",`,
    good: `  "${spaces(115)}",`,
  });
  catches(checkColumns, "a comment of a test that is too long", "test/base/unit/a_test.ts", {
    bad: `// ${"a".repeat(118)}`,
    good: `// ${"a".repeat(117)}`,
  });
  catches(checkColumns, "code of a test that is too long", "test/base/unit/a_test.ts", {
    bad: `const b = "${spaces(108)}";`,
    good: [
      `  "${spaces(120)}",`,
      `  \`\${a}${spaces(120)}\`);`,
      `  /[/"]${spaces(120)}/g,`,
      `const page = \`<p>`,
      spaces(120) + `<q>\${a + b}</q>`,
      `</p>\`;`,
    ].join("\n"),
  });

  catches(checkFunctionNames, "a function that does not say what it returns", "src/base/support/a.ts", {
    bad: `export async function nameOf(a: string): Promise<string> {}`,
    good: `export function readName(a: string) {}\nfunction nameOf(a: string) {}\nexport function checkOffset() {}`,
  });
  catches(checkFunctionNames, "a constant that is such a function", "commands/operator/a.ts", {
    bad: `export const rowOf = (name: string) => rows.get(name);`,
    good: `export const proof = 1;`,
  });

  catches(checkLineSavers, "fields that are spread into their own object", "src/base/support/a.ts", {
    bad: `const a = {\n  ...{ b, c },\n};`,
    good: `const a = { ...b, ...(c ? { d } : {}) };\n// ...{ b }\nconst text = "...{ b }";`,
    line: 2,
  });
  catches(checkLineSavers, "elements that are spread into their own list", "commands/operator/a.ts", {
    bad: `const a = [\n  ...["b", "c"],\n];`,
    good: `const a = [...["b", "c"].map(upper), ...(d ? [d] : []), ...[[e], [f]].flat()];`,
    line: 2,
  });
  const sorts = ["let [a, b] = [1, 2].sort();", "let [a, b] = [...c];", "let c: [number, number] = [1, 2];"].join("\n");
  catches(checkLineSavers, "values that are assigned as a tuple", "scripts/a.ts", {
    bad: `let [count, sum] = [0, 0];`,
    good: `[a, b] = [b, a];\n[a[i], a[j]] = [a[j], a[i]];\n[a, b] = [b, a % b];\n${sorts}`,
  });
  catches(checkLineSavers, "values that are assigned as a tuple, to what is there", "src/base/support/a.ts", {
    bad: `close();\n[this.#held, this.#lost] = [null, 0];`,
    good: `#jobs: { a: b }[] = [];\nleaders[0] = [1, 2];`,
    line: 2,
  });
  test("what reads like a construct in a string, template or regular expression is none", () => {
    const texts = ["`${`...{ a }`} ...{ b }`", `/...[{"/`, `'...{ "a" }'`, `"\\"...{ a }"`, "a / b; /* ...{ c } */"];
    for (const text of texts) expect(found(checkLineSavers, "src/a.ts", `const a = ${text};`)).toEqual([]);
    expect(found(checkLineSavers, "src/a.ts", "const a = `${call({ ...{ b } })}`;").length).toBe(1);
  });
});

test("a unit test stands in the folder of what it tests", () => {
  const paths = [
    "src/pubsub/store/a.ts",
    "src/protocols/zeromq/a.ts",
    "commands/pubsub/a.ts",
    "commands/a.ts",
    "scripts/a.ts",
    "test/pubsub/unit/store/a_test.ts",
    "test/pubsub/unit/zeromq/a_test.ts",
    "test/pubsub/unit/commands/a_test.ts",
    "test/program/unit/commands/a_test.ts",
    "test/program/unit/scripts/a_test.ts",
    "test/pubsub/unit/rig/rig.ts",
    "test/pubsub/cli/a_test.ts",
  ];
  const check = (...more: string[]) => checkUnitFolders([...paths, ...more].map((path) => ({ path, text: "" })));
  expect(check()).toEqual([]);
  for (const path of ["test/pubsub/unit/b_test.ts", "test/pubsub/unit/store/sqlite/b_test.ts"]) {
    expect(check(path).map((finding) => finding.path)).toEqual([path]);
  }
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

describe("pages", () => {
  const words = (count: number) => "word ".repeat(count);
  test("a guide that is longer than its budget, and pages that are too long together", () => {
    const page = (path: string, count: number) => ({ path, text: words(count) });
    expect(checkWordBudgets([page("docs/guides/a.md", 1_500), page("README.md", 900)])).toEqual([]);
    expect(checkWordBudgets([page("docs/guides/a.md", 1_501)]).map(({ path }) => path)).toEqual(["docs/guides/a.md"]);
    const many = Array.from({ length: 31 }, (_, index) => page(`docs/guides/${index}.md`, 1_500));
    expect(checkWordBudgets(many).map(({ path }) => path)).toEqual(["docs"]);
    expect(checkWordBudgets([page("docs/adr/0001-a.md", 50_000)])).toEqual([]);
  });
  test("words are counted as by wc -w, without comments of HTML", () => {
    const page = "| `a` | – | 3 |\n<!-- and this -->\n\nb-c ### d\n";
    expect([countWords(page), countWords("")]).toEqual([10, 0]);
    const input = page.replace(/<!--.*-->/, "");
    expect(spawnSync("wc", ["-w"], { input, encoding: "utf8" }).stdout.trim()).toBe("10");
  });
  catches(checkPhrases, "a phrase of translated English", "docs/guides/a.md", {
    bad: "The file is left out.",
    good: "baton skips the file.",
  });
  catches(checkExactlyOnce, "a claim without its limit", "docs/guides/a.md", {
    bad: "Each message is delivered exactly once.",
    good: "Each message is delivered exactly once\n([the limit](b.md)).",
  });
  catches(checkAudience, "a guide that links to a page for contributors", "docs/guides/a.md", {
    bad: "[why](../adr/0001-a.md)",
    good: "[limits](../limits.md)",
  });
});

describe("language", () => {
  catches(checkComments, "a comment that starts with a preposition", "src/base/support/a.ts", {
    bad: "/** Of the request that is read. */",
    good: "/** The request that is read. */",
  });
  catches(checkComments, "a comment of many lines", "src/base/support/a.ts", {
    bad: "/**\n * What is left of it.\n * The rest.\n */",
    good: "/**\n * The rest.\n * What is left of it.\n */",
    line: 2,
  });
  catches(checkComments, "a comment behind code", "src/base/support/a.ts", {
    bad: "  // By pid.\n  const a = 1;",
    good: "  // The key is the pid,\n  // by which the kernel knows it.",
  });
  catches(checkWords, "a word that has a standard term, in a message", "src/base/support/a.ts", {
    bad: `throw new Error("nobody holds it");`,
    good: `throw new Error("no process holds it");`,
  });
  catches(checkWords, "a word that has a standard term, on a page", "docs/a.md", {
    bad: "The server answers at once.",
    good: "The server answers immediately.",
  });
  catches(checkWords, "a word that has a standard term, inside a name", "src/base/support/a.ts", {
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
  const found = (modules: number) => checkStartLimits(files, { "commands/a.ts": { modules, kilobytes: 1 } });
  expect(found(4)).toEqual([]);
  expect(found(3)).toEqual([{
    path: "commands/a.ts",
    line: 1,
    message: expect.stringContaining("it loads 4 modules"),
  }]);
  const crypto = { path: "src/c.ts", text: 'import type { A } from "node:tls";\nimport { b } from "node:crypto";\n' };
  const withSlow = files.map((file) => file.path === crypto.path ? crypto : file);
  expect(checkStartLimits(withSlow, { "commands/a.ts": { modules: 4, kilobytes: 1 } })).toEqual([{
    path: "src/c.ts",
    line: 1,
    message: "commands/a.ts loads it at its start, and it loads node:crypto, which is slow",
  }]);
});
