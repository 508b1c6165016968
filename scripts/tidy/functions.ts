/** Finds the functions and methods of a formatted TypeScript file, by their indentation. */
import { codeLines, type SourceFile } from "./source_file.ts";

export interface FoundFunction {
  /** `Contender.#request` for a method, `acquireLock` for a function, `outer.inner` for one inside another. */
  readonly name: string;
  /** The first line, counted from 0. */
  readonly start: number;
  /** The line of the closing brace, counted from 0. */
  readonly end: number;
}

const functionStart = /^(\s*)(?:export )?(?:default )?(?:async )?function\*? ?(\w*)/;
const methodStart =
  /^(\s*)(?:(?:static|async|override|get|set|private|protected|public) )*\*?(#?[a-zA-Z]\w*|\[[\w.]+\])[(<]/;
const classStart = /^(\s*)(?:export )?(?:abstract )?class (\w+)/;
const statement = /^\s*(?:if|for|while|switch|catch|return|await|throw|new|super|describe\w*|test)\b/;

export function listFunctions(file: SourceFile): FoundFunction[] {
  const lines = codeLines(file);
  const owners: FoundFunction[] = [];
  const functions: FoundFunction[] = [];
  lines.forEach((text, start) => {
    const ofClass = classStart.exec(text);
    const found = ofClass ?? functionStart.exec(text) ?? (statement.test(text) ? null : methodStart.exec(text));
    if (found === null) return;
    const body = ofClass === null ? bodyAfter(lines, start) : start;
    const end = body === null ? -1 : lines.indexOf(`${found[1]}}`, body);
    if (end < 0) return;
    const owner = owners.findLast((other) => other.start < start && end < other.end);
    const entry = { name: `${owner === undefined ? "" : `${owner.name}.`}${found[2]}`, start, end };
    owners.push(entry);
    if (ofClass === null) functions.push(entry);
  });
  return functions;
}

/** Returns the line whose end opens the body of the function that begins in line `start`; null for a call or a type. */
function bodyAfter(lines: readonly string[], start: number): number | null {
  let depth = 0;
  for (let at = start; at < lines.length; at++) {
    const text = (lines[at] ?? "").replaceAll("=>", "  ");
    const opensBody = text.endsWith(" {");
    for (const sign of opensBody ? text.slice(0, -1) : text) {
      if ("([{<".includes(sign)) depth++;
      else if (")]}>".includes(sign)) depth--;
    }
    if (depth === 0) return opensBody && !(lines[at] ?? "").endsWith("=> {") ? at : null;
    if (depth < 0) return null;
    if (opensBody) depth++;
  }
  return null;
}
