/**
 * Limits how much code a command loads before it begins, because each module and function costs time, used or not. Most
 * modules of Node.js cost more than all of baton's own.
 */
import { posix } from "node:path";
import { codeLines, type Finding, type SourceFile } from "./source_file.ts";

type StartLimits = Readonly<Record<string, { readonly modules: number; readonly kilobytes: number }>>;

/**
 * Files that are loaded at each start of the program, by its guard, and by short commands. A new limit is a decision:
 * measure the start first.
 */
const limits: StartLimits = {
  "commands/command_line.ts": { modules: 122, kilobytes: 406 },
  "src/base/process/guard/guard_main.ts": { modules: 10, kilobytes: 47 },
  "commands/coordination/election/elect.ts": { modules: 125, kilobytes: 412 },
  "commands/coordination/lock/busy_notice_watch.ts": { modules: 43, kilobytes: 121 },
  "commands/coordination/lock/tick_lock.ts": { modules: 50, kilobytes: 174 },
  "commands/pubsub/client.ts": { modules: 156, kilobytes: 505 },
  "commands/pubsub/client_get.ts": { modules: 92, kilobytes: 269 },
  "commands/pubsub/client_put.ts": { modules: 71, kilobytes: 197 },
  "commands/retry/call.ts": { modules: 109, kilobytes: 296 },
};

/** Modules that take from a fifth of a millisecond to three milliseconds to load. Use `process.getBuiltinModule`. */
const slowModules = "buffer|child_process|crypto|https?|net|stream|tls|tty|util|worker_threads|zlib";
const slowImport = new RegExp(
  `^(?:import|export)\\s+(?!type\\s)[^;]*?\\sfrom\\s+"(node:(?:${slowModules})\\b[^"]*)";`,
  "m",
);

/** Returns the files that this one loads when it starts, without types and `import()`. */
export function listLoadedFiles(file: SourceFile): string[] {
  const statements = file.text.matchAll(
    /^(?:import|export)\s+(?!type\s)([^;]*?)\s*from\s+"(\.[^"]+)";|^import\s+"(\.[^"]+)";/gm,
  );
  return [...statements].flatMap(([, names = "", from, whole]) => {
    const items = /^\{([^}]*)\}$/s.exec(names)?.[1]?.split(",").map((item) => item.trim()).filter(Boolean);
    if (items !== undefined && items.length > 0 && items.every((item) => item.startsWith("type "))) return [];
    return [posix.join(posix.dirname(file.path), from ?? whole ?? "")];
  });
}

/** Returns a finding for each entry that loads more than its limit. */
export function checkStartLimits(files: readonly SourceFile[], allowed: StartLimits = limits): Finding[] {
  const byPath = new Map(files.map((file) => [file.path, file]));
  return Object.entries(allowed).flatMap(([path, limit]) => {
    const loaded = new Set<string>();
    const waiting = [path];
    for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
      const file = byPath.get(next);
      if (file === undefined || loaded.has(next)) continue;
      loaded.add(next);
      waiting.push(...listLoadedFiles(file));
    }
    const slow = [...loaded].flatMap((name): Finding[] => {
      const module = slowImport.exec(byPath.get(name)?.text ?? "")?.[1];
      if (module === undefined) return [];
      return [{ path: name, line: 1, message: `${path} loads it at its start, and it loads ${module}, which is slow` }];
    });
    const lines = [...loaded].flatMap((name) => codeLines(byPath.get(name) as SourceFile));
    const kilobytes = Math.ceil(lines.reduce((sum, line) => sum + line.trim().length, 0) / 1000);
    if (loaded.size <= limit.modules && kilobytes <= limit.kilobytes) return slow;
    const message = `it loads ${loaded.size} modules with ${kilobytes} kB of code at its start; the limit is ` +
      `${limit.modules} modules and ${limit.kilobytes} kB: load what only some calls need with import()`;
    return [{ path, line: 1, message }, ...slow];
  });
}
