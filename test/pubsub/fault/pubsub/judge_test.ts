import { expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { dose } from "../../../support/dose.ts";
import { type Invariant, invariants } from "./findings.ts";
import { HistoryWriter, readHistory } from "./history_file.ts";
import { judge, verdictText } from "./judge.ts";
import { hashOf, markedBody, nameIn, putOf } from "./marked_body.ts";
import { Story } from "./story.ts";

const count = dose({ gate: 50_000, full: 1_000_000 });
interface How {
  readonly retains?: boolean;
  readonly keeps?: number;
  readonly mayLose?: boolean;
}

const broken = (story: Story, how: How = {}): string[] =>
  judge(story.history, undefined, how).violations.map(({ invariant }) => invariant);
/** alice is subscribed, and bob has put a1 and a2. */
const told = () => new Story().subscribe("alice").put("bob", "a1", { ids: [1] }).put("bob", "a2", { ids: [2] });

test("a history in which everything is as it must be has no violation, and its figures are right", () => {
  const story = told().subscribe("carol");
  story.get("alice", ["a1:1", "a2:2"]);
  story.put("bob", "a3", { outcome: "unknown" }).put("bob", "a4", { outcome: "fail" });
  story.put("bob", "a5", { outcome: "unknown" });
  for (const client of ["alice", "carol"]) story.get(client, ["a3:3"]);
  story.unsubscribe("carol").put("dan", "d1", { ids: [4] }).subscribe("carol").put("dan", "d2", { ids: [5] });
  story.get("carol", ["d2:5"]);
  story.get("alice", ["d1:4", "d2:5"], { last: 3 });
  story.get("alice", [], { last: 5 });
  const verdict = judge(story.healed().history);
  expect(verdict.violations).toEqual([]);
  expect(verdict).toMatchObject({ lost: 0, duplicated: 0, unexpected: 0, recovered: 1, deliveries: 7, redelivered: 0 });
  expect(verdict.puts).toEqual({ all: 7, ok: 4, fail: 1, unknown: 2 });
  expect(verdictText(verdict)).toContain("lost 0, duplicated 0, unexpected 0, recovered 1");
});

/** For each invariant a history that breaks it, and nothing else. */
const violations: Record<Invariant, () => Story> = {
  lost() {
    const story = told();
    story.get("alice", ["a1:1"]);
    return story;
  },
  "all or none"() {
    const story = told().subscribe("carol").put("bob", "a3", { outcome: "unknown" }).put("bob", "a4", { ids: [4] });
    story.get("alice", ["a1:1", "a2:2", "a3:3", "a4:4"]);
    story.get("carol", ["a4:4"]);
    return story;
  },
  duplicated() {
    const story = told();
    story.get("alice", ["a1:1", "a2:2"]);
    story.get("alice", ["a2:2"], { session: 2 });
    return story;
  },
  "stored twice"() {
    const story = told();
    story.get("alice", ["a1:1", "a2:2", "a1:3"]);
    return story;
  },
  unexpected() {
    const story = told();
    story.get("alice", ["a1:1", "a2:2", "x1:3"]);
    return story;
  },
  corrupted() {
    const story = new Story().subscribe("alice").put("bob", "a1", {}, { puts: [["a1", "another hash"]] });
    story.get("alice", ["a1:1"]);
    return story;
  },
  "fail delivered"() {
    const story = told().put("bob", "a3", { outcome: "fail" });
    story.get("alice", ["a1:1", "a2:2", "a3:3"]);
    return story;
  },
  "before subscription"() {
    const story = told().subscribe("carol");
    story.get("alice", ["a1:1", "a2:2"]);
    story.get("carol", ["a2:2"]);
    return story;
  },
  "old backlog revived"() {
    const story = told();
    story.get("alice", ["a1:1"]);
    story.unsubscribe("alice").subscribe("alice");
    story.get("alice", ["a2:2"]);
    return story;
  },
  "after unsubscribe"() {
    const story = told().unsubscribe("alice");
    story.get("alice", ["a1:1", "a2:2"]);
    return story;
  },
  "subscription lost"() {
    const story = told();
    story.get("alice", ["a1:1", "a2:2"]);
    return story.return(story.invoke({ client: "alice", do: "get" }), { outcome: "fail", status: "NOT_SUBSCRIBED" });
  },
  "publisher order"() {
    const story = new Story().subscribe("alice");
    const [first, second] = [1, 2].map((counter) =>
      story.invoke({ client: "bob", do: "put", counter, puts: [[`a${counter}`, `hash of a${counter}`]] })
    );
    story.return(second as number, { outcome: "ok", ids: [1] }).return(first as number, { outcome: "ok", ids: [2] });
    story.get("alice", ["a2:1", "a1:2"]);
    return story;
  },
  gap() {
    const story = told().put("bob", "a3", { outcome: "fail" }).put("bob", "a4", { ids: [3] });
    story.get("alice", ["a1:1", "a2:2", "a4:3"]);
    return story;
  },
  "subscribers' order"() {
    const story = told();
    story.get("alice", ["a2:2", "a1:1"]);
    return story;
  },
  "real-time order"() {
    const story = new Story().subscribe("alice").put("bob", "b1", { ids: [2] }).put("dan", "d1", { ids: [1] });
    story.get("alice", ["d1:1", "b1:2"]);
    return story;
  },
  "id reused"() {
    const story = told().put("dan", "d1", { ids: [2] });
    story.get("alice", ["a1:1", "a2:2"]);
    return story;
  },
  "same last"() {
    const story = told().put("bob", "a3", { ids: [3] });
    story.get("alice", ["a1:1"]);
    story.get("alice", ["a2:2"], { last: 1, had: false });
    story.get("alice", [], { last: 1 });
    story.get("alice", ["a2:2", "a3:3"], { last: 1 });
    return story;
  },
  hidden() {
    const story = told();
    story.get("alice", [], { last: -1 });
    story.get("alice", ["a1:1", "a2:2"]);
    return story;
  },
  "not marked"() {
    const story = told();
    const n = story.get("alice", ["a1:1", "a2:2"], { had: false });
    story.saw(n, 2);
    story.get("alice", ["a1:1", "a2:2"], { session: 2 });
    return story;
  },
  "one owner"() {
    const story = told().node({ version: 1 }).node({ version: 2, owner: "s2" });
    story.get("alice", ["a1:1", "a2:2"]);
    return story;
  },
  "missed untold"() {
    const story = told().put("bob", "a3", { ids: [3] }).put("bob", "a4", { ids: [4] });
    story.get("alice", ["a1:1"]);
    return story.passedOver("alice", 1, ["a4:4"], 1);
  },
  "handoff"() {
    const story = told().content(1, "as it was").content(2, "otherwise");
    story.get("alice", ["a1:1", "a2:2"]);
    return story;
  },
  "loss named"() {
    const story = told().loss(2);
    story.get("alice", ["a1:1", "a2:2"]);
    return story;
  },
  "given up too early"() {
    const story = told().put("bob", "a3", { ids: [3] }).put("bob", "a4", { ids: [4] });
    story.get("alice", ["a1:1"]);
    return story.passedOver("alice", 1, ["a4:4"], 2);
  },
  "left out by a seek"() {
    const story = new Story().subscribe("alice").subscribe("carol").put("bob", "a1", { ids: [1] });
    story.put("bob", "a2", { ids: [2] }).get("alice", ["a1:1", "a2:2"]);
    story.seek("alice", "start");
    story.get("alice", ["a2:2"]);
    story.get("carol", ["a1:1", "a2:2"]);
    return story;
  },
  "after healing"() {
    const story = told().healed().put("bob", "a3", { outcome: "unknown" });
    story.get("alice", ["a1:1", "a2:2"]);
    return story;
  },
  baseline() {
    const story = told().sample({ of: "s1", when: "baseline", diskBytes: 1000 });
    story.get("alice", ["a1:1", "a2:2"]);
    return story.sample({ of: "s1", when: "end", diskBytes: 1e9 });
  },
};

for (const [invariant, story] of Object.entries(violations)) {
  test(`it is found that ${invariants[invariant as Invariant]}`, () => {
    const retains = invariant === "missed untold" || invariant === "given up too early";
    const found = broken(story(), { retains, keeps: invariant === "given up too early" ? 2 : 0 });
    expect(found).toContain(invariant);
    // Where one thing cannot go wrong without another.
    const company: Partial<Record<Invariant, Invariant[]>> = {
      "stored twice": ["publisher order", "subscribers' order"],
      "old backlog revived": ["lost"],
      "id reused": ["lost"],
      "same last": ["hidden"],
    };
    expect(found.filter((one) => one !== invariant && !company[invariant as Invariant]?.includes(one as Invariant)))
      .toEqual([]);
  });
}

test("what a client gets after it lost its state belongs to its renewed subscription, with a smaller session", () => {
  const story = new Story();
  story.return(story.invoke({ client: "alice", do: "subscribe", session: 3 }), { outcome: "unknown" });
  story.state("alice", "lost").subscribe("alice").put("bob", "a1", { ids: [1] }).put("bob", "a2", { ids: [2] });
  story.get("alice", ["a1:1", "a2:2"]);
  expect(broken(story)).toEqual([]);
});

test("what was not had may come again, marked, with its own id; what was had may not", () => {
  const killed = told();
  const n = killed.get("alice", ["a1:1", "a2:2"], { had: false });
  killed.saw(n, 2).had(n, 1);
  const again = killed.get("alice", ["a2:2"], { session: 2, had: false });
  killed.saw(again, 2, { again: [2] }).had(again, 2);
  expect(broken(killed)).toEqual([]);
  expect(judge(killed.history).redelivered).toBe(1);
  killed.get("alice", ["a2:2"], { session: 3 });
  expect(broken(killed)).toContain("duplicated");
});

test("a client whose state was lost has again what its server was not told of, and no more", () => {
  const lost = () => {
    const story = told().put("bob", "a3", { ids: [3] });
    story.get("alice", ["a1:1"]);
    story.get("alice", ["a2:2"], { last: 1 });
    return story.state("alice", "lost");
  };
  const story = lost();
  story.get("alice", ["a2:2", "a3:3"], { session: 2 });
  expect(broken(story)).toEqual([]);
  story.get("alice", ["a3:3"], { session: 3 });
  expect(broken(story)).toContain("duplicated");
  const further = lost();
  further.get("alice", ["a1:1", "a2:2", "a3:3"], { session: 2 });
  expect(broken(further)).toEqual(["duplicated"]);
});

test("a server that had no message need not know the place any more, one that had a message must", () => {
  const restored = () => {
    const story = told().put("bob", "a3", { ids: [3] });
    story.get("alice", ["a1:1", "a2:2", "a3:3"]);
    story.get("alice", [], { last: 3 });
    return story;
  };
  const polled = restored().state("alice", "restored");
  polled.get("alice", ["a1:1", "a2:2", "a3:3"], { session: 2 });
  expect(broken(polled)).toEqual([]);
  const answered = restored().put("bob", "a4", { ids: [4] });
  answered.get("alice", ["a4:4"], { last: 3 });
  answered.state("alice", "restored").get("alice", ["a1:1", "a2:2", "a3:3", "a4:4"], { session: 2 });
  expect(broken(answered)).toEqual(["duplicated"]);
});

test("a loss of power gives a client again what it had not flushed, and nothing else", () => {
  const lost = () => {
    const story = told().put("bob", "a3", { ids: [3] });
    story.get("alice", ["a1:1"]);
    const n = story.get("alice", ["a2:2", "a3:3"], { last: 1, had: false });
    return story.saw(n, 3).had(n, 3, { soft: true }).state("alice", "power");
  };
  const story = lost();
  story.get("alice", ["a2:2", "a3:3"], { session: 2, last: 1 });
  expect(broken(story)).toEqual([]);
  // Had for the second time, and flushed.
  story.get("alice", ["a3:3"], { session: 3, last: 3 });
  expect(broken(story)).toContain("duplicated");
  const further = lost();
  further.get("alice", ["a1:1", "a2:2", "a3:3"], { session: 2 });
  expect(broken(further)).toEqual(["duplicated"]);
});

test("who seeks has again what is behind the new place, and need not have what it has skipped", () => {
  const sought = (to: number | "start" | "end", outcome: "ok" | "unknown" = "ok") => {
    const story = told().put("bob", "a3", { ids: [3] });
    story.get("alice", ["a1:1", "a2:2"]);
    return story.seek("alice", to, outcome).put("bob", "a4", { ids: [4] });
  };
  for (const outcome of ["ok", "unknown"] as const) {
    const back = sought("start", outcome);
    back.get("alice", ["a1:1", "a2:2", "a3:3", "a4:4"], { session: 2 });
    expect(broken(back)).toEqual([]);
    back.get("alice", ["a4:4"], { session: 3 });
    expect(broken(back)).toEqual(["duplicated"]);
    const skipped = sought("end", outcome);
    skipped.get("alice", ["a4:4"], { session: 2 });
    expect(broken(skipped)).toEqual([]);
  }
  const second = sought(1);
  second.get("alice", ["a2:2", "a3:3", "a4:4"]);
  expect(broken(second)).toEqual([]);
  const tooFar = sought(1);
  tooFar.get("alice", ["a1:1", "a2:2", "a3:3", "a4:4"]);
  expect(broken(tooFar)).toEqual(["duplicated"]);
  // What was put after the seek has to come, and what was skipped by none as well.
  expect(broken(sought("end"))).toEqual(["lost"]);
  const hole = sought("start");
  hole.get("alice", ["a1:1", "a2:2", "a4:4"]);
  expect(broken(hole)).toEqual(["lost"]);
});

test("what was had need not be there for who seeks the start, and what was not had must be", () => {
  const all = told();
  all.get("alice", ["a1:1", "a2:2"]);
  all.seek("alice", "start").get("alice", []);
  expect(broken(all)).toEqual([]);
  const some = told().put("bob", "a3", { ids: [3] });
  some.get("alice", ["a1:1", "a2:2"]);
  some.seek("alice", "start").get("alice", []);
  expect(broken(some)).toContain("hidden");
});

test("behind the same last something else may come when there was a seek in between, and not otherwise", () => {
  const powerLost = () => {
    const story = told().put("bob", "a3", { ids: [3] });
    const first = story.get("alice", ["a1:1"]);
    const second = story.get("alice", ["a2:2"], { last: 1, had: false });
    story.saw(first, 1).had(first, 1).saw(second, 2).had(second, 2, { soft: true });
    // The server has been told of what the client's state has lost.
    story.state("alice", "power");
    story.get("alice", ["a3:3"], { session: 2, last: 1 });
    return story;
  };
  const sought = powerLost().seek("alice", "start");
  sought.get("alice", ["a1:1"], { session: 2 });
  sought.get("alice", ["a2:2", "a3:3"], { session: 2, last: 1 });
  expect(broken(sought)).toEqual([]);
  const moved = powerLost();
  moved.get("alice", ["a2:2", "a3:3"], { session: 2, last: 1 });
  expect(broken(moved)).toContain("same last");
});

test("messages that servers report as lost by a fail-over need not come; all others must", () => {
  const lost = 1 + 2 ** 32;
  const story = new Story().subscribe("alice").subscribe("carol").put("bob", "a1", { ids: [1] });
  story.put("bob", "a2", { ids: [2] }).put("bob", "a3", { outcome: "unknown" });
  story.get("carol", ["a1:1", "a2:2", "a3:3"]);
  story.loss(1).put("bob", "a3", { ids: [lost + 1] }, { resumed: true }).put("bob", "a4", { ids: [lost + 2] });
  story.get("alice", ["a1:1", `a3:${lost + 1}`, `a4:${lost + 2}`]);
  story.get("carol", [`a3:${lost + 1}`, `a4:${lost + 2}`], { last: 3 });
  expect(broken(story, { mayLose: true })).toEqual([]);
  expect(judge(story.history, undefined, { mayLose: true }).named).toBe(1);
  expect(broken(story)).toEqual(["loss named"]);
  // The first put is resumed after the second one was lost.
  const resumed = new Story().put("bob", "a1", { outcome: "unknown" }).put("bob", "a2", { ids: [2] }).loss(0);
  resumed.put("bob", "a1", { ids: [lost] }, { resumed: true });
  expect(broken(resumed, { mayLose: true })).toEqual([]);
  const beyond = told().loss(2).put("bob", "a3", { ids: [lost + 2] }).put("bob", "a4", { ids: [lost + 3] });
  beyond.get("alice", ["a1:1", `a4:${lost + 3}`]);
  expect(broken(beyond, { mayLose: true })).toEqual(["lost"]);
  // A subscriber may be told how many of them it has not had, and of no others.
  const counted = told().put("bob", "a3", { ids: [3] }).loss(2).put("bob", "a3", { ids: [lost + 2] }, {
    resumed: true,
  });
  counted.get("alice", ["a1:1", "a2:2"]);
  counted.passedOver("alice", 2, [`a3:${lost + 2}`], 1);
  expect(broken(counted, { mayLose: true })).toEqual([]);
  const other = told().put("bob", "a3", { ids: [3] }).loss(3);
  other.get("alice", ["a1:1"]);
  other.passedOver("alice", 1, ["a3:3"], 1);
  expect(broken(other, { mayLose: true })).toContain("lost");
});

test("what retention has given up is not lost to who was told so, and is to everybody else", () => {
  const story = told().put("bob", "a3", { ids: [3] }).put("bob", "a4", { ids: [4] });
  story.get("alice", ["a1:1"]);
  story.passedOver("alice", 1, ["a4:4"], 2);
  expect(broken(story, { retains: true })).toEqual([]);
  expect(broken(story)).toEqual(["lost"]);
  const untold = told().put("bob", "a3", { ids: [3] });
  untold.get("alice", ["a1:1", "a3:3"]);
  expect(broken(untold, { retains: true })).toEqual(["lost"]);
});

test("a skipped client is told how many messages it missed beyond earlier reports and its own leave", () => {
  const retained = (story: Story) => broken(story, { retains: true });
  const more = () =>
    told().put("bob", "a3", { ids: [3] }).put("bob", "a4", { ids: [4] }).put("bob", "a5", { ids: [5] });
  // Two processes of one state: the server's place is behind the first one's gap, that of the second before it.
  const twins = more().state("alice", "shared");
  twins.get("alice", ["a1:1"]);
  twins.passedOver("alice", 1, ["a4:4"], 2).passedOver("alice", 1, ["a5:5"], 0);
  expect(retained(twins)).toEqual([]);
  const untold = more();
  untold.get("alice", ["a1:1"]);
  untold.passedOver("alice", 1, ["a5:5"], 2);
  expect(retained(untold)).toEqual(["missed untold"]);
  // It may have been done, and then the server's place is behind all that was put until then.
  const left = told();
  left.get("alice", ["a1:1"]);
  left.unsubscribe("alice", "unknown").subscribe("alice");
  left.put("bob", "a3", { ids: [3] }).put("bob", "a4", { ids: [4] }).passedOver("alice", 1, ["a4:4"], 1);
  expect(retained(left)).toEqual([]);
});

test("where the end was not waited for, only what is missing between messages that came is lost", () => {
  const story = told().subscribe("carol").put("bob", "a3", { ids: [3] });
  story.get("alice", ["a1:1", "a3:3"]);
  const lost = (isDrained: boolean) => judge(story.history, undefined, { isDrained }).lost;
  expect([lost(true), lost(false)]).toEqual([2, 1]);
});

test("a server that answers without being the owner is found; one not yet seen as the owner is not", () => {
  const story = new Story().node({ version: 1 });
  expect(broken(story.put("bob", "a1", { ids: [1], status: "OK", by: "s2" }))).toEqual(["one owner"]);
  story.node({ version: 2, epoch: 2, owner: "s2" });
  expect(broken(story.put("bob", "a2", { ids: [2], status: "OK", by: "s2" }))).toEqual([]);
  expect(broken(story.put("bob", "a3", { ids: [3], status: "OK", by: "s1" }))).toEqual(["one owner"]);
});

test("files of a process that was killed in the middle of a line are read, and what it began is unknown", () => {
  const folder = mkdtempSync(join(tmpdir(), "baton-history-"));
  try {
    const body = markedBody("a1", 200_000);
    expect([nameIn(body), body.byteLength, putOf(body)[1]]).toEqual(["a1", 200_000, hashOf(body)]);
    const path = join(folder, "w1.jsonl");
    {
      using writer = new HistoryWriter(path);
      writer.invoke({ client: "bob", session: 1, do: "put", topic: "news", counter: 1, puts: [putOf(body)] });
      const n = writer.invoke({ client: "alice", session: 1, do: "subscribe", topic: "news" });
      writer.return(n, { outcome: "ok" });
    }
    writeFileSync(path, '{"kind":"return","n":1,"at":5,"resu', { flag: "a" });
    const { operations } = readHistory(folder);
    expect(operations.map((one) => [one.do, one.result.outcome])).toEqual([["put", "unknown"], ["subscribe", "ok"]]);
    expect((operations[1]?.returnedAt ?? 0) > (operations[0]?.invokedAt ?? 0)).toBe(true);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

test(`${count} messages for four subscribers are judged within seconds`, () => {
  const story = new Story();
  const readers = ["alice", "carol", "eve", "fay"];
  for (const reader of readers) story.subscribe(reader);
  const places = new Map(readers.map((reader) => [reader, -1]));
  for (let id = 1; id <= count; id += 100) {
    const ids = Array.from({ length: 100 }, (_, at) => id + at);
    const puts = ids.map((one) => [`a${one}`, `hash of a${one}`] as const);
    story.put("bob", `a${id}`, { ids }, { counter: id, puts });
    for (const reader of readers) {
      story.get(reader, ids.map((one) => `a${one}:${one}`), { last: places.get(reader) ?? -1 });
      places.set(reader, id + 99);
    }
  }
  const { history } = story;
  const beganMs = performance.now();
  const verdict = judge(history);
  expect(verdict).toMatchObject({ violations: [], deliveries: 4 * count, lost: 0 });
  expect(performance.now() - beganMs).toBeLessThan(60_000);
}, 120_000);
