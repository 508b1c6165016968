/**
 * The npm packages: @SCOPE/baton with the command `baton` and the library, and one package with the binary for each
 * platform, of which npm installs the one that fits (`os`, `cpu`, `libc`).
 */
import { existsSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { filesBelow, type SharedContents } from "./contents.ts";
import { type ReleasePlatform, releasePlatforms } from "./platforms.ts";
import type { ReleaseProject } from "./project.ts";
import { runToolOrThrow } from "./run_tool.ts";
import { type PackedFile, tarGzArchive } from "./tar_archive.ts";

export function npmMainPackageName({ scope }: ReleaseProject): string {
  return `${scope}/baton`;
}

export function npmPlatformPackageName(project: ReleaseProject, platform: ReleasePlatform): string {
  return `${npmMainPackageName(project)}-${platform.name}`;
}

/** Returns the file name that `npm pack` would give the package. */
export function npmPackageFile(project: ReleaseProject, name: string): string {
  return `npm/${name.slice(1).replace("/", "-")}-${project.version}.tgz`;
}

function commonFields({ version, description, license, author, homepage }: ReleaseProject): Record<string, unknown> {
  const repository = { type: "git", url: `git+${homepage}.git` };
  return { version, description, license, author, homepage, repository };
}

function json(value: unknown): Uint8Array {
  return Buffer.from(`${JSON.stringify(value, null, 2)}\n`);
}

/** Makes the package with the binary of one platform. */
export async function npmPlatformPackage(
  project: ReleaseProject,
  { platform, binary, shared }: { platform: ReleasePlatform; binary: Uint8Array; shared: SharedContents },
): Promise<Uint8Array> {
  const name = npmPlatformPackageName(project, platform);
  const description = {
    name,
    ...commonFields(project),
    description: `The ${platform.name} binary of baton. Install ${
      npmMainPackageName(project)
    }, which chooses the platform.`,
    os: [platform.os],
    cpu: [platform.cpu],
    ...(platform.libc === null ? {} : { libc: [platform.libc] }),
    // Tells Yarn and others to unpack it, because a program cannot start from within an archive.
    preferUnplugged: true,
  };
  const readme = `# ${name}\n\nThe ${platform.name} binary of [baton](${project.homepage}).\n`;
  return await tarGzArchive("package", [
    { path: "package.json", content: json(description) },
    { path: "README.md", content: Buffer.from(readme) },
    { path: "bin/baton", content: binary, executable: true },
    ...shared.texts.filter(({ path }) => /^(LICENSE|THIRD_PARTY_NOTICES\.md)$/.test(path)),
  ], project.epoch);
}

/** The package that users install: the library, and the command that starts the platform's binary. */
export async function npmMainPackage(
  project: ReleaseProject,
  shared: SharedContents,
  scratch: string,
): Promise<Uint8Array> {
  const library = await libraryPackage(project, join(scratch, "library"));
  const description = {
    ...library.description,
    name: npmMainPackageName(project),
    ...commonFields(project),
    type: "module",
    bin: { baton: "bin/baton.js" },
    ...(shared.manPages.length === 0 ? {} : { man: shared.manPages.map(({ path }) => `./${path}`) }),
    engines: { node: ">=22" },
    optionalDependencies: Object.fromEntries(
      releasePlatforms.map((platform) => [npmPlatformPackageName(project, platform), project.version]),
    ),
    // The archive has exactly what belongs to the package.
    files: undefined,
  };
  const shim = readFileSync(join(project.root, "scripts/packages/npm/baton.js"));
  return await tarGzArchive("package", [
    { path: "package.json", content: json(description) },
    { path: "bin/baton.js", content: shim, executable: true },
    ...shared.texts,
    ...shared.manPages,
    ...library.files,
  ], project.epoch);
}

interface LibraryPackage {
  /** The fields of package.json that the library needs: exports, dependencies. */
  readonly description: Record<string, unknown>;
  /** Its modules, in lib/. */
  readonly files: readonly PackedFile[];
}

/** What scripts/build_library makes. */
async function libraryPackage({ root }: ReleaseProject, folder: string): Promise<LibraryPackage> {
  if (!existsSync(join(root, "scripts/build_library"))) return { description: {}, files: [] };
  await runToolOrThrow(["sh", "scripts/build_library", folder], { cwd: root });
  const description = JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as Record<string, unknown>;
  const files = filesBelow(folder).filter(({ path }) => path.startsWith("lib/"));
  rmSync(folder, { recursive: true });
  return { description, files };
}
