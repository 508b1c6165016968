/** Installs the npm packages into empty projects, with npm's own client, and uses them. */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { filesBelow } from "./contents.ts";
import { mainPackageName, packageFile, platformPackageName } from "./npm_packages.ts";
import { type LocalRegistry, packageDescription, startRegistry } from "./npm_registry.ts";
import type { Platform } from "./platforms.ts";
import { type Project, ReleaseError } from "./project.ts";
import { runChecked, runTool } from "./run_tool.ts";
import { tarGz } from "./tar_archive.ts";
import { cleanEnvironment, inScratch, useLock, type Verdict } from "./use_binary.ts";

interface NpmProject {
  readonly folder: string;
  readonly cwd: string;
  readonly env: Record<string, string | undefined>;
}

/** An empty project whose packages come from the local registry. */
function emptyProject(folder: string, registry: LocalRegistry): NpmProject {
  const cwd = join(folder, "project");
  mkdirSync(cwd, { recursive: true });
  writeFileSync(join(cwd, ".npmrc"), `registry=${registry.url}\nupdate-notifier=false\naudit=false\n`);
  writeFileSync(join(cwd, "package.json"), '{ "name": "empty", "version": "1.0.0", "private": true }\n');
  return { folder, cwd, env: { ...cleanEnvironment(folder), npm_config_cache: join(folder, "npm-cache") } };
}

/** A dependency as an npm archive, made of what npm installed for this project. */
async function installed({ root, epoch }: Project, name: string): Promise<Uint8Array> {
  return await tarGz("package", filesBelow(join(root, "node_modules", name)), epoch);
}

/**
 * Every entry of the library can be imported by this runtime; the tests of the library run the programs of its page.
 */
async function importLibrary(name: string, npm: NpmProject): Promise<void> {
  const entries = [name, `${name}/pubsub`, `${name}/retry`];
  const program = entries.map((entry) => `if (Object.keys(await import("${entry}")).length === 0) process.exit(1);`);
  writeFileSync(join(npm.cwd, "imports.mjs"), program.join("\n"));
  await runChecked([process.execPath, "imports.mjs"], npm);
}

/** The machine's own platform and the main package. */
export async function verifyNpm(project: Project, platform: Platform, outFolder: string): Promise<Verdict> {
  const names = [mainPackageName(project), platformPackageName(project, platform)];
  const made = names.map((name) => readFileSync(join(outFolder, packageFile(project, name))));
  const [description = {}] = made.map((bytes) =>
    packageDescription(bytes) as { dependencies?: Record<string, string> }
  );
  const needed = await Promise.all(Object.keys(description.dependencies ?? {}).map((name) => installed(project, name)));
  await using registry = await startRegistry([...made, ...needed]);
  const inProject = (body: (npm: NpmProject) => Promise<void>) =>
    inScratch((folder) => body(emptyProject(folder, registry)));
  const [main = ""] = names;

  await inProject(async (npm) => {
    await runChecked(["npm", "install", main], npm);
    await useLock(["npx", "baton"], npm);
    await useLock([join(npm.cwd, "node_modules/.bin/baton")], npm);
    await importLibrary(main, npm);
  });
  await inProject(async (npm) => await useLock(["npx", "--yes", main], npm));
  await inProject(async (npm) => {
    await runChecked(["npm", "install", "--omit=optional", main], npm);
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
