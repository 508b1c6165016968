/** Imports point down, never up: who may import what. The order and its reasons are in docs/architecture.md. */
import { posix } from "node:path";
import { findInCode, type Finding, importsOf, type SourceFile } from "./source_file.ts";

const ground = ["support", "errors"];

/** Each layer, and the others it may import. A folder that is missing here is a finding. */
const mayImport: Record<string, readonly string[]> = {
  errors: [],
  support: ["errors"],
  wire: ground,
  sockets: ground,
  clients: ["wire", "sockets", ...ground],
  keeper: ["wire", "sockets", ...ground],
  recipes: ["clients", "wire", ...ground],
  config: ground,
  cli: ["recipes", "config", "keeper", "sockets", ...ground],
  library: ["recipes", "clients", "sockets", ...ground],
  baton: ["library", "recipes", "clients", "keeper", "sockets", ...ground],
  commands: ["recipes", "cli", "config", "clients", "keeper", "sockets", ...ground],
};

/** Packages and built-ins that only some files may import, and why. */
const keptIn: readonly { specifier: RegExp; where: RegExp; why: string }[] = [
  { specifier: /^node:(net|tls)$/, where: /^src\/sockets\//, why: "bytes move in src/sockets alone" },
  {
    specifier: /^zod(\/|$)/,
    where: /^(src\/config|commands\/json_shapes)\//,
    why: "values from outside are checked in src/config, and what is printed is declared in commands/json_shapes",
  },
  {
    specifier: /^@noble\/ciphers\//,
    where: /^src\/wire\/zmtp\/curve_(box|traffic)\.ts$/,
    why: "the cipher is called from two files of CURVE alone",
  },
  { specifier: /^croner$/, where: /^src\/recipes\/retry\/cron_times\.ts$/, why: "schedules are read in one file" },
  { specifier: /^smol-toml$/, where: /^src\/config\//, why: "files are read in src/config alone" },
  {
    specifier: /^bun$/,
    where: /^src\/(sockets|cli\/child)\//,
    why: "a runtime's own functions stand behind an interface",
  },
  { specifier: /^bun:ffi$/, where: /^src\/cli\/child\//, why: "libc is reached from one file of src/cli/child" },
];

/** Recipes know the protocol's numbers and names, and nothing of how they become bytes. */
const bytes = /^src\/wire\/(bytes|jute\/(codec|frame|session_frames))\.ts$/;

/** The layer of a file of the product; null for tests and scripts, which may import anything. */
function layerOf(path: string): string | null {
  const [top = "", folder = ""] = path.split("/");
  if (top === "commands") return "commands";
  return top === "src" ? folder.replace(/\.ts$/, "") : null;
}

/** The order of the layers, and the imports that are kept in one place. */
export function checkLayers(file: SourceFile): Finding[] {
  const layer = layerOf(file.path);
  if (layer === null) return [];
  const allowed = mayImport[layer];
  if (allowed === undefined) {
    return [{
      path: file.path,
      line: 1,
      message: `"${layer}" is not a layer: give it a place in scripts/tidy/layers.ts`,
    }];
  }
  return importsOf(file).filter(({ specifier }) => specifier !== "../package.json").flatMap(({ specifier, line }) => {
    const message = specifier.startsWith(".")
      ? complaintAboutFile(layer, allowed, posix.join(posix.dirname(file.path), specifier))
      : complaintAboutPackage(file.path, specifier);
    return message === null ? [] : [{ path: file.path, line, message }];
  });
}

function complaintAboutFile(layer: string, allowed: readonly string[], path: string): string | null {
  const target = layerOf(path);
  if (layer === "recipes" && bytes.test(path)) return "recipes speak of nodes, never of bytes";
  if (target === layer || (target !== null && allowed.includes(target))) return null;
  return `${layer} must not import ${target ?? "tests or scripts"}: imports point down, never up`;
}

function complaintAboutPackage(path: string, specifier: string): string | null {
  const rule = keptIn.find((row) => row.specifier.test(specifier));
  if (rule !== undefined) return rule.where.test(path) ? null : `"${specifier}" must not be imported here: ${rule.why}`;
  return specifier.startsWith("node:") ? null : `"${specifier}" is neither a node: built-in nor a dependency of baton`;
}

/** Where a runtime's own functions may stand: behind an interface that node: built-ins serve as well. */
const runtimeFolders = /^src\/(sockets|cli\/child|cli\/guard)\//;

/** Where a process may end: its entry, and where it dies of the signal that it was told to stop by. */
const mayExit = /^(commands\/main|src\/cli\/stopped_by_signal)\.ts$/;

/** One runtime's own functions, and the end of the process, have their places. */
export function checkPlaces(file: SourceFile): Finding[] {
  if (layerOf(file.path) === null) return [];
  const findings: Finding[] = [];
  if (!runtimeFolders.test(file.path)) {
    const message =
      "Bun and Deno are named in src/sockets, src/cli/child and src/cli/guard alone: use a node: built-in";
    findings.push(...findInCode(file, /(?<![\w.])(Bun|Deno)\./, message));
  }
  if (!mayExit.test(file.path)) {
    const message = "only commands/main.ts ends the process: return an exit code, or throw a BatonError";
    findings.push(...findInCode(file, /\bprocess\.(exitCode\s*=(?!=)|exit\()/, message));
  }
  if (file.path.startsWith("commands/") && file.path !== "commands/exit_codes.ts") {
    const message = "exit numbers are chosen in commands/exit_codes.ts alone: use the name";
    findings.push(...findInCode(file, /\breturn (6[4-9]|7\d|8[0-6]|12[4-7])\b|[eE]xitCode\w* [=:]+ \d/, message));
  }
  if (!file.path.startsWith("commands/json_shapes/")) {
    const message = "only types are imported of commands/json_shapes: a schema costs every start";
    file.text.split("\n").forEach((text, index) => {
      if (/^import (?!type\b).*\/json_shapes\//.test(text)) {
        findings.push({ path: file.path, line: index + 1, message });
      }
    });
  }
  return findings;
}

/** `zod` of `zod/mini`, `@noble/ciphers` of `@noble/ciphers/salsa.js`. */
function packageOf(specifier: string): string {
  return specifier.split("/").slice(0, specifier.startsWith("@") ? 2 : 1).join("/");
}

/** A dependency that the product does not import is one to remove. */
export function checkDependencies(packageJson: string, files: readonly SourceFile[]): Finding[] {
  const { dependencies } = JSON.parse(packageJson) as { dependencies: Record<string, string> };
  const product = files.filter((file) => layerOf(file.path) !== null);
  const imported = new Set(product.flatMap(importsOf).map(({ specifier }) => packageOf(specifier)));
  return Object.keys(dependencies).filter((name) => !imported.has(name)).map((name) => ({
    path: "package.json",
    line: 1,
    message: `nothing imports "${name}"`,
  }));
}
