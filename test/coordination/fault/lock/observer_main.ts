/** The observer as a process of its own: lines of JSON in (what to watch), lines of JSON out (what was seen). */
import { setPriority } from "node:os";
import process from "node:process";
import { createInterface } from "node:readline";
import { Observer } from "./observer.ts";
import type { ObserverOrder, ObserverReport } from "./observer_process.ts";

const lookEveryMs = 1;

try {
  setPriority(-15); // it must see what happens on a machine that is busy with what it looks at
} catch {
  // Only root may; the longest gap between two looks is reported in any case.
}

const say = (report: ObserverReport) => process.stdout.write(`${JSON.stringify(report)}\n`);
const observer = new Observer((section) => say({ kind: "section", section }));

const lines = createInterface({ input: process.stdin });
lines.on("line", (line) => {
  const order = JSON.parse(line) as ObserverOrder;
  if (order.kind === "watch") observer.watch(order.group, order.name, order.path);
  else if (order.kind === "forget") observer.forget(order.group);
  else say({ kind: "now", id: order.id, nowMs: performance.now(), longestGapMs: observer.longestGapMs });
});
lines.on("close", () => process.exit(0));
setInterval(() => observer.look(performance.now()), lookEveryMs);
