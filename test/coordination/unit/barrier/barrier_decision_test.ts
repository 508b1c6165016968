import { describe, expect, test } from "bun:test";
import {
  addSeenBarrierParticipants,
  type BarrierObservation,
  decideBarrierStep,
} from "../../../../src/coordination/barrier/barrier_decision.ts";
import {
  type BarrierMemberLossPolicy,
  barrierParticipantNodePrefix,
  barrierResponseNodeName,
  type BarrierState,
  formatBarrierState,
  initialBarrierState,
  parseBarrierParticipantNode,
  parseBarrierState,
} from "../../../../src/coordination/barrier/barrier_state.ts";

let sequence = 0;
function party(
  guid: string,
  wants: { generation?: number; parties?: number; onLost?: BarrierMemberLossPolicy; epoch?: string } = {},
) {
  const { generation = 1, parties = 2, onLost = "fail", epoch = "e" } = wants;
  return barrierParticipantNodePrefix({ epoch, generation, parties, onLost, guid }) +
    String(sequence++).padStart(10, "0");
}
const fresh = initialBarrierState("e");
const asking: BarrierState = { ...fresh, round: { id: "a.0", members: ["a", "b"] } };
const started: BarrierState = {
  ...fresh,
  generation: 2,
  started: { generation: 1, members: ["b", "a"], token: 7n },
};
const decide = (state: BarrierState, children: string[], more: Partial<BarrierObservation> = {}) =>
  decideBarrierStep({ state, children, guid: "a", seen: [], impatient: false, ...more });

describe("a party of a barrier", () => {
  test("waits as long as there are not enough, the first without a predecessor", () => {
    expect(decide(fresh, [party("a")])).toMatchObject({ do: "wait", predecessor: null, round: null });
    const b = party("b", { parties: 3 });
    const a = party("a", { parties: 3 });
    expect(decide(fresh, [a, b])).toMatchObject({ do: "wait", predecessor: { guid: "b" } });
  });

  test("asks everybody when there are enough, but not while somebody of an earlier generation is there", () => {
    const children = [party("a"), party("b"), party("c")];
    expect(decide(fresh, children)).toEqual({ do: "open", members: ["a", "b", "c"] });
    const second = { ...fresh, generation: 2 };
    const later = [party("a", { generation: 2 }), party("b", { generation: 2 })];
    expect(decide(second, [...later, party("old")])).toMatchObject({ do: "wait" });
    expect(decide(second, later)).toMatchObject({ do: "open" });
  });

  test("responses a round that it has a part in, and no other before it has become impatient", () => {
    const children = [party("a"), party("b"), party("c")];
    expect(decide(asking, children)).toEqual({ do: "respond", round: "a.0" });
    expect(decide(asking, children, { guid: "c" })).toMatchObject({ do: "wait", round: "a.0" });
    expect(decide(asking, children, { guid: "c", impatient: true })).toEqual({ do: "open", members: ["a", "b", "c"] });
  });

  test("starts those who answered, in the order in which they came, whoever sees it", () => {
    const children = [party("b"), party("a"), barrierResponseNodeName("a.0", "a")];
    expect(decide(asking, children)).toMatchObject({ do: "wait" });
    const all = [...children, barrierResponseNodeName("a.0", "b"), barrierResponseNodeName("x.0", "c")];
    expect(decide(asking, all)).toEqual({
      do: "start",
      members: ["b", "a"],
      nodes: children.slice(0, 2),
      responses: [barrierResponseNodeName("a.0", "b"), barrierResponseNodeName("a.0", "a")],
    });
  });

  test("knows its rank, also when its node is gone, and moves on when it was not among those started", () => {
    expect(decide(started, [party("a")])).toEqual({ do: "run", rank: 1, isThere: true });
    expect(decide(started, [])).toEqual({ do: "run", rank: 1, isThere: false });
    expect(decide(started, [party("c")], { guid: "c" })).toEqual({ do: "move" });
    expect(decide({ ...fresh, generation: 2 }, [party("a")])).toEqual({ do: "broken" });
    expect(decide(fresh, [party("a", { epoch: "before" })])).toEqual({ do: "move" });
    expect(decide(fresh, [party("b")])).toEqual({ do: "vanished" });
  });

  test("breaks the gathering when somebody it has seen is gone, unless it waits for another", () => {
    expect(decide(fresh, [party("a")], { seen: ["a", "b"] })).toEqual({ do: "break", lost: ["b"] });
    const patient = [party("a", { onLost: "wait" })];
    expect(decide(fresh, patient, { seen: ["a", "b"] })).toMatchObject({ do: "wait" });
  });

  test("opens another round when too few of the asked are left and others have come", () => {
    const patient = { onLost: "wait" } as const;
    const children = [party("a", patient), party("c", patient)];
    expect(decide(asking, children)).toEqual({ do: "respond", round: "a.0" });
    expect(decide(asking, [...children, barrierResponseNodeName("a.0", "a")])).toEqual({
      do: "open",
      members: ["a", "c"],
    });
  });

  test("goes by what the first wants, and counts nobody who wants something else", () => {
    const children = [party("b", { parties: 3 }), party("a")];
    expect(decide(fresh, children)).toMatchObject({ do: "disagree", first: { parties: 3 } });
    expect(decide(fresh, children, { guid: "b" })).toMatchObject({ do: "wait", gathered: [{ guid: "b" }] });
    expect(addSeenBarrierParticipants({ state: fresh, children, seen: ["z"] })).toEqual(["z", "b"]);
  });
});

test("a barrier's names and state are read as they were written", () => {
  expect(parseBarrierParticipantNode(party("a", { generation: 12, parties: 1000, onLost: "wait" }))).toMatchObject({
    epoch: "e",
    generation: 12,
    parties: 1000,
    onLost: "wait",
    guid: "a",
  });
  for (const name of ["r-x.0-a", "p-e.1-2x-a-0000000000", "q"]) expect(parseBarrierParticipantNode(name)).toBeNull();
  const broken = { generation: 3, lost: ["root@db1:1"], why: "it went" };
  const state = { ...started, round: asking.round, broken };
  expect(parseBarrierState(formatBarrierState(state), "/b")).toEqual(state);
  expect(() => parseBarrierState(new TextEncoder().encode('{"layout":2}'), "/b")).toThrow(
    "its layout is 2, and this version reads 1",
  );
});
