/** The commands and files that docs/development/proof.md names exist, so that a reader can run them. */
import { describe, expect, test } from "bun:test";
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import {
  type ProofFigures,
  proofTables,
  replaceProofTables,
  sumSeedsFigures,
} from "../../../../scripts/docs/proof_figures.ts";

const root = join(import.meta.dirname, "../../../..");
const page = readFileSync(join(root, "docs/development/proof.md"), "utf8");
const quoted = [...page.matchAll(/`([^`\n]+)`/g)].map(([, text = ""]) => text);
const commands = quoted.filter((text) => /^(sh|bun) /.test(text));
const isThere = (path: string) => existsSync(join(root, path));
const read = (path: string) => readFileSync(join(root, path), "utf8");

/** The folder of a campaign. */
function faultFolder(name: string): string {
  const folders = ["coordination", "pubsub", "retry"].map((product) => `test/${product}/fault/${name}`);
  return folders.find(isThere) ?? folders.join(" or ");
}

/** The program of a command, and the text that knows its options. */
function sourceOf([program = "", script = "", name = ""]: readonly string[]): string {
  if (program === "bun") return read(script);
  if (script !== "scripts/fault") return read(script);
  const folder = faultFolder(name);
  return ["main.ts", "dose.ts"].filter((file) => isThere(`${folder}/${file}`)).map((file) => read(`${folder}/${file}`))
    .join("\n") +
    read("test/support/run_rounds.ts") + read("test/support/dose_arguments.ts") +
    read("test/coordination/fault/lock/full_dose.ts");
}

test("the page has commands", () => {
  expect(commands.length).toBeGreaterThan(20);
});

test.each([...new Set(commands)])("%s names what exists", (command) => {
  const words = command.split(" ");
  expect([words[1], isThere(words[1] ?? "")]).toEqual([words[1], true]);
  if (words[1] === "scripts/fault") {
    expect([words[2], isThere(`${faultFolder(words[2] ?? "")}/main.ts`)]).toEqual([words[2], true]);
  }
  const paths = words.slice(2).filter((word) => word.startsWith("test/"));
  expect(paths.filter((path) => !isThere(path))).toEqual([]);
  const source = sourceOf(words);
  const options = words.filter((word) => word.startsWith("--")).map((word) => word.slice(2));
  expect(options.filter((option) => !new RegExp(`\\b${option}\\b`).test(source))).toEqual([]);
});

test.each([...new Set(quoted.filter((text) => /^(test|docs|scripts)\/[\w./]+$/.test(text)))])("%s exists", (path) => {
  expect(isThere(path)).toBe(true);
});

/** Null without git, and without the whole history. */
function gitLine(...args: readonly string[]): string | null {
  const { status, stdout } = spawnSync("git", args, { cwd: root, encoding: "utf8" });
  return status === 0 ? stdout.trim() : null;
}

describe("the track record", () => {
  const rows = [...page.matchAll(/^\| (\d{4}-\d\d-\d\d) \| (.+) \| (.+) \| ([0-9a-f]{8}) \|$/gm)];
  const hasHistory = gitLine("rev-parse", "--is-shallow-repository") === "false";

  test("has at least 25 defects, in the order of their dates", () => {
    const dates = rows.map(([, date = ""]) => date);
    expect(dates.length).toBeGreaterThanOrEqual(25);
    expect(dates).toEqual(dates.toSorted());
  });

  test.skipIf(!hasHistory)("names commits of this history, with their dates", () => {
    const known = new Map(
      (gitLine("log", "--date=short", "--abbrev=8", "--format=%h %ad") ?? "").split("\n").map((line) => {
        const [commit = "", date = ""] = line.split(" ");
        return [commit, date];
      }),
    );
    const wrong = rows.filter(([, date, , , commit = ""]) => known.get(commit) !== date).map(([row]) => row);
    expect(wrong).toEqual([]);
  });
});

describe("the figures", () => {
  const figures = JSON.parse(read("docs/development/proof_figures.json")) as ProofFigures;
  const { attacks, mutants } = figures;

  test("are of simulations, campaigns and mutants, without a violation", () => {
    expect(new Set(attacks.map(({ layer }) => layer))).toEqual(new Set(["simulation", "faults", "mutants"]));
    expect(attacks.filter(({ violations }) => violations > 0)).toEqual([]);
    expect(mutants.length).toBeGreaterThan(10);
  });

  test("of long simulations are added up by world and commit, and replace those of the same commit", () => {
    const line = (world: string, commit: string, seeds: number) => ({
      world,
      commit,
      date: "2026-11-27",
      seeds,
      failed: seeds > 9 ? [{ seed: 1 }] : [],
      simulated_hours: 0.1,
      faults: { cut: 2, kill: 1 },
    });
    const sum = { date: "2026-11-27", failed: 1, simulatedHours: 0.2, faults: 6 };
    const known = sumSeedsFigures([line("lock", "00000001", 5), line("pool", "00000001", 7)], []);
    const all = sumSeedsFigures(
      [line("lock", "00000001", 10), line("lock", "00000001", 3), line("lock", "00000002", 4)],
      known,
    );
    expect(all.map(({ world, commit, seeds }) => `${world} ${commit} ${seeds}`)).toEqual([
      "pool 00000001 7",
      "lock 00000001 13",
      "lock 00000002 4",
    ]);
    expect(all[1]).toEqual({ world: "lock", commit: "00000001", seeds: 13, ...sum });
    expect(() => sumSeedsFigures([line("lock", "00000001-dirty", 1)], [])).toThrow(
      'not of a commit, but of "00000001-dirty"',
    );
  });

  test("stand in the page between their marks", () => {
    expect(replaceProofTables(page, proofTables(figures))).toBe(page);
    expect(() => replaceProofTables("<!-- other: begin -->\n<!-- other: end -->", {})).toThrow(
      'no table for the mark "other"',
    );
    expect(() => replaceProofTables("", { figures: [] })).toThrow("no mark for: figures");
  });
});
