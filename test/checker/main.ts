/**
 * `bun test/checker/main.ts FILE…`: judges histories. Exit code 0 when all is linearizable, 1 for a violation, 2 when
 * something is undecided.
 */
import { readFileSync } from "node:fs";
import process from "node:process";
import { checkHistory } from "./check_history.ts";
import { readHistoryLines } from "./history_lines.ts";
import { verdictLine } from "./verdict_line.ts";

const files = process.argv.slice(2);
if (files.length === 0 || files.some((file) => file.startsWith("-"))) {
  console.error("usage: bun test/checker/main.ts FILE…; a file has the lines that scripts/fault writes with --keep");
  process.exit(64);
}

let code = 0;
for (const file of files) {
  try {
    const verdict = checkHistory(readHistoryLines(readFileSync(file, "utf8")));
    for (const { why } of [...verdict.violated, ...verdict.undecided]) console.log(why);
    console.log(`${file}: ${verdictLine(verdict)}`);
    if (verdict.violated.length > 0) code = 1;
    else if (verdict.undecided.length > 0 && code === 0) code = 2;
  } catch (thrown) {
    console.error(`${file}: ${thrown instanceof Error ? thrown.message : thrown}`);
    process.exit(65);
  }
}
process.exit(code);
