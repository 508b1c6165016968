/**
 * Decides what a participant of a barrier does next, from the state and a list of names that was read after the state.
 * Makes the transaction for that step. Each transaction checks that this participant's node exists and the state is
 * unchanged. Pure; the tests in test/coordination/model run it against all orders of events.
 */
import type { Acl, MultiRequest } from "../../protocols/zookeeper/zookeeper.ts";
import { createFlag } from "../../protocols/zookeeper/jute/zookeeper_operations.ts";
import {
  type BarrierParticipantNode,
  barrierResponseNodeName,
  type BarrierState,
  type BrokenBarrierGeneration,
  formatBarrierState,
  isInCurrentBarrierGeneration,
  parseBarrierParticipantNodes,
} from "./barrier_state.ts";
import type { BarrierView } from "./barrier_view.ts";

export interface BarrierObservation {
  readonly state: BarrierState;
  /** Names of the nodes in the barrier's container. */
  readonly children: readonly string[];
  readonly guid: string;
  /** GUIDs of the participants of this generation that earlier reads have found. */
  readonly seen: readonly string[];
  /** True if the round takes too long. A participant that does not belong to the round then opens a new round. */
  readonly impatient: boolean;
}

export type BarrierDecision =
  /**
   * The barrier was started with this member. If the member's node does not exist (`isThere` is false), the others
   * continue without it.
   */
  | { readonly do: "run"; readonly rank: number; readonly isThere: boolean }
  /** This participant's node does not exist, and the barrier was not started with it. */
  | { readonly do: "vanished" }
  /** A member of the generation was lost before the start. */
  | { readonly do: "broken" }
  /**
   * The generation started without this participant, or this participant came too late. It enters the current
   * generation.
   */
  | { readonly do: "move" }
  /** The first participant of the generation has other options. */
  | { readonly do: "disagree"; readonly first: BarrierParticipantNode }
  | { readonly do: "break"; readonly lost: readonly string[] }
  | { readonly do: "open"; readonly members: readonly string[] }
  | { readonly do: "respond"; readonly round: string }
  /**
   * Confirm the round: check in one transaction that all `nodes` exist, and delete `responses`. Both lists are in the
   * order of the members.
   */
  | {
    readonly do: "start";
    readonly members: readonly string[];
    readonly nodes: readonly string[];
    readonly responses: readonly string[];
  }
  | BarrierWaitDecision;

export interface BarrierWaitDecision {
  readonly do: "wait";
  /** All participants of this generation, in order of arrival. */
  readonly gathered: readonly BarrierParticipantNode[];
  /** The participant before this one. Null for the first participant, which watches all others. */
  readonly predecessor: BarrierParticipantNode | null;
  /**
   * The open round; null if there are not enough participants. If the round takes too long, the caller decides again
   * with `impatient`.
   */
  readonly round: string | null;
}

/** The most spare participants in a round. They replace participants that do not respond. */
const sparesMax = 64;

export function decideBarrierStep(look: BarrierObservation): BarrierDecision {
  const { state, guid } = look;
  const parties = parseBarrierParticipantNodes(look.children);
  const mine = parties.find((node) => node.guid === guid);
  const rank = state.started?.members.indexOf(guid) ?? -1;
  if (rank >= 0) return { do: "run", rank, isThere: mine !== undefined };
  if (mine === undefined) return { do: "vanished" };
  if (mine.epoch !== state.epoch) return { do: "move" };
  if (mine.generation !== state.generation) {
    // No later generation can have started, because it waits until this node is gone.
    return { do: state.started?.generation === mine.generation ? "move" : "broken" };
  }
  const gathering = parties.filter((node) => isInCurrentBarrierGeneration(state, node));
  const first = gathering[0] ?? mine;
  const gathered = gathering.filter((node) => hasSameOptions(node, first));
  if (!hasSameOptions(mine, first)) return { do: "disagree", first };
  return decideWhileGathering(look, { mine, gathered, older: parties.length > gathering.length });
}

/**
 * Returns `seen` with the participants of the current generation added. A participant that moves to another generation
 * starts with an empty `seen`.
 */
export function addSeenBarrierParticipants(
  { state, children, seen }: Pick<BarrierObservation, "state" | "children" | "seen">,
): string[] {
  const gathering = parseBarrierParticipantNodes(children).filter((node) => isInCurrentBarrierGeneration(state, node));
  const [first] = gathering;
  const there = gathering.filter((node) => first !== undefined && hasSameOptions(node, first)).map((node) => node.guid);
  return [...new Set([...seen, ...there])];
}

function hasSameOptions(left: BarrierParticipantNode, right: BarrierParticipantNode): boolean {
  return left.parties === right.parties && left.onLost === right.onLost;
}

function decideWhileGathering(
  { state, children, guid, seen, impatient }: BarrierObservation,
  { mine, gathered, older }: {
    readonly mine: BarrierParticipantNode;
    readonly gathered: readonly BarrierParticipantNode[];
    /** True if a participant of an earlier generation still exists. */
    readonly older: boolean;
  },
): BarrierDecision {
  const enough = gathered.length >= mine.parties;
  if (mine.onLost === "fail") {
    const lost = seen.filter((other) => !gathered.some((node) => node.guid === other));
    if (lost.length > 0) return { do: "break", lost };
  }
  const { round } = state;
  if (round === null) {
    if (enough && !older) return { do: "open", members: participantsToAsk(gathered, mine) };
  } else {
    const there = new Set(children);
    const candidates = gathered.filter((node) => round.members.includes(node.guid));
    if (round.members.includes(guid) && !there.has(barrierResponseNodeName(round.id, guid))) {
      return { do: "respond", round: round.id };
    }
    const responded = candidates.filter((node) => there.has(barrierResponseNodeName(round.id, node.guid)));
    if (responded.length >= mine.parties) {
      const chosen = responded.slice(0, mine.parties);
      const members = chosen.map((node) => node.guid);
      const responses = members.map((member) => barrierResponseNodeName(round.id, member));
      return { do: "start", members, nodes: chosen.map((node) => node.name), responses };
    }
    const isLeftOut = impatient && !round.members.includes(guid);
    const hopeless = candidates.length < mine.parties;
    if (enough && (hopeless || isLeftOut) && !older) return { do: "open", members: participantsToAsk(gathered, mine) };
  }
  const predecessor = gathered[gathered.indexOf(mine) - 1] ?? null;
  return { do: "wait", gathered, predecessor, round: enough ? round?.id ?? null : null };
}

function participantsToAsk(gathered: readonly BarrierParticipantNode[], mine: BarrierParticipantNode): string[] {
  const first = gathered.slice(0, mine.parties + sparesMax);
  return (first.includes(mine) ? first : [...first, mine]).map((node) => node.guid);
}

/**
 * Returns the state that a participant writes when it leaves before the start. Returns null if no write is needed: a
 * later start then fails because the participant's node is missing.
 */
export function barrierStateAfterLeaving(
  state: BarrierState,
  mine: BarrierParticipantNode,
  loss: Pick<BrokenBarrierGeneration, "lost" | "why">,
): BarrierState | null {
  return isInCurrentBarrierGeneration(state, mine) && mine.onLost === "fail"
    ? barrierStateAfterBreak(state, loss)
    : null;
}

export function barrierStateAfterBreak(
  state: BarrierState,
  { lost, why }: Pick<BrokenBarrierGeneration, "lost" | "why">,
): BarrierState {
  const { generation } = state;
  return { ...state, generation: generation + 1, round: null, broken: { generation, lost, why } };
}

/** Returns the state with an open round. The version of the state and the GUID make the name of the round unique. */
export function barrierStateWithOpenRound(
  state: BarrierState,
  { guid, version, members }: { readonly guid: string; readonly version: number; readonly members: readonly string[] },
): BarrierState {
  return { ...state, round: { id: `${guid}.${version}`, members } };
}

export function barrierStateAfterStart(
  state: BarrierState,
  { members, token }: { readonly members: readonly string[]; readonly token: bigint },
): BarrierState {
  const started = { generation: state.generation, members, token };
  return { ...state, generation: state.generation + 1, round: null, started };
}

export type BarrierChangeDecision = Extract<BarrierDecision, { do: "break" | "open" | "respond" | "start" | "move" }>;

export interface BarrierChangeContext {
  readonly path: string;
  readonly view: BarrierView;
  readonly mine: BarrierParticipantNode;
  /** Names of this participant's nodes: the participant and its responses. */
  readonly own: readonly string[];
  readonly acl: Acl[];
  /** The lost members and the reason, if `do` is "break"; otherwise null. */
  readonly loss: { readonly lost: readonly string[]; readonly why: string } | null;
  /** The request that creates this participant's node in the current generation, if `do` is "move"; otherwise null. */
  readonly creation: MultiRequest | null;
}

export function barrierDecisionRequests(
  decision: BarrierChangeDecision,
  context: BarrierChangeContext,
): MultiRequest[] {
  const { path: barrier, view, mine, own, acl, loss, creation } = context;
  const { state, version } = view;
  const at = (name: string) => `${barrier}/${name}`;
  const set = (next: BarrierState): MultiRequest => ({
    type: "setData",
    path: barrier,
    data: formatBarrierState(next),
    version,
  });
  const there = (name: string): MultiRequest => ({ type: "check", path: at(name), version: -1 });
  const gone = (name: string): MultiRequest => ({ type: "delete", path: at(name), version: -1 });
  switch (decision.do) {
    case "respond": {
      const response = at(barrierResponseNodeName(decision.round, mine.guid));
      const data = new Uint8Array();
      return [there(mine.name), { type: "create", path: response, data, acl, flags: createFlag.ephemeral }];
    }
    case "open":
      return [
        set(barrierStateWithOpenRound(state, { guid: mine.guid, version, members: decision.members })),
        there(mine.name),
      ];
    case "start": {
      const next = barrierStateAfterStart(state, { members: decision.members, token: view.writtenBy });
      const nodes = decision.nodes.includes(mine.name) ? decision.nodes : [...decision.nodes, mine.name];
      return [set(next), ...nodes.map(there), ...decision.responses.map(gone)];
    }
    case "break":
      return [set(barrierStateAfterBreak(state, loss ?? { lost: [], why: "" })), there(mine.name)];
    case "move":
      return [
        { type: "check", path: barrier, version },
        ...own.map(gone),
        ...(creation === null ? [] : [creation]),
      ];
  }
}
