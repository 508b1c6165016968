/** An empty project in which the built library is installed as a package, as a user of npm has it. */
import { spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";

const root = join(import.meta.dirname, "../..");
const tool = (name: string) => join(root, "node_modules/.bin", name);

export interface ProjectRun {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

export class LibraryProject implements Disposable {
  readonly folder = mkdtempSync(join(tmpdir(), "baton-installed-"));
  /** Where programs without servers start a keeper. */
  readonly keeperFolder = join(this.folder, "keeper");

  /** Builds the library, packs it and its dependencies, and installs what was packed, without the network. */
  constructor() {
    const built = join(this.folder, "built");
    this.#succeed("sh", [join(root, "scripts/build_library"), built]);
    const { dependencies } = JSON.parse(readFileSync(join(built, "package.json"), "utf8")) as {
      dependencies: Record<string, string>;
    };
    const packed = join(this.folder, "packed");
    mkdirSync(packed);
    const packages = [built, ...Object.keys(dependencies).map((one) => join(root, "node_modules", one))];
    for (const one of packages) {
      this.#succeed("npm", ["pack", one, "--silent", "--ignore-scripts", "--pack-destination", packed]);
    }
    mkdirSync(this.path("."), { recursive: true });
    writeFileSync(this.path("package.json"), JSON.stringify({ private: true, type: "module" }));
    const files = readdirSync(packed).map((file) => join(packed, file));
    this.#succeed("npm", [
      "install",
      "--offline",
      "--ignore-scripts",
      "--no-audit",
      "--no-fund",
      "--loglevel=error",
      ...files,
    ]);
  }

  path(...names: string[]): string {
    return join(this.folder, "project", ...names);
  }

  /** Writes a program that imports the package. */
  write(file: string, text: string): void {
    writeFileSync(this.path(file), text);
  }

  /**
   * Checks the types of all programs of the project, strictly, against the declarations of the package. Returns what
   * the compiler reports.
   */
  checkTypes(): string {
    const types = this.path("node_modules/@types/node");
    if (!existsSync(types)) {
      cpSync(join(root, "node_modules/@types/node"), types, { recursive: true });
      cpSync(join(root, "node_modules/undici-types"), this.path("node_modules/undici-types"), { recursive: true });
    }
    const compilerOptions = {
      ...{ target: "es2024", lib: ["es2024", "esnext.disposable"], module: "nodenext", types: ["node"] },
      ...{ strict: true, exactOptionalPropertyTypes: true, skipLibCheck: false, noEmit: true },
    };
    // Deno would read a tsconfig.json.
    writeFileSync(this.path("compile.json"), JSON.stringify({ compilerOptions, include: ["*.ts"] }));
    return this.#spawn(tool("tsc"), ["-p", "compile.json"]).out;
  }

  /** Runs a runtime with its arguments, and with further variables. */
  run([program = "", ...args]: readonly string[], variables: Readonly<Record<string, string>> = {}): ProjectRun {
    return this.#spawn(program, args, variables);
  }

  [Symbol.dispose](): void {
    rmSync(this.folder, { recursive: true, force: true });
  }

  #spawn(program: string, args: readonly string[], variables: Readonly<Record<string, string>> = {}): ProjectRun {
    const cwd = existsSync(this.path(".")) ? this.path(".") : this.folder;
    const env = {
      ...{ PATH: process.env["PATH"], HOME: this.folder, NO_COLOR: "1", BATON_KEEPER_DIR: this.keeperFolder },
      DENO_DIR: process.env["DENO_DIR"] ?? join(tmpdir(), "baton-deno-cache"),
      ...variables,
    };
    const ended = spawnSync(program, args, {
      cwd,
      env,
      encoding: "utf8",
      stdio: ["ignore", "pipe", "pipe"],
      timeout: 120_000,
    });
    return { code: ended.status, out: ended.stdout ?? "", err: ended.stderr ?? String(ended.error) };
  }

  #succeed(program: string, args: readonly string[]): void {
    const { code, out, err } = this.#spawn(program, args);
    if (code !== 0) throw new Error(`${program} ${args.join(" ")} ended with ${code}:\n${err}${out}`);
  }
}

/** Checks the types of programs as Deno does. */
export const denoCheck: readonly string[] = [tool("deno"), "check", "--quiet"];

/** The runtimes that the library supports. */
export function libraryRuntimes(): readonly { name: string; command: readonly string[] }[] {
  const { status, stdout, stderr } = spawnSync("sh", [join(root, "scripts/install_node")], { encoding: "utf8" });
  if (status !== 0) throw new Error(`Node.js 22 is needed: ${stderr}`);
  return [
    { name: "Node.js", command: [stdout.trim(), "--disable-warning=ExperimentalWarning"] },
    { name: "Bun", command: [tool("bun")] },
    { name: "Deno", command: [tool("deno"), "run", "-A", "--quiet"] },
  ];
}
