/** Which tests the words of `sh scripts/test` and a change ask for. */
import { describe, expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { changedFile } from "../../../../scripts/tests/changes.ts";
import {
  concernedModels,
  filesNamedByModel,
  isModelTest,
  modelPath,
  ownFilesOfModel,
} from "../../../../scripts/tests/models.ts";
import {
  concernedProducts,
  matchingTestFiles,
  planTestRun,
  testedProducts,
} from "../../../../scripts/tests/test_files.ts";
import { readTestWords } from "../../../../scripts/tests/words.ts";
import { listLoadedFiles } from "../../../../scripts/tidy/start.ts";

const root = join(import.meta.dir, "../../../..");
const files = [
  "test/base/unit/wire/bytes_test.ts",
  "test/coordination/fault/barrier_fault_test.ts",
  "test/coordination/fault/lock_fault_test.ts",
  "test/coordination/model/lock_model_test.ts",
  "test/retry/unit/queue/lease_test.ts",
  "test/world/sim_os_test.ts",
];

describe("words", () => {
  const read = (...words: string[]) => readTestWords(words, files, (path) => path === "elsewhere/a_test.ts");

  test("are products, parts of paths, and options of bun test with their values", () => {
    expect(read("retry", "./test/retry", "-t", "changed", "--bail=2", "--nightly", "changed", "unit/")).toEqual({
      named: ["retry"],
      isChanged: true,
      isNightly: true,
      paths: ["./test/retry", "unit/"],
      options: ["-t", "changed", "--bail=2"],
    });
    expect(read("elsewhere/a_test.ts").paths).toEqual(["elsewhere/a_test.ts"]);
    expect(read()).toEqual({ named: [], isChanged: false, isNightly: false, paths: [], options: [] });
  });

  test.each([
    ["retri", /"retri" is neither a product/],
    ["test/retries", /nor a part of the path of a test/],
    ["--nightli", /nor an option of bun test/],
    ["--bale=2", /nor an option of bun test/],
    ["-t", /-t needs a value/],
  ])("%s asks for nothing that there is", (word, message) => {
    expect(() => read("retry", word)).toThrow(message);
  });

  test("a path of another product than the one that is named fits no test", () => {
    expect(() => read("retry", "test/base")).toThrow("no test of retry has test/base in its path");
    expect(read("retry", "base", "test/base").paths).toEqual(["test/base"]);
  });
});

describe("a run", () => {
  const plan = (isNightly: boolean, ...again: string[]) =>
    planTestRun(files, { chosen: ["coordination"], isNightly, again, withRows: [] });

  test("leaves out what is for every night, and has faults alone", () => {
    const { together, alone, leftOut } = plan(false);
    expect({ together, alone }).toEqual({ together: [], alone: ["test/coordination/fault/lock_fault_test.ts"] });
    expect(leftOut).toEqual(new Map([["campaigns", 1], ["models", 1]]));
  });

  test("has what runs again in any case, and nothing twice", () => {
    expect(plan(false, "test/coordination/model/lock_model_test.ts").together).toEqual([
      "test/coordination/model/lock_model_test.ts",
    ]);
    expect(planTestRun(files, { chosen: [], isNightly: false, again: [files[3] ?? ""], withRows: [] }).together)
      .toEqual([
        files[3] ?? "",
      ]);
    expect(plan(true, files[3] ?? "").together).toEqual([files[3] ?? ""]);
  });

  test("of every night has only what the everyday one leaves out", () => {
    const { together, alone, leftOut } = plan(true);
    expect([...together, ...alone]).toEqual([files[3] ?? "", files[1] ?? ""]);
    expect(leftOut).toEqual(new Map([["everyday", 1]]));
  });

  test("of either tier has a file of which each runs its own rows, and says that rows are left out", () => {
    const rows = (isNightly: boolean) =>
      planTestRun(files, { chosen: ["base"], isNightly, again: [], withRows: [files[0] ?? ""] });
    expect(rows(false).together).toContain(files[0] ?? "");
    expect(rows(false).leftOut).toEqual(new Map([["some rows of", 1]]));
    expect(rows(true).together).toEqual([files[0] ?? ""]);
  });

  test("runs faults that wait two at a time, those that compute alone, and the tests of judges with all others", () => {
    const faults = ["test/retry/fault/retry_fault_test.ts", "test/pubsub/fault/pubsub_fault_test.ts"];
    const judge = "test/retry/fault/retry/judge_test.ts";
    const { waiting, alone, together } = planTestRun([...faults, judge], {
      chosen: testedProducts,
      isNightly: false,
      again: [],
      withRows: [],
    });
    expect({ waiting, alone, together }).toEqual({
      waiting: [faults[0] ?? ""],
      alone: [faults[1] ?? ""],
      together: [judge],
    });
  });

  test("of a product and parts of paths has the files that both name", () => {
    const matching = (...parts: string[]) => matchingTestFiles(files, { chosen: ["retry", "base"], parts });
    expect(matching()).toEqual([files[0] ?? "", files[4] ?? "", files[5] ?? ""]);
    expect(matching("unit/wire", "lease")).toEqual([files[0] ?? "", files[4] ?? ""]);
  });
});

describe("a change", () => {
  test.each([
    ["src/base/wire/bytes.ts", [...testedProducts]],
    ["src/coordination/lock/lock_state.ts", ["coordination", "operator"]],
    ["src/coordination/nodes/lease.ts", [...testedProducts]],
    ["src/pubsub/client/publisher.ts", ["pubsub", "retry", "operator"]],
    ["docs/limits.md", []],
    ["README.md", []],
    ["package.json", [...testedProducts]],
  ])("of %s concerns %p", (path, concerned) => {
    expect(concernedProducts([path])).toEqual(concerned as never);
  });

  test("is read with the path that a file had before", () => {
    expect(changedFile("M\tsrc/a.ts")).toEqual({ path: "src/a.ts", pathBefore: "src/a.ts" });
    expect(changedFile("A\tsrc/a.ts")).toEqual({ path: "src/a.ts", pathBefore: null });
    expect(changedFile("R087\tsrc/b.ts\tsrc/a.ts")).toEqual({ path: "src/a.ts", pathBefore: "src/b.ts" });
  });
});

describe("a model", () => {
  const texts: Record<string, string> = {
    "test/a/model/lock_model_test.ts": `import { a } from "./lock_model.ts";\nimport "../../support/b.ts";`,
    "test/a/model/lock_model.ts":
      `/**\n * A lock.\n *\n * Models: docs/lock.md, src/lock.ts,\n * src/queue.ts\n */\nimport "./lock_world.ts";`,
    "test/a/model/lock_world.ts": "/** Its states. */",
  };
  const read = (path: string) => texts[path] ?? null;
  const concerned = (...changed: string[]) => concernedModels(["test/a/model/lock_model_test.ts"], changed, read);

  test("runs again when a file that its header names has changed, or one of its own", () => {
    expect(filesNamedByModel(texts["test/a/model/lock_model.ts"] ?? "")).toEqual([
      "docs/lock.md",
      "src/lock.ts",
      "src/queue.ts",
    ]);
    for (const path of ["docs/lock.md", "src/queue.ts", "test/a/model/lock_world.ts"]) {
      expect(concerned("src/other.ts", path)).toEqual(["test/a/model/lock_model_test.ts"]);
    }
    expect(concerned("src/other.ts", "test/support/b.ts")).toEqual([]);
  });

  const models = readdirSync(join(root, "test"), { recursive: true, encoding: "utf8" }).map((path) => `test/${path}`)
    .filter(isModelTest);
  const readProject = (path: string) => existsSync(join(root, path)) ? readFileSync(join(root, path), "utf8") : null;

  test.each(models)("%s names files that exist, and those whose decisions it makes", (path) => {
    const named = filesNamedByModel(readProject(modelPath(path)) ?? "");
    expect(named.length).toBeGreaterThan(0);
    expect(named.filter((name) => readProject(name) === null)).toEqual([]);
    const loaded = ownFilesOfModel(path, readProject).flatMap((own) =>
      listLoadedFiles({ path: own, text: readProject(own) ?? "" })
    );
    const imported = loaded.filter((name) => name.startsWith("src/"));
    expect(imported.filter((name) => !named.includes(name))).toEqual([]);
  });
});
