/** `baton version`: which release, which commit, of what day, for which platform. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { versionJsonShape } from "../../../commands/json_shapes/machine_shapes.ts";
import { BatonSession } from "../../support/baton_session.ts";

setDefaultTimeout(60_000);

const project = join(import.meta.dir, "../../..");
const { version } = JSON.parse(readFileSync(join(project, "package.json"), "utf8")) as { version: string };

let session: BatonSession;
beforeAll(() => session = new BatonSession());
afterAll(() => session[Symbol.asyncDispose]());

test("version, --version and -V print one line with release and platform", async () => {
  const ended = await session.run('"$baton" version');
  expect(ended).toMatchObject({ code: 0, stderr: "" });
  expect(ended.stdout).toStartWith(`baton ${version} (`);
  expect(ended.stdout).toContain(`${process.platform}-${process.arch}`);
  expect(ended.stdout).toMatch(/^[^\n]+\n$/);
  for (const form of ["--version", "-V"]) {
    expect((await session.run(`"$baton" ${form}`)).stdout).toBe(ended.stdout);
  }
});

test("--json has the same facts", async () => {
  const facts = versionJsonShape.parse(JSON.parse((await session.run('"$baton" --version --json')).stdout));
  const { stdout } = await session.run('"$baton" version');
  expect(facts.release).toBe(version);
  if (facts.commit !== null) expect(stdout).toContain(`commit ${facts.commit.slice(0, 12)}`);
  if (facts.date !== null) expect(stdout).toContain(facts.date.slice(0, "2026-01-31".length));
  expect(stdout).toContain(facts.platform);
});

test("--verbose prints the paths in use, which BATON_STATE_DIR moves, and the keeper is started there", async () => {
  const state = session.path("state");
  const env = { BATON_STATE_DIR: state, BATON_KEEPER_DIR: "", BATON_PUBSUB_STATE_DIR: "" };
  const { stdout, code } = await session.run('"$baton" version --verbose', env);
  expect(code).toBe(0);
  expect(stdout).toMatch(/^baton .*\nprogram: \/.*\nconfiguration of this user: \/.*config\.toml \(not there\)\n/);
  for (const kind of ["keeper/", "topics", "pubsub", "retry"]) expect(stdout).toContain(`: ${state}/${kind}`);
  const facts = versionJsonShape.parse(JSON.parse((await session.run('"$baton" version -v --json', env)).stdout));
  expect(facts.paths?.every(({ path }) => stdout.includes(path))).toBe(true);
  try {
    expect((await session.run('"$baton" lock a -- true', env)).code).toBe(0);
    const { stdout: after } = await session.run('"$baton" version --verbose', env);
    expect(after).toMatch(/keeper, its socket: \S+\n/);
  } finally {
    await session.run('pkill -f "$BATON_STATE_DIR"', env);
  }
});

test("BATON_STATE_DIR that is not absolute is refused", async () => {
  const env = { BATON_STATE_DIR: "state", BATON_KEEPER_DIR: "" };
  const ended = await session.run('"$baton" who a', env);
  expect([ended.code, ended.stderr]).toEqual([78, expect.stringContaining('BATON_STATE_DIR is "state"')]);
});

test("an argument is refused", async () => {
  expect(await session.run('"$baton" version 2')).toMatchObject({ code: 64, stdout: "" });
});

const buildFacts = `. "${project}/scripts/compile.sh"; build_facts; echo "$build_commit $build_date"`;

test("a build knows its commit and the commit's date, and that something was changed since", async () => {
  const git = "git -c user.name=x -c user.email=x@example.org -c commit.gpgsign=false";
  const made = await session.run(`
    mkdir repository && cd repository && git init -q . && mkdir src && echo 1 >src/a && git add . &&
    GIT_COMMITTER_DATE=2026-01-31T12:00:00Z ${git} commit -q -m first --date 2020-01-01T00:00:00Z && git rev-parse HEAD
    ${buildFacts}
    echo 2 >src/a
    ${buildFacts}
    SOURCE_DATE_EPOCH=0; ${buildFacts}`);
  const [commit = "", clean, dirty, reproducible] = made.stdout.trimEnd().split("\n");
  expect(commit).toMatch(/^[0-9a-f]{40}$/);
  expect(clean).toBe(`${commit} 2026-01-31T12:00:00Z`);
  expect(dirty).toBe(`${commit}-dirty 2026-01-31T12:00:00Z`);
  expect(reproducible).toBe(`${commit}-dirty 1970-01-01T00:00:00Z`);
});

test("a folder without a repository has neither, also inside another repository", async () => {
  const made = await session.run(`
    mkdir outer && cd outer && git init -q . && git -c user.name=x -c user.email=x@example.org commit -q --allow-empty -m x &&
    mkdir unpacked && cd unpacked && { ${buildFacts}; }`);
  expect(made.stdout).toBe(" \n");
});
