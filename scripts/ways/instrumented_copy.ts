/** Makes a copy of baton's source in which each function reports its calls to recorder.ts. */
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import type { Node, SourceFile } from "typescript/unstable/ast";
import { API } from "typescript/unstable/async";

export interface InstrumentedFunction {
  readonly file: string;
  readonly line: number;
  readonly name: string;
}

/** What the numbers in a record mean. */
export interface InstrumentedCopy {
  readonly functions: readonly InstrumentedFunction[];
  readonly files: readonly string[];
}

/** The parts of a function's or a class's node that are read here. */
interface NamedNode extends Node {
  readonly name?: Node;
  readonly body?: Node;
  readonly parameters?: unknown;
  readonly members?: unknown;
}

/** Writes the copy of `root` into `folder`. */
export async function makeInstrumentedCopy(root: string, folder: string): Promise<InstrumentedCopy> {
  const functions: InstrumentedFunction[] = [];
  const files: string[] = [];
  const api = new API({ cwd: root });
  try {
    const snapshot = await api.updateSnapshot({ openProjects: [join(root, "tsconfig.json")] });
    const project = snapshot.getProjects()[0];
    if (project === undefined) throw new Error("TypeScript opened no project");
    for (const path of project.rootFiles) {
      const file = relative(root, path);
      const source = /^(src|commands)\//.test(file) ? await project.program.getSourceFile(path) : undefined;
      if (source === undefined) continue;
      const copy = join(folder, file);
      mkdirSync(dirname(copy), { recursive: true });
      writeFileSync(copy, instrument(source, file, { functions, fileNumber: files.push(file) - 1 }));
    }
  } finally {
    await api.close();
  }
  for (const name of ["node_modules", "package.json", "tsconfig.json"]) {
    symlinkSync(join(root, name), join(folder, name));
  }
  return { functions, files };
}

/** Returns the text of a file with the reports. Lines keep their numbers. Adds the functions to `functions`. */
function instrument(
  source: SourceFile,
  file: string,
  { functions, fileNumber }: { readonly functions: InstrumentedFunction[]; readonly fileNumber: number },
): string {
  const { text } = source;
  const insertions: [number, string][] = [];
  const visit = (node: NamedNode, owner: string, variable: string): void => {
    const ownName = node.name === undefined ? "" : text.slice(node.name.getStart(source), node.name.end);
    let inside = owner;
    if (node.members !== undefined) inside = ownName;
    else if (node.body !== undefined && node.parameters !== undefined) {
      const start = node.body.getStart(source);
      const name = ownName || (node.getStart(source) === start ? "" : variable) || "constructor";
      const isArrow = ownName === "" && text.slice(node.getStart(source), start).includes("=>");
      const label = isArrow ? variable || "(arrow)" : name;
      const line = text.slice(0, node.getStart(source)).split("\n").length;
      const number = functions.push({ file, line, name: owner === "" ? label : `${owner}.${label}` }) - 1;
      if (text[start] === "{") insertions.push([start + 1, `wayCall(${number});`]);
      else insertions.push([start, `(wayCall(${number}),`], [node.body.end, ")"]);
      inside = owner === "" ? label : `${owner}.${label}`;
    }
    node.forEachChild((child) => {
      visit(child as NamedNode, inside, ownName);
      return undefined;
    });
  };
  visit(source as NamedNode, "", "");
  let copy = text;
  // From the end, so that earlier positions stay right.
  for (const [at, insertion] of insertions.sort(([a], [b]) => b - a)) {
    copy = copy.slice(0, at) + insertion + copy.slice(at);
  }
  return `import ${JSON.stringify(join(import.meta.dir, "recorder.ts"))};wayFile(${fileNumber});${copy}`;
}
