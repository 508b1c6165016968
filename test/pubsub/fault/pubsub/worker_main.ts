/**
 * Some clients of a campaign, in a process that may be stopped and killed at any moment: `worker_main.ts PLAN`, a file
 * with a WorkerPlan. On stdin a word a line: `calm` (all is healed: be patient from now on), `end` (no new puts, and
 * find out what became of the old ones), then `drain` (have all that is there, and exit 0). On stdout, as they happen:
 * `count PUT GOT`, `calm` (everybody is), `ended`, `trouble WHY`.
 */
import { readFileSync } from "node:fs";
import process from "node:process";
import { createInterface } from "node:readline";
import { systemClock } from "../../../../src/base/support/clock.ts";
import { consume, type LifeOptions, publish } from "./client_life.ts";
import type { WorkerPlan } from "./crew_plan.ts";
import { HistoryWriter } from "./history_file.ts";

const reportMs = 200;
const plan = JSON.parse(readFileSync(process.argv[2] ?? "", "utf8")) as WorkerPlan;
using writer = new HistoryWriter(plan.history);
let phase: ReturnType<LifeOptions["phase"]> = "work";
let isCalm = false;
const restless = new Set(plan.clients.map(({ id }) => id));
const counts = { put: 0, got: 0 };
const say = (line: string) => process.stdout.write(`${line}\n`);

const options: LifeOptions = {
  clock: systemClock(),
  process: plan.process,
  stateDir: plan.stateDir,
  proxies: plan.proxies,
  writer,
  phase: () => phase,
  counted: (what, messages) => counts[what] += messages,
  isCalm: () => isCalm,
  calmed(client) {
    if (restless.delete(client) && restless.size === 0) say("calm");
  },
  troubled: (why) => say(`trouble ${why}`),
};

const orders = createInterface({ input: process.stdin });
orders.on("line", (word) => {
  if (word === "end" || word === "drain") phase = word;
  if (word === "calm") isCalm = true;
});
// Whoever gives orders is gone: nobody will ask for anything any more.
orders.on("close", () => isOver.value || process.exit(1));
const isOver = { value: false };
const report = () => {
  say(`count ${counts.put} ${counts.got}`);
  if (!isOver.value) systemClock().startTimer(reportMs, report);
};
report();

const of = (role: string) => plan.clients.filter((client) => client.role === role);
const ended = Promise.all(of("publisher").map((client) => publish(client, options))).then(() => say("ended"));
const drained = Promise.all(of("subscriber").map((client) => consume(client, options)));
await Promise.all([ended, drained]);
isOver.value = true;
report();
orders.close();
process.stdin.destroy();
