/** The full dose: `scripts/fault znode [--rounds N | --minutes M] [--seed S] [--backend NAME] [--keep FOLDER]`. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { parseArgs } from "node:util";
import { historyLines } from "../../../checker/history_lines.ts";
import { verdictLine } from "../../../checker/verdict_line.ts";
import { keeper, zooKeeper, zooKeeperEnsemble } from "../../../support/backends.ts";
import { installedBackends } from "../../../support/dose_arguments.ts";
import { doseLength, doseOptions } from "../../../support/run_rounds.ts";
import { runZnodeRound } from "./round.ts";

const { values } = parseArgs({
  options: { ...doseOptions, backend: { type: "string", multiple: true }, keep: { type: "string" } },
});
const places = installedBackends([keeper, zooKeeper, zooKeeperEnsemble], values.backend);
const { rounds, isOver } = doseLength(values, 12);
const seed = Number(values.seed);
const workMs = 20_000;
if (values.keep !== undefined) mkdirSync(values.keep, { recursive: true });
const total = { violated: 0, undecided: 0, surprises: 0 };
for (let round = 0; round < rounds && !isOver(); round++) {
  const backend = places[round % places.length];
  if (backend === undefined) break;
  const { operations, states, verdict, surprises } = await runZnodeRound({ backend, seed: seed + 100 * round, workMs });
  console.log(`round ${round}: ${backend.name}; ${verdictLine(verdict)}; ${states.length} faults`);
  for (const { why } of [...verdict.violated, ...verdict.undecided]) console.log(why);
  for (const surprise of surprises) console.log(`FAIL ${surprise}`);
  if (values.keep !== undefined) {
    writeFileSync(join(values.keep, `znode-${seed}-${round}.jsonl`), historyLines(operations, states));
  }
  total.violated += verdict.violated.length;
  total.undecided += verdict.undecided.length;
  total.surprises += surprises.length;
}
console.log(
  `\n${total.violated} violated, ${total.undecided} undecided, ${total.surprises} wrong responses\n--seed ${seed}`,
);
process.exit(total.violated + total.surprises > 0 ? 1 : total.undecided > 0 ? 2 : 0);
