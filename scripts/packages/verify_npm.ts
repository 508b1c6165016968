/** Installs the npm packages into empty projects, with npm's own client, and uses them. */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { filesBelow } from "./contents.ts";
import { npmMainPackageName, npmPackageFile, npmPlatformPackageName } from "./npm_packages.ts";
import { type LocalNpmRegistry, npmPackageDescription, startNpmRegistry } from "./npm_registry.ts";
import type { ReleasePlatform } from "./platforms.ts";
import { ReleaseError, type ReleaseProject } from "./project.ts";
import { runTool, runToolOrThrow } from "./run_tool.ts";
import { tarGzArchive } from "./tar_archive.ts";
import { cleanLoginEnvironment, inScratchFolder, useBinaryLock, type VerificationVerdict } from "./use_binary.ts";

interface NpmProject {
  readonly folder: string;
  readonly cwd: string;
  readonly env: Record<string, string | undefined>;
}

/** Creates an empty project that gets its packages from the local registry. */
function emptyProject(folder: string, registry: LocalNpmRegistry): NpmProject {
  const cwd = join(folder, "project");
  mkdirSync(cwd, { recursive: true });
  writeFileSync(join(cwd, ".npmrc"), `registry=${registry.url}\nupdate-notifier=false\naudit=false\n`);
  writeFileSync(join(cwd, "package.json"), '{ "name": "empty", "version": "1.0.0", "private": true }\n');
  return { folder, cwd, env: { ...cleanLoginEnvironment(folder), npm_config_cache: join(folder, "npm-cache") } };
}

/** Returns a dependency as an npm archive, made from what npm installed for this project. */
async function installed({ root, epoch }: ReleaseProject, name: string): Promise<Uint8Array> {
  return await tarGzArchive("package", filesBelow(join(root, "node_modules", name)), epoch);
}

/**
 * Checks that this runtime can import every entry of the library. The library's own tests run the programs of its page.
 */
async function importLibrary(name: string, npm: NpmProject): Promise<void> {
  const entries = [name, `${name}/pubsub`, `${name}/retry`];
  const program = entries.map((entry) => `if (Object.keys(await import("${entry}")).length === 0) process.exit(1);`);
  writeFileSync(join(npm.cwd, "imports.mjs"), program.join("\n"));
  await runToolOrThrow([process.execPath, "imports.mjs"], npm);
}

/** Installs the main package and the package of this machine's platform, and uses them. */
export async function verifyNpm(
  project: ReleaseProject,
  platform: ReleasePlatform,
  outFolder: string,
): Promise<VerificationVerdict> {
  const names = [npmMainPackageName(project), npmPlatformPackageName(project, platform)];
  const made = names.map((name) => readFileSync(join(outFolder, npmPackageFile(project, name))));
  const [description = {}] = made.map((bytes) =>
    npmPackageDescription(bytes) as { dependencies?: Record<string, string> }
  );
  const needed = await Promise.all(Object.keys(description.dependencies ?? {}).map((name) => installed(project, name)));
  await using registry = await startNpmRegistry([...made, ...needed]);
  const inProject = (body: (npm: NpmProject) => Promise<void>) =>
    inScratchFolder((folder) => body(emptyProject(folder, registry)));
  const [main = ""] = names;

  await inProject(async (npm) => {
    await runToolOrThrow(["npm", "install", main], npm);
    await useBinaryLock(["npx", "baton"], npm);
    await useBinaryLock([join(npm.cwd, "node_modules/.bin/baton")], npm);
    await importLibrary(main, npm);
  });
  await inProject(async (npm) => await useBinaryLock(["npx", "--yes", main], npm));
  await inProject(async (npm) => {
    await runToolOrThrow(["npm", "install", "--omit=optional", main], npm);
    const { code, stderr } = await runTool(["npx", "baton", "--version"], npm);
    if (code !== 69 || !stderr.includes(`npm install --include=optional ${main}@${project.version}`)) {
      throw new ReleaseError(70, `without optional packages, baton ended with ${code}:\n${stderr}`);
    }
  });
  return {
    used: "npm install, npx: a lock was taken and given back; library imported; --omit=optional: the missing package " +
      "is named",
  };
}
