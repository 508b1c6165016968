import { expect, test } from "bun:test";
import {
  KeeperCommitQueue,
  type PendingKeeperReply,
} from "../../../../../src/coordination/keeper/protocol/group_commit_queue.ts";

/** A disk that finishes when told, a state that is a flag, and recipients that write down what they are given. */
function stages() {
  const told: string[] = [];
  const commits: { done: () => void; failed: (error: Error) => void }[] = [];
  const control = { changed: false, quiet: false, told, commits, failures: [] as unknown[] };
  const subject = new KeeperCommitQueue({
    hasChanges: () => control.changed || control.quiet,
    hasUrgentChanges: () => control.changed,
    commit: () => {
      control.changed = false;
      return new Promise((done, failed) => commits.push({ done, failed }));
    },
    failed: (error) => control.failures.push(error),
  });
  const recipient = (name: string) => ({
    deliver: ({ writer }: PendingKeeperReply) => told.push(`${name}: ${new TextDecoder().decode(writer.finish())}`),
  });
  return { ...control, control, subject, a: recipient("a"), b: recipient("b") };
}
const say = (staged: PendingKeeperReply, text: string) => staged.writer.raw(new TextEncoder().encode(text));

test("what depends on nothing goes out at the end of the turn", () => {
  const { subject, a, told, commits } = stages();
  say(subject.enqueue(a), "x");
  expect(told).toEqual([]);
  subject.flush();
  expect(told).toEqual(["a: x"]);
  expect(commits.length).toBe(0);
});

test("a write is answered when it is on the disk, and so is a read that saw it", async () => {
  const { subject, control, a, b, told, commits } = stages();
  control.changed = true;
  say(subject.enqueue(a), "written");
  subject.flush();
  say(subject.enqueue(b), "read");
  subject.flush();
  expect(told).toEqual([]);
  commits[0]?.done();
  await Promise.resolve();
  expect(told).toEqual(["a: written", "b: read"]);
});

test("what happens while a commit runs shares the next one", async () => {
  const { subject, control, a, b, told, commits } = stages();
  control.changed = true;
  say(subject.enqueue(a), "1");
  subject.flush();
  for (const text of ["2", "3"]) {
    control.changed = true;
    say(subject.enqueue(b), text);
    subject.flush();
  }
  expect(commits.length).toBe(1);
  commits[0]?.done();
  await Promise.resolve();
  expect(told).toEqual(["a: 1"]);
  expect(commits.length).toBe(2);
  commits[1]?.done();
  await Promise.resolve();
  expect(told).toEqual(["a: 1", "b: 23"]);
});

test("a ping is answered while a commit runs, but never before what the same client asked earlier", async () => {
  const { subject, control, a, b, told, commits } = stages();
  control.changed = true;
  say(subject.enqueue(a), "write,");
  subject.flush();
  say(subject.enqueueUnconditional(a), "ping");
  say(subject.enqueueUnconditional(b), "ping");
  subject.flush();
  expect(told).toEqual(["b: ping"]);
  commits[0]?.done();
  await Promise.resolve();
  expect(told).toEqual(["b: ping", "a: write,ping"]);
});

test("when a commit fails, nothing that depended on it is ever said", async () => {
  const { subject, control, a, b, told, commits, failures } = stages();
  control.changed = true;
  say(subject.enqueue(a), "1");
  subject.flush();
  control.changed = true;
  say(subject.enqueue(b), "2");
  commits[0]?.failed(new Error("disk full"));
  await Promise.resolve();
  await Promise.resolve();
  subject.flush();
  expect(told).toEqual([]);
  expect(failures.length).toBe(1);
  expect(commits.length).toBe(1);
});

test("who asked is told first, then who only hears of it, and who leaves last", async () => {
  const { subject, control, a, b, told, commits } = stages();
  const c = { deliver: () => told.push("c") };
  control.changed = true;
  Object.assign(subject.enqueue(a), { replies: 1, last: true });
  subject.enqueue(b);
  subject.enqueue(c).replies++;
  subject.flush();
  commits[0]?.done();
  await Promise.resolve();
  expect(told).toEqual(["c", "b: ", "a: "]);
});

test("what nobody has to wait for is stored with the next commit, or when it is time", async () => {
  const { subject, control, a, b, told, commits } = stages();
  control.quiet = true;
  say(subject.enqueue(a), "welcome");
  subject.flush();
  expect([told, commits.length]).toEqual([["a: welcome"], 0]);
  subject.commitRest();
  expect(commits.length).toBe(1);
  subject.commitRest();
  control.changed = true;
  say(subject.enqueue(b), "written");
  subject.flush();
  expect(commits.length).toBe(1);
  control.quiet = false;
  commits[0]?.done();
  await Promise.resolve();
  commits[1]?.done();
  await Promise.resolve();
  subject.commitRest();
  expect([told, commits.length]).toEqual([["a: welcome", "b: written"], 2]);
});
