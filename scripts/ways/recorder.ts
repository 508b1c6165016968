/**
 * Records the calls of each function of one process or thread, in their order. Each file of an instrumented copy
 * imports it first. Writes a file into the folder of `WAY_RECORDS` at the exit; a thread also does so as it runs.
 */
import { writeFileSync } from "node:fs";
import process from "node:process";
import { isMainThread, threadId } from "node:worker_threads";

export interface WayRecord {
  /** The words of the command line, without the runtime and the program. */
  readonly words: readonly string[];
  readonly isMainThread: boolean;
  /** Pairs of a function's number, and the time of the call in milliseconds since 1970. */
  readonly calls: readonly number[];
  readonly files: readonly number[];
}

/** The keeper has none, because baton starts it with an environment of its own. */
const folder = process.env["WAY_RECORDS"];
/** Limits the memory of a process that runs for long. */
const callsMax = 4_000_000;
const calls: number[] = [];
const files: number[] = [];

Object.assign(globalThis, {
  wayCall(number: number): void {
    if (folder !== undefined && calls.length < callsMax) calls.push(number, performance.timeOrigin + performance.now());
  },
  wayFile(number: number): void {
    files.push(number);
  },
});

function write(): void {
  const record: WayRecord = { words: process.argv.slice(2), isMainThread, calls, files };
  writeFileSync(`${folder}/${process.pid}-${threadId}.json`, JSON.stringify(record));
}

if (folder !== undefined) {
  process.on("exit", write);
  if (!isMainThread) setInterval(write, 200).unref();
}
