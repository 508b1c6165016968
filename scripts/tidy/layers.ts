/** Imports point down, never up: which folder may import which. The order and its reasons are in docs/architecture.md. */
import { posix } from "node:path";
import { findInCode, type Finding, importsOf, type SourceFile } from "./source_file.ts";

const ground = ["support", "errors"];
/** What a client of the coordination service needs: its operations, never its bytes. */
const nodes = ["zookeeper", "wire/jute", "coordination", "process", ...ground];

/**
 * Each folder of the product, and the others it may import. "wire" means the files of that folder itself, "wire/*" also those of the
 * folders below it. A folder that is missing here is a finding.
 */
const mayImport: Record<string, readonly string[]> = {
  errors: [],
  support: ["errors"],
  wire: ground,
  "wire/jute": ["wire", ...ground],
  "wire/kafka": ["wire", "wire/jute", ...ground],
  "wire/pubsub": ["wire", ...ground],
  "wire/zmtp": ["wire", ...ground],
  sockets: ["wire/jute", ...ground],
  http: ["sockets", ...ground],
  storage: ground,
  postgres: ["sockets", ...ground],
  config: ground,
  schedule: ground,
  trace: ["config", "http", ...ground],

  process: ground,
  "process/proc": ["process", ...ground],
  "process/spawn": ["process/proc", "process", ...ground],
  "process/guard": ["process/spawn", "process/proc", "process", ...ground],
  "process/supervise": ["process/guard", "process/spawn", "process/proc", "process", ...ground],
  "process/hold": ["process/supervise", "process/guard", "process/spawn", "process/proc", "process", ...ground],

  zookeeper: ["wire/*", "sockets", ...ground],
  zeromq: ["wire/*", "sockets", "storage", ...ground],
  kafka: ["wire/*", "sockets", ...ground],

  "keeper/state": ["wire/*", ...ground],
  "keeper/storage": ["keeper/state", "wire/*", "storage", ...ground],
  "keeper/protocol": ["keeper/state", "wire/*", "sockets", ...ground],
  "keeper/lifecycle": ["keeper/*", "wire/*", "sockets", ...ground],

  coordination: ["zookeeper", "wire/jute", "process", ...ground],
  "coordination/lock": nodes,
  "coordination/interop": ["coordination/lock", ...nodes],
  "coordination/election": ["coordination/lock", ...nodes],
  "coordination/history": ["coordination/lock", ...nodes],
  "coordination/tick": ["coordination/lock", "coordination/history", "schedule", ...nodes],
  "coordination/barrier": ["coordination/lock", ...nodes],
  "coordination/pool": ["coordination/lock", ...nodes],
  "coordination/fence": ["coordination/lock", "process/*", "storage", ...nodes],
  "coordination/admin": [
    ...["lock", "election", "barrier", "pool", "interop"].map((name) => `coordination/${name}`),
    ...nodes,
  ],
  terminal: ["process/spawn", "process", "config", "sockets", "http", ...ground],
  "coordination/connect": ["terminal", "zookeeper", "keeper/lifecycle", "sockets", "config", ...ground],

  pubsub: ["zeromq", "wire/*", ...ground],
  "pubsub/client": ["pubsub", "zeromq", "wire/*", "storage", ...ground],
  "pubsub/store": ["pubsub", "wire/*", "storage", ...ground],
  "pubsub/postgres_store": ["pubsub/store", "pubsub", "postgres", "wire/*", "storage", ...ground],
  "pubsub/ownership": ["pubsub/store", "pubsub", "coordination/lock", "wire/pubsub", ...nodes],
  "pubsub/server": ["pubsub/store", "pubsub/ownership", "pubsub", "zeromq", "wire/*", "storage", ...nodes],
  "pubsub/proxy": ["pubsub/ownership", "pubsub", "zeromq", "wire/*", ...nodes],
  "pubsub/admin": ["pubsub/ownership", "pubsub", "zeromq", "wire/*", ...nodes],

  retry: ground,
  "retry/queue": ["storage", "postgres", "process", ...ground],
  "retry/targets": ["retry", "retry/queue", "http", "trace", "pubsub/client", "wire/pubsub", "process/*", ...ground],
  "retry/dead_letters": [
    ...["retry", "retry/queue", "retry/targets", "pubsub/client", "kafka", "storage", "config", "process/*"],
    ...["coordination/connect", "sockets", ...ground],
  ],
  "retry/processor": [
    ...["retry/*", "pubsub/client", "terminal", "config", "schedule", "process/*", "sockets", "http"],
    ...["coordination", "coordination/lock", "coordination/election", "coordination/connect", "zookeeper", ...ground],
  ],
  "retry/http_proxy": ["retry/queue", "retry/targets", "http", "sockets", ...ground],

  ui: ["support", "errors"],
  "ui/page": ["ui", "support", "errors"],

  library: [
    ...[
      "coordination/*",
      "zookeeper",
      "process",
      "sockets",
      "pubsub/client",
      "pubsub/ownership",
      "pubsub/admin",
      "pubsub/store",
    ],
    ...["zeromq", "retry/queue", "retry/targets", "retry/processor", "config", ...ground],
  ],
  baton: ["library", "coordination/*", "keeper/lifecycle", "zookeeper", "process", "sockets", ...ground],
  baton_pubsub: ["library", "pubsub/store"],
  baton_retry: ["library", "retry/queue", "retry/targets"],
  commands: [
    ...[
      "retry/*",
      "pubsub/*",
      "coordination/*",
      "process/*",
      "keeper/*",
      "terminal",
      "ui",
      "config",
      "schedule",
      "trace",
    ],
    ...["zookeeper", "zeromq", "kafka", "postgres", "storage", "sockets", "http", ...ground],
  ],
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
  { specifier: /^smol-toml$/, where: /^src\/config\//, why: "files are read in src/config alone" },
  {
    specifier: /^bun$/,
    where: /^src\/(sockets|process\/spawn)\//,
    why: "a runtime's own functions stand behind an interface",
  },
  {
    specifier: /^pg(\/|$)/,
    where: /^src\/postgres\//,
    why: "one module knows what a lost connection means for a statement",
  },
  {
    specifier: /^(preact|@preact\/signals)(\/|$)/,
    where: /^src\/ui\/page\//,
    why: "it is for the page of baton ui, which runs in a browser",
  },
  { specifier: /^bun:ffi$/, where: /^src\/process\/libc\.ts$/, why: "libc is called from one file" },
];

/** Coordination knows the protocol's numbers and names, and nothing of how they become bytes. */
const bytes = /^src\/wire\/(bytes|jute\/(jute_codec|jute_frame|session_frames))\.ts$/;

/** The folder of a file of the product; null for tests and scripts, which may import anything. */
function layerOf(path: string): string | null {
  if (path.startsWith("commands/")) return "commands";
  if (!path.startsWith("src/")) return null;
  const folder = posix.dirname(path.slice("src/".length));
  return folder === "." ? posix.basename(path, ".ts") : folder;
}

function allows(allowed: readonly string[], layer: string): boolean {
  return allowed.some((name) => name.endsWith("/*") ? `${layer}/`.startsWith(name.slice(0, -1)) : name === layer);
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
  return importsOf(file).filter(({ specifier }) => !/^(\.\.\/)+package\.json$/.test(specifier)).flatMap(
    ({ specifier, line }) => {
      const message = specifier.startsWith(".")
        ? complaintAboutFile(layer, allowed, posix.join(posix.dirname(file.path), specifier))
        : complaintAboutPackage(file.path, specifier);
      return message === null ? [] : [{ path: file.path, line, message }];
    },
  );
}

function complaintAboutFile(layer: string, allowed: readonly string[], path: string): string | null {
  const target = layerOf(path);
  if (layer.startsWith("coordination") && bytes.test(path)) return "coordination uses nodes, never bytes";
  if (target === layer || (target !== null && allows(allowed, target))) return null;
  return `${layer} must not import ${target ?? "tests or scripts"}: imports point down, never up`;
}

/** Files that import each other in a circle, types included. One finding for each circle, at its first file. */
export function checkCycles(files: readonly SourceFile[]): Finding[] {
  const product = new Map(
    files.filter((file) => layerOf(file.path) !== null).map((file) => [
      file.path,
      importsOf(file).filter(({ specifier }) => specifier.startsWith("."))
        .map(({ specifier }) => posix.join(posix.dirname(file.path), specifier)),
    ]),
  );
  return stronglyConnected(product).map((circle) => circle.sort())
    .map((circle) => ({ path: circle[0] ?? "", line: 1, message: `imports go in a circle: ${circle.join(", ")}` }));
}

/** The groups of two or more nodes that reach each other. R. Tarjan, "Depth-first search and linear graph algorithms", 1972. */
function stronglyConnected(edges: ReadonlyMap<string, readonly string[]>): string[][] {
  const order = new Map<string, number>();
  const stack: string[] = [];
  const groups: string[][] = [];
  const visit = (node: string): number => {
    const index = order.size;
    order.set(node, index);
    stack.push(node);
    let lowest = index;
    for (const next of edges.get(node) ?? []) {
      if (!edges.has(next)) continue;
      if (!order.has(next)) lowest = Math.min(lowest, visit(next));
      else if (stack.includes(next)) lowest = Math.min(lowest, order.get(next) ?? lowest);
    }
    if (lowest === index) {
      const group = stack.splice(stack.indexOf(node));
      if (group.length > 1) groups.push(group);
    }
    return lowest;
  };
  for (const node of edges.keys()) if (!order.has(node)) visit(node);
  return groups;
}

/** A file's name says what it holds, and a search for it finds one file. */
export function checkFileNames(files: readonly SourceFile[]): Finding[] {
  const byName = new Map<string, string[]>();
  for (const { path } of files.filter((file) => layerOf(file.path) !== null)) {
    const name = posix.basename(path);
    byName.set(name, [...byName.get(name) ?? [], path]);
  }
  return [...byName.values()].filter((paths) => paths.length > 1).map((paths) => ({
    path: paths[0] ?? "",
    line: 1,
    message: `the file name is used ${paths.length} times: ${paths.join(", ")}`,
  }));
}

function complaintAboutPackage(path: string, specifier: string): string | null {
  const rule = keptIn.find((row) => row.specifier.test(specifier));
  if (rule !== undefined) return rule.where.test(path) ? null : `"${specifier}" must not be imported here: ${rule.why}`;
  return specifier.startsWith("node:") ? null : `"${specifier}" is neither a node: built-in nor a dependency of baton`;
}

/** Where a runtime's own functions may stand: behind an interface that node: built-ins serve as well. */
const runtimeFolders = /^src\/(sockets\/|process\/(spawn|proc|guard)\/|process\/libc\.ts$)/;

/** Where a process may end: its entry, and where it dies of the signal that it was told to stop by. */
const mayExit = /^(commands\/main|src\/process\/supervise\/signal_source)\.ts$/;

/** Where stdout and stderr may be written: by what never blocks, and in a thread whose only work it is. */
const mayWrite = /^src\/terminal\/(output_writer|drain_output|progress_worker)\.ts$/;

/** One runtime's own functions, output, and the end of the process have their places. */
export function checkPlaces(file: SourceFile): Finding[] {
  if (layerOf(file.path) === null) return [];
  const findings: Finding[] = [];
  if (!runtimeFolders.test(file.path)) {
    const message = "Bun and Deno are named in src/sockets and src/process alone: use a node: built-in";
    findings.push(...findInCode(file, /(?<![\w.])(Bun|Deno)\./, message));
  }
  if (!file.path.startsWith("src/ui/page")) {
    const message =
      "requests are sent by src/http/http_client.ts: fetch unpacks, repeats, and obeys variables of its own";
    findings.push(...findInCode(file, /(?<![\w.#]|async )fetch\(/, message));
  }
  if (file.path.startsWith("src/postgres/")) {
    const message = "results of PostgreSQL are text: with binary results, pg decodes bytes as UTF-8 and destroys them";
    findings.push(...findInCode(file, /\bbinary\b/, message));
  }
  if (!mayExit.test(file.path)) {
    const message = "only commands/main.ts ends the process: return an exit code, or throw a BatonError";
    findings.push(...findInCode(file, /\bprocess\.(exitCode\s*=(?!=)|exit\()/, message));
  }
  if (!mayWrite.test(file.path)) {
    const message = "a write to stdout or stderr may block, and lose output without an error: use Io";
    findings.push(...findInCode(file, /\b(write\w*\([12],|process\.std(out|err)\.write\(|console\.)/, message));
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
