/** Rules about imports: which folder may import which. docs/development/architecture.md has the order. */
import { posix } from "node:path";
import { checkCounted, type KnownCounts } from "./counted.ts";
import { findInCode, type Finding, listImports, type SourceFile } from "./source_file.ts";

/** Errors, and modules that know nothing of baton. */
const ground = ["src/base", "src/base/support"];
/** The client of the coordination service: its operations, not its encoding. */
const zooKeeper = ["src/protocols/zookeeper", "src/protocols/zookeeper/jute"];
/** What other products may use of coordination: paths and leases, servers and sessions, options. */
const front = ["src/coordination/nodes", "src/coordination/connect", "src/coordination/settings"];
/** The folders that a recipe needs. */
const recipe = [
  "src/coordination/nodes",
  "src/coordination/lock",
  ...zooKeeper,
  "src/base/process",
  "src/base/rows",
  ...ground,
];
/** The files with which products register. */
const registrations = ["coordination", "pubsub", "retry", "operator"].map((name) =>
  `commands/${name}/${name}_product.ts`
);
/** The rooms of a topic store, from the ground up. */
const topicStoreRooms = [
  "operations",
  "limits",
  "decisions",
  "rows",
  "content",
  "clients",
  "engine",
  "transfer",
  "thread",
  "sqlite",
];
/** Returns the rooms up to this one. */
const storeRooms = (last: string) =>
  topicStoreRooms.slice(0, topicStoreRooms.indexOf(last) + 1).map((name) => `src/pubsub/store/${name}`);
/** The folders that any command may import. */
const command = ["commands", "commands/json_shapes", "src/base/*"];

/**
 * Each folder of the product, and the others that it may import. "src/base" means the files of that folder itself,
 * "src/base/*" also those of the folders below it. A folder that is missing here is a finding.
 */
const mayImport: Record<string, readonly string[]> = {
  "src/base": [],
  "src/base/rows": ground,
  "src/base/support": ["src/base"],
  "src/base/wire": ground,
  "src/base/sockets": ["src/base/wire", ...ground],
  "src/base/http": ["src/base/sockets", ...ground],
  "src/base/storage": ground,
  "src/base/postgres": ["src/base/sockets", ...ground],
  "src/base/config": ["src/base/sockets", ...ground],
  "src/base/schedule": ground,
  "src/base/process": ground,
  "src/base/process/proc": ["src/base/process", ...ground],
  "src/base/process/spawn": ["src/base/process/proc", "src/base/process", ...ground],
  "src/base/process/guard": ["src/base/process/spawn", "src/base/process/proc", "src/base/process", ...ground],
  "src/base/process/supervise": [
    "src/base/process/guard",
    "src/base/process/spawn",
    "src/base/process/proc",
    "src/base/process",
    ...ground,
  ],
  "src/base/terminal": [
    "src/base/rows",
    "src/base/process/spawn",
    "src/base/process",
    "src/base/config",
    "src/base/sockets",
    "src/base/http",
    ...ground,
  ],

  "src/protocols/zookeeper/jute": ["src/base/wire", ...ground],
  "src/protocols/zookeeper": ["src/protocols/zookeeper/jute", "src/base/wire", "src/base/sockets", ...ground],
  "src/protocols/zeromq/zmtp": ["src/base/wire", ...ground],
  "src/protocols/zeromq": [
    "src/protocols/zeromq/zmtp",
    "src/base/wire",
    "src/base/sockets",
    "src/base/storage",
    ...ground,
  ],
  "src/protocols/kafka": ["src/base/wire", "src/base/sockets", ...ground],

  "src/coordination/nodes": [...zooKeeper, "src/base/process", "src/base/rows", ...ground],
  "src/coordination/settings": ["src/base/config", ...ground],
  "src/coordination/connect": [
    "src/coordination/settings",
    "src/coordination/keeper/lifecycle",
    "src/protocols/zookeeper",
    "src/base/terminal",
    "src/base/sockets",
    "src/base/config",
    ...ground,
  ],
  "src/coordination/lock": ["src/coordination/nodes", ...zooKeeper, "src/base/process", ...ground],
  "src/coordination/interop": recipe,
  "src/coordination/election": recipe,
  "src/coordination/history": recipe,
  "src/coordination/tick": ["src/coordination/history", "src/base/schedule", ...recipe],
  "src/coordination/barrier": recipe,
  "src/coordination/pool": [
    "src/coordination/job",
    "src/coordination/connect",
    "src/base/process/*",
    "src/base/terminal",
    ...recipe,
  ],
  "src/coordination/fence": ["src/base/process/*", "src/base/storage", ...recipe],
  "src/coordination/hold": ["src/base/process/*", "src/base/sockets", ...ground],
  "src/coordination/cron": [
    ...["job", "tick", "history", "connect", "settings"].map((name) => `src/coordination/${name}`),
    "src/base/process/*",
    "src/base/schedule",
    "src/base/terminal",
    "src/base/config",
    ...recipe,
  ],
  "src/coordination/admin": [
    ...["election", "barrier", "pool", "interop"].map((name) => `src/coordination/${name}`),
    ...recipe,
  ],
  "src/coordination/view": [
    ...["admin", "history", "tick", "pool"].map((name) => `src/coordination/${name}`),
    "src/base/terminal",
    ...recipe,
  ],
  "src/coordination/keeper/state": ["src/protocols/zookeeper/jute", "src/base/wire", ...ground],
  "src/coordination/keeper/storage": [
    "src/coordination/keeper/state",
    "src/protocols/zookeeper/jute",
    "src/base/wire",
    "src/base/storage",
    ...ground,
  ],
  "src/coordination/keeper/protocol": [
    "src/coordination/keeper/state",
    "src/protocols/zookeeper/jute",
    "src/base/wire",
    "src/base/sockets",
    ...ground,
  ],
  "src/coordination/keeper/lifecycle": [
    "src/coordination/keeper/*",
    "src/protocols/zookeeper/jute",
    "src/base/wire",
    "src/base/sockets",
    ...ground,
  ],

  "src/pubsub": ["src/pubsub/wire", "src/protocols/zeromq/*", ...ground],
  "src/pubsub/settings": ["src/base/config", ...ground],
  "src/pubsub/wire": ["src/base/wire", ...ground],
  "src/pubsub/client": [
    "src/pubsub",
    "src/pubsub/wire",
    "src/protocols/zeromq/*",
    "src/base/wire",
    "src/base/storage",
    ...ground,
  ],
  // A topic store, from the ground up. Each room may import the rooms above its line; `store` itself is the way in.
  "src/pubsub/store/operations": ["src/pubsub/wire"],
  "src/pubsub/store/limits": ["src/pubsub/store/operations", "src/pubsub/wire", "src/base/storage"],
  "src/pubsub/store/decisions": [...storeRooms("limits"), "src/pubsub/wire"],
  "src/pubsub/store/rows": [...storeRooms("decisions"), "src/pubsub/wire", "src/base/storage", ...ground],
  "src/pubsub/store/content": [...storeRooms("rows"), "src/pubsub/wire", "src/base/storage", ...ground],
  "src/pubsub/store/clients": [...storeRooms("content"), "src/pubsub/wire", "src/base/storage", ...ground],
  "src/pubsub/store/engine": [...storeRooms("clients"), "src/pubsub/wire", "src/base/storage", ...ground],
  "src/pubsub/store/transfer": [...storeRooms("engine"), "src/pubsub/wire", "src/base/storage", ...ground],
  "src/pubsub/store/thread": [
    ...storeRooms("transfer"),
    "src/pubsub",
    "src/pubsub/wire",
    "src/base/storage",
    "src/base/wire",
    ...ground,
  ],
  "src/pubsub/store/sqlite": [...storeRooms("thread"), "src/pubsub/wire", "src/base/storage", ...ground],
  "src/pubsub/store": [...storeRooms("sqlite"), "src/pubsub/wire", "src/base/storage", ...ground],
  "src/pubsub/store/postgres": [
    ...storeRooms("thread"),
    "src/pubsub/store",
    "src/pubsub/wire",
    "src/base/postgres",
    "src/base/storage",
    ...ground,
  ],
  "src/pubsub/ownership": [
    "src/pubsub/store/operations",
    "src/pubsub",
    "src/pubsub/wire",
    "src/coordination/nodes",
    "src/protocols/zookeeper",
    ...ground,
  ],
  "src/pubsub/server": [
    ...["operations", "limits", "thread"].map((name) => `src/pubsub/store/${name}`),
    "src/pubsub/store",
    "src/pubsub/ownership",
    "src/pubsub",
    "src/pubsub/wire",
    "src/protocols/zeromq/*",
    "src/protocols/zookeeper",
    "src/coordination/nodes",
    "src/base/wire",
    "src/base/storage",
    ...ground,
  ],
  "src/pubsub/proxy": [
    "src/pubsub/ownership",
    "src/pubsub",
    "src/pubsub/wire",
    "src/protocols/zeromq/*",
    "src/protocols/zookeeper",
    "src/coordination/nodes",
    "src/base/wire",
    ...ground,
  ],
  "src/pubsub/admin": [
    "src/pubsub/ownership",
    "src/pubsub",
    "src/pubsub/wire",
    "src/protocols/zeromq/*",
    "src/protocols/zookeeper",
    "src/coordination/nodes",
    ...ground,
  ],

  "src/pubsub/view": [
    "src/pubsub/admin",
    "src/pubsub/ownership",
    "src/pubsub/store/operations",
    "src/coordination/nodes",
    "src/protocols/zookeeper",
    "src/base/rows",
  ],

  "src/retry": ground,
  "src/retry/settings": ["src/base/config", ...ground],
  "src/retry/queue": [
    "src/retry/queue/*",
    "src/retry/settings",
    "src/base/storage",
    "src/base/postgres",
    "src/base/process",
    "src/base/config",
    ...ground,
  ],
  "src/retry/queue/sqlite": ["src/retry/queue", "src/base/storage", "src/base/process", ...ground],
  "src/retry/queue/postgres": ["src/retry/queue", "src/base/postgres", ...ground],
  "src/retry/targets": [
    "src/retry",
    "src/retry/queue/*",
    "src/pubsub/client",
    "src/base/http",
    "src/base/process/*",
    ...ground,
  ],
  "src/retry/dead_letters": [
    "src/retry",
    "src/retry/settings",
    "src/retry/queue/*",
    "src/retry/targets",
    "src/pubsub/client",
    "src/protocols/kafka",
    "src/base/rows",
    "src/base/storage",
    "src/base/config",
    "src/base/process/*",
    "src/base/sockets",
    ...ground,
  ],
  "src/retry/processor": [
    "src/retry/*",
    "src/pubsub/client",
    "src/base/terminal",
    "src/base/config",
    "src/base/schedule",
    "src/base/process/*",
    "src/base/sockets",
    "src/base/http",
    ...ground,
  ],
  "src/retry/http_proxy": [
    "src/retry/queue/*",
    "src/retry/targets",
    "src/retry/settings",
    "src/base/config",
    "src/base/http",
    "src/base/sockets",
    "src/base/process/supervise",
    ...ground,
  ],

  "src/retry/view": [
    "src/retry/queue/*",
    "src/retry/dead_letters",
    "src/retry/settings",
    "src/base/rows",
    "src/base/config",
    ...ground,
  ],

  "src/operator": ["src/base/*"],
  "src/operator/lists": ["src/base/rows", "src/base/sockets", ...ground],
  "src/operator/ui": ["src/base/rows", ...ground],
  "src/operator/page": ["src/operator/ui", "src/base/rows", ...ground],

  "src/library": [
    "src/base/*",
    "src/protocols/zookeeper",
    "src/protocols/zeromq",
    "src/coordination/*",
    "src/pubsub/*",
    "src/retry/*",
  ],

  "src/coordination/job": [
    "src/coordination/connect",
    "src/coordination/settings",
    "src/coordination/history",
    "src/coordination/tick",
    "src/coordination/barrier",
    "src/base/process/*",
    "src/base/terminal",
    "src/base/config",
    ...recipe,
  ],
  commands: [
    "commands/program/help",
    "src/base/*",
    ...front,
    "src/protocols/zookeeper",
  ],
  // The list of products, and the entry, whose guard ends sessions and keeps them.
  "commands/products.ts": ["commands", "commands/program/*", "src/base/*", ...registrations],
  "commands/main.ts": [
    "commands",
    "commands/command_line.ts",
    "src/base/*",
    "src/protocols/zookeeper",
    "src/coordination/job",
  ],
  "commands/command_line.ts": ["commands", "commands/products.ts", "commands/program/*", "src/base/*"],
  "commands/json_shapes": ["src/base/rows"],
  "commands/program": [...command, "src/coordination/connect", "src/coordination/settings"],
  "commands/program/completion": [
    ...command,
    "commands/program/*",
    "src/coordination/connect",
    "src/coordination/settings",
    "src/protocols/zookeeper",
  ],
  "commands/program/help": [...command, "src/coordination/settings"],
  "commands/coordination": [...command, "commands/coordination/*", "src/coordination/*", ...zooKeeper],
  ...Object.fromEntries(
    ["coordination", "pubsub", "retry", "operator"].map((name) => [
      `commands/${name}/${name}_product.ts`,
      ["commands", `commands/${name}/*`, `src/${name}/*`],
    ]),
  ),
  ...Object.fromEntries(
    ["barrier", "check", "cron", "election", "fence", "hold", "keeper", "lock", "looking", "pool"].map((
      name,
    ) => [
      `commands/coordination/${name}`,
      [...command, "commands/coordination", "src/coordination/*", ...zooKeeper],
    ]),
  ),
  "commands/pubsub": [...command, ...front, "src/pubsub/*", "src/protocols/zeromq", "src/protocols/zookeeper"],
  "commands/retry": [...command, ...front, "src/retry/*", "src/pubsub/client", "src/protocols/zookeeper"],
  "commands/operator": [...command, ...front, "src/operator/*", "src/protocols/zookeeper"],
};

/** Forbidden imports between folders that still exist. A number here may only decrease. */
const breaksLeft: Readonly<Record<string, number>> = {
  "commands/pubsub -> src/coordination/job": 1,
  "commands/pubsub -> src/coordination/keeper/lifecycle": 1,
  "commands/retry -> commands/pubsub": 2,
  "commands/retry -> src/coordination/job": 1,
  "commands/retry -> src/pubsub/settings": 1,
  "src/retry/targets -> src/pubsub/wire": 1,
};

/** Packages and built-ins that only some files may import, and why. */
const keptIn: readonly { specifier: RegExp; where: RegExp; why: string }[] = [
  { specifier: /^node:(net|tls)$/, where: /^src\/base\/sockets\//, why: "bytes move in src/base/sockets alone" },
  {
    specifier: /^zod(\/|$)/,
    where: /^(src\/(base\/config|\w+\/settings)|commands\/json_shapes)\//,
    why: "values from outside are checked where settings are, and what is printed is declared in commands/json_shapes",
  },
  {
    specifier: /^@noble\/ciphers\//,
    where: /^src\/protocols\/zeromq\/zmtp\/curve_(box|traffic)\.ts$/,
    why: "the cipher is called from two files of CURVE alone",
  },
  { specifier: /^smol-toml$/, where: /^src\/base\/config\//, why: "files are read in src/base/config alone" },
  {
    specifier: /^bun$/,
    where: /^src\/base\/(sockets|process\/spawn)\//,
    why: "a runtime's own functions stand behind an interface",
  },
  {
    specifier: /^pg(\/|$)/,
    where: /^src\/base\/postgres\//,
    why: "one module knows what a lost connection means for a statement",
  },
  {
    specifier: /^(preact|@preact\/signals)(\/|$)/,
    where: /^src\/operator\/page\//,
    why: "it is for the page of baton ui, which runs in a browser",
  },
  { specifier: /^bun:ffi$/, where: /^src\/base\/process\/libc\.ts$/, why: "libc is called from one file" },
];

/** The encoding of the protocol, which only the keeper may import in coordination. */
const bytes = /^src\/(base\/wire\/.*|protocols\/zookeeper\/jute\/session_frames)\.ts$/;
const knowsBytes = /^src\/coordination\/keeper\//;

/**
 * Returns the folder of a file of the product, or the file if the table has a row for it; null for tests and scripts,
 * which may import anything.
 */
function layerOf(path: string): string | null {
  if (!/^(commands|src)\//.test(path)) return null;
  return Object.hasOwn(mayImport, path) ? path : posix.dirname(path);
}

function allows(allowed: readonly string[], layer: string): boolean {
  return allowed.some((name) => name.endsWith("/*") ? `${layer}/`.startsWith(name.slice(0, -1)) : name === layer);
}

/**
 * Returns the findings of `checkLayers` without the known ones, and a finding for each known number that is too high.
 */
export function checkBreaks(files: readonly SourceFile[], known: KnownCounts = breaksLeft): Finding[] {
  const keyOf = ({ message }: Finding): string | null => {
    const [, from, to] = /^(\S+) must not import (\S+): imports point down/.exec(message) ?? [];
    return from === undefined || to === undefined ? null : `${from} -> ${to}`;
  };
  return checkCounted(files.flatMap(checkLayers), known, { keyOf, list: "scripts/tidy/layers.ts", noun: "break" });
}

/** Checks the order of the layers, and imports that only some files may have. */
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
  return listImports(file).filter(({ specifier }) => !/^(\.\.\/)+package\.json$/.test(specifier)).flatMap(
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
  if (layer.startsWith("src/coordination/") && !knowsBytes.test(`${layer}/`) && bytes.test(path)) {
    return "coordination uses nodes, never bytes";
  }
  if (target === layer || (target !== null && allows(allowed, target))) return null;
  return `${layer} must not import ${target ?? "tests or scripts"}: imports point down, never up`;
}

/**
 * Finds files that import each other in a circle, including types. Returns one finding for each circle, at its first
 * file.
 */
export function checkCycles(files: readonly SourceFile[]): Finding[] {
  const product = new Map(
    files.filter((file) => layerOf(file.path) !== null).map((file) => [
      file.path,
      listImports(file).filter(({ specifier }) => specifier.startsWith("."))
        .map(({ specifier }) => posix.join(posix.dirname(file.path), specifier)),
    ]),
  );
  return stronglyConnected(product).map((circle) => circle.sort())
    .map((circle) => ({ path: circle[0] ?? "", line: 1, message: `imports go in a circle: ${circle.join(", ")}` }));
}

/**
 * Returns the groups of two or more nodes that reach each other. R. Tarjan, "Depth-first search and linear graph
 * algorithms", 1972.
 */
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

/** Checks that a file's name says what it contains, and that it is unique. */
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

/** Where a runtime's own functions may be used: behind an interface that node: built-ins also implement. */
const runtimeFolders = /^src\/base\/(sockets\/|process\/(spawn|proc|guard)\/|process\/libc\.ts$|support\/digest\.ts$)/;

/** Where a process may exit: its entry, and the module that ends it by a signal. */
const mayExit = /^(commands\/main|src\/library\/keeper_process|src\/base\/process\/supervise\/signal_source)\.ts$/;

/** Where stdout and stderr may be written: in modules that never block. */
const mayWrite = /^src\/base\/terminal\/(output_writer|drain_output)\.ts$/;

/** Checks that a runtime's own functions, output and exits are used only where they may be. */
export function checkPlaces(file: SourceFile): Finding[] {
  if (layerOf(file.path) === null) return [];
  const findings: Finding[] = [];
  if (!runtimeFolders.test(file.path)) {
    const message =
      "Bun and Deno are named in src/base/sockets, src/base/process and digest.ts alone: use node: built-ins";
    findings.push(...findInCode(file, /(?<![\w.])(Bun|Deno)\./, message));
  }
  if (!file.path.startsWith("src/operator/page")) {
    const message =
      "requests are sent by src/base/http/http_client.ts: fetch unpacks, repeats, and obeys variables of its own";
    findings.push(...findInCode(file, /(?<![\w.#]|async )fetch\(/, message));
  }
  if (file.path.startsWith("src/base/postgres/")) {
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
  if (file.path.startsWith("commands/") && file.path !== "src/base/exit_codes.ts") {
    const message = "exit numbers are chosen in src/base/exit_codes.ts alone: use the name";
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

/** Returns the package of a specifier: `zod` for `zod/mini`, `@noble/ciphers` for `@noble/ciphers/salsa.js`. */
function packageOf(specifier: string): string {
  return specifier.split("/").slice(0, specifier.startsWith("@") ? 2 : 1).join("/");
}

/** Finds dependencies that the product does not import. */
export function checkDependencies(packageJson: string, files: readonly SourceFile[]): Finding[] {
  const { dependencies } = JSON.parse(packageJson) as { dependencies: Record<string, string> };
  const product = files.filter((file) => layerOf(file.path) !== null);
  const imported = new Set(product.flatMap(listImports).map(({ specifier }) => packageOf(specifier)));
  return Object.keys(dependencies).filter((name) => !imported.has(name)).map((name) => ({
    path: "package.json",
    line: 1,
    message: `nothing imports "${name}"`,
  }));
}
