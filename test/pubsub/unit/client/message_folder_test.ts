/**
 * Files exactly once: a process that is killed before every single step, and a consumer that takes files away at once.
 */
import { afterEach, beforeEach, expect, setDefaultTimeout, test } from "bun:test";
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { ClientState } from "../../../../src/pubsub/client/client_state.ts";
import { MessageFolder, recoverMessageFolder } from "../../../../src/pubsub/client/message_folder.ts";
import { systemClock } from "../../../../src/base/support/clock.ts";

setDefaultTimeout(120_000);

let root: string;
beforeEach(() => root = mkdtempSync(join(tmpdir(), "baton-out-")));
afterEach(() => rmSync(root, { recursive: true, force: true }));

const program = join(import.meta.dirname, "../../../support/out_folder_program.ts");
const deliver = (name: string, killAt: string) =>
  spawnSync(process.execPath, [program, join(root, name, "state"), join(root, name, "inbox"), killAt]);

/** What a consumer finds, and takes away at once. */
function take(name: string): string[] {
  const inbox = join(root, name, "inbox");
  mkdirSync(inbox, { recursive: true });
  return readdirSync(inbox).filter((file) => /^\d+$/.test(file)).sort().map((file) => {
    const body = readFileSync(join(inbox, file), "utf8");
    rmSync(join(inbox, file));
    return body;
  });
}

const steps = [
  ...[1, 2, 3].map((id) => `write ${id}`),
  "flush parts",
  "intent",
  ...[1, 2, 3].map((id) => `rename ${id}`),
  "flush names",
  "cursor",
  "done",
];

test("killed before any step, and again during the recovery, each message is found once", () => {
  for (const first of steps) {
    for (const second of ["-", "rename 2", "rename 3", "flush names", "cursor"]) {
      const name = `${first} then ${second}`.replaceAll(" ", "_");
      const killed = deliver(name, first);
      expect({ name, signal: killed.signal }).toEqual({ name, signal: "SIGKILL" });
      const found = take(name);
      deliver(name, second);
      found.push(...take(name));
      const last = deliver(name, "-");
      expect({ name, status: last.status, stderr: last.stderr.toString() }).toEqual({ name, status: 0, stderr: "" });
      found.push(...take(name));
      expect({ name, found }).toEqual({ name, found: ["body 1", "body 2", "body 3"] });
    }
  }
});

test("the folder belongs to one client and topic, and is not made up when it is gone", async () => {
  using state = await ClientState.open(join(root, "state"), "alice", { waitMs: 0, clock: systemClock() });
  const inbox = join(root, "inbox");
  new MessageFolder(inbox, { state, topic: "news" });
  new MessageFolder(inbox, { state, topic: "news" });
  expect(() => new MessageFolder(inbox, { state, topic: "else" })).toThrow("belongs to");
  state.setPosition("news", { cursor: 3, intent: 5, folder: inbox });
  rmSync(inbox, { recursive: true });
  expect(() => recoverMessageFolder({ state, topic: "news" })).toThrow(/Cannot finish .* if it is lost, use seek/);
  expect(state.subscriberPosition("news").cursor).toBe(3);
});

test("what was written before the disk had no more room is delivered, and the rest comes again", async () => {
  using state = await ClientState.open(join(root, "state"), "alice", { waitMs: 0, clock: systemClock() });
  const folder = new MessageFolder(join(root, "full", "inbox"), { state, topic: "news" });
  const messages = [1, 2, 3, 4].map((id) => ({ id, body: new TextEncoder().encode(`body ${id}`) }));
  const obstacle = join(folder.path, "3.part");
  mkdirSync(obstacle);
  expect(() => folder.deliver(messages)).toThrow("Cannot write messages");
  expect(take("full")).toEqual(["body 1", "body 2"]);
  expect(state.subscriberPosition("news")).toEqual({ cursor: 2, intent: 2, folder: null });
  rmSync(obstacle, { recursive: true });
  folder.deliver(messages.slice(2));
  expect(take("full")).toEqual(["body 3", "body 4"]);
});

test("a link that is changed later changes nothing: messages are where it led when the folder was opened", async () => {
  using state = await ClientState.open(join(root, "state"), "alice", { waitMs: 0, clock: systemClock() });
  const link = join(root, "link");
  const other = join(root, "other", "inbox");
  mkdirSync(join(root, "first", "inbox"), { recursive: true });
  new MessageFolder(other, { state, topic: "news" });
  symlinkSync(join(root, "first", "inbox"), link);
  const onStep = (step: string) => {
    if (step !== "rename 1") return;
    rmSync(link);
    symlinkSync(other, link);
  };
  new MessageFolder(link, { state, topic: "news", onStep }).deliver([{
    id: 1,
    body: new TextEncoder().encode("body 1"),
  }]);
  expect([take("first"), take("other")]).toEqual([["body 1"], []]);
});

test("what a kill left half written is no message of the recovery if the client has gone elsewhere", async () => {
  using state = await ClientState.open(join(root, "state"), "alice", { waitMs: 0, clock: systemClock() });
  const inbox = join(root, "sought", "inbox");
  new MessageFolder(inbox, { state, topic: "news" });
  // Killed while it wrote, and then: seek news 2. The place is the server's alone.
  writeFileSync(join(inbox, "1.part"), "body 1");
  writeFileSync(join(inbox, "2.part"), "bod");
  state.forgetPosition("news");
  const onStep = (step: string) => {
    if (step === "rename 3") throw new Error("killed");
  };
  const messages = [{ id: 3, body: new TextEncoder().encode("body 3") }];
  expect(() => new MessageFolder(inbox, { state, topic: "news", onStep }).deliver(messages)).toThrow("killed");
  recoverMessageFolder({ state, topic: "news" });
  expect(take("sought")).toEqual(["body 3"]);
});
