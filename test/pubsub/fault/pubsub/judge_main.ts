/**
 * Judges a history that was kept: `bun test/pubsub/fault/pubsub/judge_main.ts FOLDER [--may-lose]`, the latter for an
 * asynchronous database. Ends with 1 when something is not as it must be.
 */
import process from "node:process";
import { readHistory } from "./history_file.ts";
import { judge, verdictText } from "./judge.ts";

const verdict = judge(readHistory(process.argv[2] ?? ""), undefined, { mayLose: process.argv.includes("--may-lose") });
console.log(verdictText(verdict));
process.exit(verdict.violations.length === 0 ? 0 : 1);
