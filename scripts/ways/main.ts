/** Prints the way of calls, or checks their number of functions and files. scripts/way says how it is used. */
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { BatonSession } from "../../test/support/baton_session.ts";
import { observedCalls } from "./calls.ts";
import { checkWayCeiling } from "./ceilings.ts";
import { makeInstrumentedCopy } from "./instrumented_copy.ts";
import { commonWay, listWay, type Way } from "./list_ways.ts";

const words = process.argv.slice(2);
const isCheck = words[0] === "--check";
const names = words.slice(isCheck ? 1 : 0);
const unknown = names.find((name) => !Object.hasOwn(observedCalls, name));
if (unknown !== undefined || names.length + Number(isCheck) === 0) {
  console.error(`usage: scripts/way [--check] NAME…; NAME is one of: ${Object.keys(observedCalls).join(", ")}`);
  process.exit(64);
}

/** On a busy machine, a call may take a longer way, such as that of a timer that fires. What all runs do counts. */
const runsMax = 8;

/** Instruments the program in `folder`, and returns what observes a call of it. */
async function prepareObservation(folder: string): Promise<(name: string, run: number) => Promise<Way[]>> {
  const copy = await makeInstrumentedCopy(join(import.meta.dir, "../.."), folder);
  const launcher = join(folder, "baton");
  // Commands would report variables that no user of theirs has set.
  const environment = "unset BATON_STATE_DIR; case $1 in pubsub) ;; *) unset BATON_PUBSUB_STATE_DIR ;; esac";
  const program = join(folder, "commands/main.ts");
  writeFileSync(launcher, `#!/bin/sh\n${environment}\nexec '${process.execPath}' '${program}' "$@"\n`);
  chmodSync(launcher, 0o755);
  return async (name, run) => {
    const records = join(folder, `records-${name}-${run}`);
    mkdirSync(records);
    await using session = new BatonSession({ baton: launcher, WAY_RECORDS: records });
    const parts = await observedCalls[name]?.(session) ?? [];
    return parts.map((part) => listWay(part, copy, records));
  };
}

function printWay({ functions, files, idleFiles }: Way): void {
  for (const file of files) {
    const own = functions.filter((one) => one.file === file);
    console.log(`${String(own.length).padStart(4)} ${file}`);
    for (const { name, line } of own) console.log(`       ${name}:${line}`);
  }
  if (idleFiles.length > 0) console.log(`   0 ${idleFiles.join("\n   0 ")}`);
}

const folder = mkdtempSync(join(tmpdir(), "baton-way-"));
try {
  const observe = await prepareObservation(folder);
  for (const name of names.length > 0 ? names : Object.keys(observedCalls)) {
    let ways = await observe(name, 1);
    const findings = () => ways.map(checkWayCeiling).filter((finding) => finding !== null);
    for (let run = 2; run <= runsMax && isCheck && findings().length > 0; run++) {
      const others = await observe(name, run);
      ways = ways.map((way, index) => commonWay(way, others[index] ?? way));
    }
    for (const way of ways) {
      if (!isCheck) printWay(way);
      const { name, functions, files, idleFiles } = way;
      const idle = `${idleFiles.length} more files loaded`;
      console.log(`${name}: ${functions.length} functions of ${files.length} files, ${idle}`);
    }
    if (findings().length === 0) continue;
    console.log(findings().join("\n"));
    process.exitCode = 1;
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}
