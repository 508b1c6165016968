/**
 * What scripts/release makes for this machine, installed into empty places and used there by scripts/release itself.
 * The binaries of other platforms are compiled by a release only.
 */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { linuxPackageFile } from "../../../scripts/packages/linux_packages.ts";
import { npmPackageDescription } from "../../../scripts/packages/npm_registry.ts";
import { platformOfThisMachine, releasePlatforms } from "../../../scripts/packages/platforms.ts";
import { readReleaseProject } from "../../../scripts/packages/project.ts";
import { whyMuslCannotRun } from "../../../scripts/packages/verify_archive.ts";
import { describeWithPeer } from "../../support/peers.ts";
import { requireBinary } from "../../support/runtimes.ts";

setDefaultTimeout(300_000);

const root = join(import.meta.dirname, "../../..");
const project = readReleaseProject(root);
const { version, scope } = project;
const here = platformOfThisMachine();
const muslHere = releasePlatforms.find((platform) => platform !== here && whyMuslCannotRun(platform) === null);
const chosen = [here, muslHere].flatMap((platform) => platform?.name ?? []);

const packageOf = (format: "deb" | "rpm") => here === null ? "" : linuxPackageFile(project, here, format);

let folder = "";
let states = new Map<string, string>();
let printed = "";

const inFolder = (...command: string[]) =>
  spawnSync(command[0] ?? "", command.slice(1), { cwd: folder, encoding: "utf8" });

beforeAll(() => {
  requireBinary();
  folder = mkdtempSync(join(tmpdir(), "baton-release-test-"));
  const words = chosen.flatMap((name) => ["--platform", name]);
  const made = spawnSync("sh", ["scripts/release", "--dry-run", "--into", folder, ...words], {
    cwd: root,
    encoding: "utf8",
  });
  if (made.status !== 0) throw new Error(`scripts/release ended with ${made.status}:\n${made.stdout}${made.stderr}`);
  printed = made.stdout;
  const rows = readFileSync(join(folder, "MANIFEST"), "utf8").trim().split("\n");
  states = new Map(rows.map((row) => {
    const [, path = "", state = ""] = /^(\S+) +[\d.]+ [kM]B {2}(.*)$/.exec(row) ?? [];
    return [path, state];
  }));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test("the table has every file with its size; nothing is published, and the commands that would are printed", () => {
  expect([...states.keys()].filter((path) => states.get(path) === "")).toEqual([]);
  expect(printed).toContain("Nothing was published.");
  expect(printed).toContain(`  npm publish --access public ${folder}/npm/${scope.slice(1)}-baton-${version}.tgz\n`);
});

test("SHA256SUMS has the checksums of all files", () => {
  expect(inFolder("sha256sum", "--check", "--quiet", "--strict", "SHA256SUMS")).toMatchObject({
    status: 0,
    stdout: "",
  });
  const named = readFileSync(join(folder, "SHA256SUMS"), "utf8").match(/\S+$/gm) ?? [];
  expect(named).toEqual(expect.arrayContaining([...states.keys(), "MANIFEST"]));
});

test("the archive was unpacked and used; it has the binary, man pages, completions, units and licenses", () => {
  const name = `baton-${version}-${here?.name}`;
  expect(states.get(`${name}.tar.gz`)).toStartWith("unpacked: a lock was taken and given back");
  const files = inFolder("tar", "-tzf", `${name}.tar.gz`).stdout.split("\n").map((path) => path.slice(name.length + 1));
  expect(files).toEqual(expect.arrayContaining([
    ...["baton", "LICENSE", "THIRD_PARTY_NOTICES.md", "README.md", "CHANGELOG.md"],
    ...["man1/baton.1", "man1/baton-lock.1", "man5/baton.toml.5"],
    ...["completions/baton.bash", "completions/_baton", "completions/baton.fish"],
    ...(here?.os === "linux" ? ["systemd/baton-keeper.service"] : []),
  ]));
});

test("the npm packages were installed by npm and used by npx", () => {
  const prefix = `npm/${scope.slice(1)}-baton-`;
  for (const file of [`${prefix}${version}.tgz`, `${prefix}${here?.name}-${version}.tgz`]) {
    expect(states.get(file)).toStartWith("npm install, npx: a lock was taken and given back");
  }
  const description = npmPackageDescription(readFileSync(join(folder, `${prefix}${version}.tgz`)));
  expect(description).toMatchObject({ name: `${scope}/baton`, version, bin: { baton: "bin/baton.js" } });
  expect(Object.keys((description as unknown as { optionalDependencies: object }).optionalDependencies)).toEqual(
    releasePlatforms.map(({ name }) => `${scope}/baton-${name}`),
  );
});

describeWithPeer("go", "the deb", () => {
  test("was installed by dpkg into a root of its own, used and removed", () => {
    expect(states.get(packageOf("deb"))).toContain("took and released a lock");
  });

  test("names what it needs, and enables no unit", () => {
    const { stdout } = inFolder("dpkg-deb", "--info", packageOf("deb"));
    expect(stdout).toContain(" Depends: libc6 (>= 2.17)\n");
    const files = inFolder("dpkg-deb", "--contents", packageOf("deb")).stdout;
    expect(files).toContain("./usr/lib/systemd/system/baton-keeper.service\n");
    expect(files).not.toContain(".wants/");
  });
});

describeWithPeer("rpm", "the rpm", () => {
  test("was installed by rpm into a root of its own, used and removed", () => {
    expect(states.get(packageOf("rpm"))).toStartWith("installed by rpm into a root of its own");
  });
});

if (muslHere !== undefined) {
  test("the musl binary takes a lock", () => {
    expect(states.get(`baton-${version}-${muslHere.name}.tar.gz`)).toStartWith("unpacked: a lock was taken");
  });
}

describe("a fault of the caller", () => {
  const release = (...words: string[]) =>
    spawnSync("sh", ["scripts/release", ...words], { cwd: root, encoding: "utf8" });

  test("an unknown platform is refused, and the known ones are named", () => {
    const { status, stderr } = release("--dry-run", "--platform", "amiga");
    expect([status, stderr]).toEqual([
      64,
      expect.stringContaining(`"amiga" is not a platform of baton; the platforms are linux-x64,`),
    ]);
  });

  test("a release of some platforms is refused", () => {
    expect(release("--platform", "linux-x64")).toMatchObject({
      status: 64,
      stderr: expect.stringContaining("--dry-run"),
    });
  });
});
