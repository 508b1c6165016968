/** Lists the functions of a part of a call, from the records of its processes and threads. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { ObservedPart } from "./calls.ts";
import type { InstrumentedCopy, InstrumentedFunction } from "./instrumented_copy.ts";
import type { WayRecord } from "./recorder.ts";

export interface Way {
  readonly name: string;
  /** In the order of their first calls. */
  readonly functions: readonly InstrumentedFunction[];
  /** The files of these functions, in the same order. */
  readonly files: readonly string[];
  /** The other files that the program has loaded. */
  readonly idleFiles: readonly string[];
}

export function listWay(part: ObservedPart, { functions, files }: InstrumentedCopy, folder: string): Way {
  const records = readdirSync(folder).map((name) => JSON.parse(readFileSync(join(folder, name), "utf8")) as WayRecord)
    .filter(({ words }) => words.join(" ").startsWith(part.words));
  if (records.length === 0) throw new Error(`No record of "${part.words}"`);
  const calls = records.flatMap(({ calls }) => pairsOf(calls)).sort(([, a], [, b]) => a - b);
  const used = new Set(calledNumbers(calls, functions, part));
  const list = [...used].map((number) => functions[number]).filter((one) => one !== undefined);
  const loaded = records.flatMap((record) => record.files.map((number) => files[number] ?? ""));
  return wayOf(part.name, list, loaded);
}

/** Leaves out what only one of two runs of a call did, such as the work of a timer on a busy machine. */
export function commonWay(one: Way, other: Way): Way {
  const common = one.functions.filter((each) => other.functions.includes(each));
  return wayOf(one.name, common, [...one.files, ...one.idleFiles]);
}

function wayOf(name: string, functions: readonly InstrumentedFunction[], loaded: readonly string[]): Way {
  const files = new Set(functions.map(({ file }) => file));
  const idleFiles = [...new Set(loaded)].filter((file) => !files.has(file));
  return { name, functions, files: [...files], idleFiles };
}

function calledNumbers(
  calls: readonly (readonly [number, number])[],
  functions: readonly InstrumentedFunction[],
  { fromMs = 0, toMs = Infinity, until }: ObservedPart,
): number[] {
  const inPart = calls.filter(([, atMs]) => atMs >= fromMs && atMs <= toMs).map(([number]) => number);
  if (until === undefined) return inPart;
  const before = new Set(calls.filter(([, atMs]) => atMs < fromMs).map(([number]) => number));
  const end = inPart.findIndex((number) => functions[number]?.name === until);
  if (end === -1) throw new Error(`${until} was not called`);
  return inPart.slice(0, end).filter((number) => !before.has(number));
}

function pairsOf(calls: readonly number[]): [number, number][] {
  const pairs: [number, number][] = [];
  for (let at = 0; at + 1 < calls.length; at += 2) pairs.push([calls[at] ?? 0, calls[at + 1] ?? 0]);
  return pairs;
}
