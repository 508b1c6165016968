/**
 * What a party of a barrier does next: a pure decision over the guarded state and one list of names that was read after
 * it. test/model drives this very function. Whatever is decided is written under the version that the state was read
 * with, and together with a look at the own node.
 */
import { cameBefore, parseParticipant, type ParticipantNode, responseName } from "./barrier_nodes.ts";
import type { BarrierState, BrokenGeneration } from "./barrier_state.ts";

export interface BarrierObservation {
  readonly state: BarrierState;
  /** The container's children. */
  readonly children: readonly string[];
  readonly guid: string;
  /** Those of this gathering that were there when it was looked at before. */
  readonly seen: readonly string[];
  /** This party has waited long enough for the round: it opens another when it has no part in this one. */
  readonly impatient: boolean;
}

export type BarrierDecision =
  /** `isThere`: the own node still is. Without it, what was started with this member has gone on without it. */
  | { readonly do: "run"; readonly rank: number; readonly isThere: boolean }
  /** The own node is not there, and it is not started. */
  | { readonly do: "vanished" }
  /** Somebody of the own gathering was lost before the start. */
  | { readonly do: "broken" }
  /** The others had enough without this one, or it came too late for its gathering: enter the one that is open now. */
  | { readonly do: "move" }
  /** The first of the gathering wants something else. */
  | { readonly do: "disagree"; readonly first: ParticipantNode }
  | { readonly do: "break"; readonly lost: readonly string[] }
  | { readonly do: "open"; readonly members: readonly string[] }
  | { readonly do: "answer"; readonly round: string }
  /** `nodes` must all be there, and `answers` are taken away: both in the order of the members. */
  | {
    readonly do: "start";
    readonly members: readonly string[];
    readonly nodes: readonly string[];
    readonly answers: readonly string[];
  }
  | BarrierWaiting;

export interface BarrierWaiting {
  readonly do: "wait";
  /** Of the own gathering, in their order. */
  readonly gathered: readonly ParticipantNode[];
  /** Whoever is nearest before this one; null for the first, who looks after all the others. */
  readonly predecessor: ParticipantNode | null;
  /** The round that is open: when it takes long, look again, with `impatient`. */
  readonly round: string | null;
}

/** Those who come when there are enough already are asked too, up to so many: one of the others may be dead. */
const sparesMax = 64;

export function barrierDecision(look: BarrierObservation): BarrierDecision {
  const { state, guid } = look;
  const parties = look.children.map(parseParticipant).filter((node) => node !== null);
  const mine = parties.find((node) => node.guid === guid);
  const rank = state.started?.members.indexOf(guid) ?? -1;
  if (rank >= 0) return { do: "run", rank, isThere: mine !== undefined };
  if (mine === undefined) return { do: "vanished" };
  if (mine.epoch !== state.epoch) return { do: "move" };
  if (mine.generation !== state.generation) {
    // Neither can another generation have started since: it would have waited for this node to go.
    return { do: state.started?.generation === mine.generation ? "move" : "broken" };
  }
  const gathering = gatheringOf(state, parties);
  const first = gathering[0] ?? mine;
  const gathered = gathering.filter((node) => agree(node, first));
  if (!agree(mine, first)) return { do: "disagree", first };
  return inGathering(look, { mine, gathered, older: parties.length > gathering.length });
}

/**
 * Everybody of the gathering that is open now, with `seen` before them: what a party remembers of every look at it. Of the
 * same gathering only: who moves to another forgets.
 */
export function seenSoFar(
  { state, children, seen }: Pick<BarrierObservation, "state" | "children" | "seen">,
): string[] {
  const gathering = gatheringOf(state, children.map(parseParticipant).filter((node) => node !== null));
  const [first] = gathering;
  const there = gathering.filter((node) => first !== undefined && agree(node, first)).map((node) => node.guid);
  return [...new Set([...seen, ...there])];
}

/** In the order in which they came. */
function gatheringOf(state: BarrierState, parties: readonly ParticipantNode[]): ParticipantNode[] {
  const isGathered = (node: ParticipantNode) => node.epoch === state.epoch && node.generation === state.generation;
  return parties.filter(isGathered).sort((left, right) => (cameBefore(left, right) ? -1 : 1));
}

function agree(left: ParticipantNode, right: ParticipantNode): boolean {
  return left.parties === right.parties && left.onLost === right.onLost;
}

function inGathering(
  { state, children, guid, seen, impatient }: BarrierObservation,
  { mine, gathered, older }: {
    readonly mine: ParticipantNode;
    readonly gathered: readonly ParticipantNode[];
    /** Somebody of a generation before this is still there. */
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
    if (enough && !older) return { do: "open", members: asked(gathered, mine) };
  } else {
    const there = new Set(children);
    const candidates = gathered.filter((node) => round.members.includes(node.guid));
    if (round.members.includes(guid) && !there.has(responseName(round.id, guid))) {
      return { do: "answer", round: round.id };
    }
    const answered = candidates.filter((node) => there.has(responseName(round.id, node.guid)));
    if (answered.length >= mine.parties) {
      const chosen = answered.slice(0, mine.parties);
      const members = chosen.map((node) => node.guid);
      const answers = members.map((member) => responseName(round.id, member));
      return { do: "start", members, nodes: chosen.map((node) => node.name), answers };
    }
    const isLeftOut = impatient && !round.members.includes(guid);
    const hopeless = candidates.length < mine.parties;
    if (enough && (hopeless || isLeftOut) && !older) return { do: "open", members: asked(gathered, mine) };
  }
  const predecessor = gathered[gathered.indexOf(mine) - 1] ?? null;
  return { do: "wait", gathered, predecessor, round: enough ? round?.id ?? null : null };
}

function asked(gathered: readonly ParticipantNode[], mine: ParticipantNode): string[] {
  const first = gathered.slice(0, mine.parties + sparesMax);
  return (first.includes(mine) ? first : [...first, mine]).map((node) => node.guid);
}

/** What somebody who leaves before the start writes besides; null: nothing. A start needs its node, and will not find it. */
export function stateAfterLeaving(
  state: BarrierState,
  mine: ParticipantNode,
  told: Pick<BrokenGeneration, "lost" | "why">,
): BarrierState | null {
  const isGathered = mine.epoch === state.epoch && mine.generation === state.generation;
  return isGathered && mine.onLost === "fail" ? brokenState(state, told) : null;
}

export function brokenState(state: BarrierState, { lost, why }: Pick<BrokenGeneration, "lost" | "why">): BarrierState {
  const { generation } = state;
  return { ...state, generation: generation + 1, round: null, broken: { generation, lost, why } };
}

/** `version` is the one that the state was read with: with a party's guid it makes a name that is never used twice. */
export function openedState(
  state: BarrierState,
  { guid, version, members }: { readonly guid: string; readonly version: number; readonly members: readonly string[] },
): BarrierState {
  return { ...state, round: { id: `${guid}.${version}`, members } };
}

export function startedState(
  state: BarrierState,
  { members, token }: { readonly members: readonly string[]; readonly token: bigint },
): BarrierState {
  const started = { generation: state.generation, members, token };
  return { ...state, generation: state.generation + 1, round: null, started };
}
