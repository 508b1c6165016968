/** What a release publishes, with programs in the place of npm and gh that only write down how they were called. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import process from "node:process";
import { projectIn } from "../../../support/release_project.ts";
import {
  checkPublishable,
  formatCommand,
  listPublications,
  publishRelease,
} from "../../../../scripts/packages/publish.ts";

let folder = "";
const path = process.env["PATH"];
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "baton-publish-"));
  mkdirSync(join(folder, "bin"));
  mkdirSync(join(folder, "out/npm"), { recursive: true });
  program("gh", "exit 0");
  process.env["PATH"] = [join(folder, "bin"), path].join(delimiter);
});
afterEach(() => {
  process.env["PATH"] = path;
  rmSync(folder, { recursive: true });
});

function program(name: string, script: string): void {
  const text = `#!/bin/sh\necho "${name} $*" >>"${folder}/log"\n${script}\n`;
  writeFileSync(join(folder, "bin", name), text, { mode: 0o755 });
}
const called = () =>
  existsSync(join(folder, "log")) ? readFileSync(join(folder, "log"), "utf8").trim().split("\n") : [];

describe("publish", () => {
  const run = async () => await publishRelease(listPublications(projectIn(folder), join(folder, "out")), () => {});

  test("the platforms come first, then the package that names them, then the repository's release", async () => {
    program("npm", "exit 0");
    writeFileSync(join(folder, "out/SHA256SUMS"), "");
    await run();
    const published = called().filter((line) => !line.startsWith("npm view")).map((line) => line.split("/").at(-1));
    expect(published).toEqual([
      ...["linux-x64", "linux-arm64", "linux-x64-musl", "linux-arm64-musl", "darwin-x64", "darwin-arm64"]
        .map((name) => `scope-baton-${name}-1.2.3.tgz`),
      "scope-baton-1.2.3.tgz",
      "SHA256SUMS",
    ]);
    expect(called().at(-1)).toStartWith("gh release create v1.2.3 --verify-tag ");
  });

  test("the printed commands can be typed into a shell", () => {
    program("npm", "exit 0");
    writeFileSync(join(folder, "out/SHA256SUMS"), "");
    const steps = listPublications(projectIn(folder), join(folder, "out"));
    for (const name of ["npm", "gh"]) {
      writeFileSync(join(folder, "bin", name), '#!/bin/sh\nprintf "%s|" "$0" "$@"', { mode: 0o755 });
    }
    for (const { command: [name = "", ...words] } of steps) {
      const { stdout } = spawnSync("sh", ["-c", formatCommand([name, ...words])], {
        encoding: "utf8",
        env: process.env,
      });
      expect(stdout.split("|").slice(1, -1)).toEqual(words);
    }
    expect(steps.map(({ command }) => command).flat()).toContain("baton v1.2.3");
  });

  test("a failure ends it; the next call leaves out what is published already", async () => {
    program("npm", `case "$*" in *publish*linux-x64-musl*) echo "no network" >&2; exit 1 ;; esac`);
    await expect(run()).rejects.toThrow("no network");
    expect(called().some((line) => line.startsWith("gh"))).toBe(false);
    rmSync(join(folder, "log"));
    program("npm", `case "$*" in view*-linux-x64@* | view*-linux-arm64@*) echo 1.2.3 ;; esac`);
    await run();
    const published = called().filter((line) => line.startsWith("npm publish"));
    expect(published).toHaveLength(5);
    expect(published[0]).toEndWith("scope-baton-linux-x64-musl-1.2.3.tgz");
  });
});

describe("a release that cannot be published", () => {
  const git = (...words: string[]) =>
    spawnSync("git", ["-c", "user.name=a", "-c", "user.email=a@b", ...words], { cwd: folder });
  beforeEach(() => {
    program("npm", "exit 1");
    writeFileSync(join(folder, ".gitignore"), "bin\nout\nlog\n");
    git("init", "-q");
    git("add", ".");
    git("commit", "-q", "-m", "first");
  });

  test("changes that are not committed", async () => {
    writeFileSync(join(folder, "new"), "");
    await expect(checkPublishable(projectIn(folder))).rejects.toThrow("there are changes that are not committed");
  });

  test("a commit without the version's tag", async () => {
    git("tag", "v1.2.2");
    await expect(checkPublishable(projectIn(folder))).rejects.toThrow("this commit does not have the tag v1.2.3");
  });

  test("no login at npm", async () => {
    git("tag", "v1.2.3");
    await expect(checkPublishable(projectIn(folder))).rejects.toThrow("npm has no login");
    program("npm", "echo user");
    await checkPublishable(projectIn(folder));
  });
});
