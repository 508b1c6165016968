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
  recipes: ["clients", ...ground],
  config: ground,
  cli: ["recipes", "config", "sockets", ...ground],
  baton: ["recipes", "clients", "keeper", "sockets", ...ground],
  commands: ["recipes", "cli", "config", "clients", "keeper", "sockets", ...ground],
};

/** Packages and built-ins that only some files may import, and why. */
const keptIn: readonly { specifier: RegExp; where: RegExp; why: string }[] = [
  { specifier: /^node:(net|tls)$/, where: /^src\/sockets\//, why: "bytes move in src/sockets alone" },
  { specifier: /^commander$/, where: /^commands\/\w+\.ts$/, why: "the command line is read in commands alone" },
  { specifier: /^zod(\/|$)/, where: /^(src\/config|commands)\//, why: "values from outside are checked in src/config" },
  { specifier: /^smol-toml$/, where: /^src\/config\//, why: "files are read in src/config alone" },
  {
    specifier: /^bun$/,
    where: /^src\/(sockets|cli\/child)\//,
    why: "a runtime's own functions stand behind an interface",
  },
  { specifier: /^bun:ffi$/, where: /^src\/cli\/child\//, why: "libc is reached from one file of src/cli/child" },
];

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
      ? complaintAboutLayer(layer, allowed, layerOf(posix.join(posix.dirname(file.path), specifier)))
      : complaintAboutPackage(file.path, specifier);
    return message === null ? [] : [{ path: file.path, line, message }];
  });
}

function complaintAboutLayer(layer: string, allowed: readonly string[], target: string | null): string | null {
  if (target === layer || (target !== null && allowed.includes(target))) return null;
  return `${layer} must not import ${target ?? "tests or scripts"}: imports point down, never up`;
}

function complaintAboutPackage(path: string, specifier: string): string | null {
  const rule = keptIn.find((row) => row.specifier.test(specifier));
  if (rule !== undefined) return rule.where.test(path) ? null : `"${specifier}" must not be imported here: ${rule.why}`;
  return specifier.startsWith("node:") ? null : `"${specifier}" is neither a node: built-in nor a dependency of baton`;
}

/** Where a runtime's own functions may stand: behind an interface that node: built-ins serve as well. */
const runtimeFolders = /^src\/(sockets|cli\/child)\//;

/** One runtime's own functions, and the end of the process, have their places. */
export function checkPlaces(file: SourceFile): Finding[] {
  if (layerOf(file.path) === null) return [];
  const findings: Finding[] = [];
  if (!runtimeFolders.test(file.path)) {
    const message = "Bun and Deno are named in src/sockets and src/cli/child alone: use a node: built-in";
    findings.push(...findInCode(file, /(?<![\w.])(Bun|Deno)\./, message));
  }
  if (file.path !== "commands/main.ts") {
    const message = "only commands/main.ts ends the process: return an exit code, or throw a BatonError";
    findings.push(...findInCode(file, /\bprocess\.(exitCode\s*=(?!=)|exit\()/, message));
  }
  if (file.path.startsWith("commands/") && file.path !== "commands/exit_codes.ts") {
    const message = "exit numbers are chosen in commands/exit_codes.ts alone: use the name";
    findings.push(...findInCode(file, /\breturn (6[4-9]|7\d|8[0-6]|12[4-7])\b|[eE]xitCode\w* [=:]+ \d/, message));
  }
  return findings;
}
