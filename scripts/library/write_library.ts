/**
 * Writes the library as an npm package into a folder: see scripts/build_library. Started by it, with the folder as
 * argument.
 */
import { spawnSync } from "node:child_process";
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import process from "node:process";

const root = join(import.meta.dirname, "../..");
const folder = process.argv[2] ?? join(root, "dist/library");

/** The entries of the package, and their source modules. */
const entries = {
  ".": "library/baton",
  "./pubsub": "library/baton_pubsub",
  "./retry": "library/baton_retry",
} as const;

/** The oldest Node.js that can import the package. */
const nodeVersion = ">=22";

interface ProjectDescription {
  readonly name: string;
  /** `npmScope`: the scope under which the package is published, such as "@scope"; none if omitted. */
  readonly config?: { readonly npmScope?: string };
  readonly version: string;
  readonly description: string;
  readonly license: string;
  readonly dependencies: Readonly<Record<string, string>>;
}

class BuildError extends Error {}

/** Compiles the entries, their workers, and everything that they import. */
function compile(into: string): void {
  const tsc = join(root, "node_modules/.bin/tsc");
  const project = join(root, "scripts/library/tsconfig.json");
  const { status, stdout, error } = spawnSync(tsc, ["-p", project, "--outDir", into], { encoding: "utf8" });
  if (status !== 0) throw new BuildError(`tsc failed:\n${error?.message ?? stdout}`);
}

/**
 * Replaces names of source files by those of emitted files, where the compiler does not: in URLs of workers, and in
 * imports of declarations, which TypeScript resolves but Deno does not.
 */
function renameImports(path: string): void {
  const text = readFileSync(path, "utf8");
  const renamed = path.endsWith(".d.ts")
    ? text.replace(/((?:from|import) ?\(?"\.{1,2}\/[^"]+)\.ts"/g, '$1.js"')
    : text.replace(/(new URL\("\.{1,2}\/[^"]+)\.ts"/g, '$1.js"');
  if (renamed !== text) writeFileSync(path, renamed);
}

/** Returns the files and packages that a module names. */
function namesIn(text: string): string[] {
  const code = text.replace(/^\s*(\*|\/\/|\/\*).*$/gm, "");
  const pattern = /(?:\bfrom |\bimport |\bimport\(|\bnew URL\()"([^"]+)"/g;
  return [...code.matchAll(pattern)].map((match) => match[1] ?? "");
}

function packageOf(specifier: string): string {
  return specifier.split("/").slice(0, specifier.startsWith("@") ? 2 : 1).join("/");
}

/** Returns the packages that the emitted files import, with their versions. Throws for an import of a missing file. */
function checkImports(paths: readonly string[], { dependencies }: ProjectDescription): Record<string, string> {
  const found = new Map<string, string>();
  for (const path of paths) {
    for (const name of namesIn(readFileSync(path, "utf8"))) {
      if (/^(node|bun):|^bun$/.test(name)) continue;
      if (name.startsWith(".")) {
        const target = join(dirname(path), name);
        if (!existsSync(target)) throw new BuildError(`${path} imports ${name}, which was not built`);
        continue;
      }
      const version = dependencies[packageOf(name)];
      if (version === undefined) {
        throw new BuildError(`${path} imports "${name}", which package.json does not depend on`);
      }
      found.set(packageOf(name), version);
    }
  }
  return Object.fromEntries([...found].sort());
}

function writePackage(into: string): void {
  const lib = join(into, "lib");
  compile(lib);
  const paths = readdirSync(lib, { recursive: true, encoding: "utf8" }).filter((name) => /\.(js|d\.ts)$/.test(name))
    .map((name) => join(lib, name));
  for (const path of paths) renameImports(path);
  const project = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as ProjectDescription;
  const { version, description, license, config } = project;
  const name = config?.npmScope === undefined ? project.name : `${config.npmScope}/${project.name}`;
  const exports = Object.fromEntries(
    Object.entries(entries).map(([entry, module]) => [
      entry,
      { types: `./lib/${module}.d.ts`, default: `./lib/${module}.js` },
    ]),
  );
  const dependencies = checkImports(paths, project);
  const packed = {
    name,
    version,
    description,
    license,
    type: "module",
    engines: { node: nodeVersion },
    exports: { ...exports, "./package.json": "./package.json" },
    files: ["lib", "LICENSE"],
    dependencies,
  };
  writeFileSync(join(into, "package.json"), `${JSON.stringify(packed, null, 2)}\n`);
  copyFileSync(join(root, "LICENSE"), join(into, "LICENSE"));
}

const next = `${folder}.${process.pid}`;
try {
  mkdirSync(next, { recursive: true });
  writePackage(next);
  rmSync(folder, { recursive: true, force: true });
  renameSync(next, folder);
} catch (error) {
  rmSync(next, { recursive: true, force: true });
  if (!(error instanceof BuildError)) throw error;
  console.error(`scripts/build_library: ${error.message}`);
  process.exitCode = 70;
}
