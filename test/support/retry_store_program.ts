/**
 * A program that stores messages and claims them, until it is killed: FOLDER NAME. Prints a line for what it was told
 * is durable: `stored ID`, `done SEQ`. Run by tests as a process of its own, several at one store.
 */
import { writeSync } from "node:fs";
import process from "node:process";
import { RetryStore } from "../../src/retry/queue/sqlite/retry_store.ts";
import { rigMessage, rigRules, rigSuccess } from "./retry_rig.ts";

const [folder = "", name = ""] = process.argv.slice(-2);
const say = (line: string) => void writeSync(1, `${line}\n`);
const store = await RetryStore.open(folder, {
  rules: { ...rigRules, maxMessages: 1_000_000, maxBytes: 1 << 30, maxCrashes: 1000 },
  hooks: {
    onBroken: (error) => {
      say(`broken ${error.message}`);
      process.exit(1);
    },
  },
});
const owner = await store.call("register", name, 1000, process.pid, Date.now());
say("open");

async function storing(): Promise<never> {
  for (let count = 0;; count++) {
    const stored = await store.call("accept", [rigMessage(`${name} ${count}`), rigMessage("second")], Date.now());
    for (const { id } of stored) say(`stored ${id}`);
  }
}

async function trying(): Promise<never> {
  for (;;) {
    const { messages } = await store.call("claim", { owner, max: 3, order: "none", nowMs: Date.now() });
    await Promise.all(messages.map(async ({ seq, fence }) => {
      const report = { seq, fence, owner, end: rigSuccess, error: null, nowMs: Date.now() };
      if (await store.call("finish", report) !== null) say(`done ${seq}`);
    }));
  }
}

await Promise.all([storing(), storing(), trying()]);
