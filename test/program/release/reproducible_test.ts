/** The same source and the same SOURCE_DATE_EPOCH give the same bytes. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { createHash } from "node:crypto";
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buildArchive } from "../../../scripts/packages/archives.ts";
import { type SharedContents, sharedContents } from "../../../scripts/packages/contents.ts";
import { compileBinary } from "../../../scripts/packages/compile_binary.ts";
import { linuxPackageFile, linuxPackages } from "../../../scripts/packages/linux_packages.ts";
import { npmMainPackage, npmPlatformPackage } from "../../../scripts/packages/npm_packages.ts";
import { type ReleasePlatform, releasePlatforms } from "../../../scripts/packages/platforms.ts";
import { readReleaseProject, type ReleaseProject } from "../../../scripts/packages/project.ts";
import { describeWithPeer } from "../../support/peers.ts";

setDefaultTimeout(300_000);

const root = join(import.meta.dirname, "../../..");
const project: ReleaseProject = { ...readReleaseProject(root), epoch: 1_700_000_000 };
const platform = releasePlatforms.find(({ name }) => name === "linux-x64") as ReleasePlatform;
/** A small file in its place: what packs it does not look into it. */
const binary = Buffer.from("#!/bin/sh\necho baton\n");

let folder = "";
const scratch = (name: string) => {
  const path = join(folder, name);
  mkdirSync(path);
  return path;
};
beforeAll(() => folder = mkdtempSync(join(tmpdir(), "baton-reproducible-")));
afterAll(() => rmSync(folder, { recursive: true }));

const sum = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest("hex");

/** The checksums of all that is packed, made in a folder of its own. */
async function sums(name: string): Promise<Record<string, string>> {
  const shared: SharedContents = await sharedContents(project, scratch(name));
  const parts = { platform, binary, shared };
  return {
    archive: sum(await buildArchive(project, parts)),
    platformPackage: sum(await npmPlatformPackage(project, parts)),
    mainPackage: sum(await npmMainPackage(project, shared, join(folder, name))),
  };
}

test("archives and npm packages", async () => {
  expect(await sums("second")).toEqual(await sums("first"));
});

describeWithPeer("go", "nfpm", () => {
  test("deb and rpm", async () => {
    const shared = await sharedContents(project, scratch("shared"));
    const [first, second] = await Promise.all(["a", "b"].map(async (name) => {
      const outFolder = scratch(`${name}_out`);
      await linuxPackages(project, { platform, binary, shared, scratch: scratch(name), outFolder });
      return (["deb", "rpm"] as const).map((format) =>
        sum(readFileSync(join(outFolder, linuxPackageFile(project, platform, format))))
      );
    }));
    expect(second).toEqual(first);
  });
});

test("binaries", async () => {
  const [first = "", second] = ["one", "two"].map((name) => join(scratch(name), "baton"));
  for (const file of [first, second ?? ""]) await compileBinary(project, platform, file);
  expect(sum(readFileSync(second ?? ""))).toBe(sum(readFileSync(first)));
});
