/**
 * The names of a barrier's nodes: `p-<epoch>.<generation>-<parties><f|w>-<guid>-<sequence>` for a party that has entered,
 * `a-<round>-<guid>` for its answer to a round. What each of them wants stands in its name, so that one list of names is
 * all that a decision needs. Names only: what follows from them is barrier_decision.ts.
 */

/** What becomes of a gathering when one of it is lost before the start: it is broken, or it waits for another. */
export type OnMemberLost = "fail" | "wait";

export interface ParticipantNode {
  readonly name: string;
  /** Of the barrier's container: made with it and never used again. */
  readonly epoch: string;
  readonly generation: number;
  readonly parties: number;
  readonly onLost: OnMemberLost;
  readonly guid: string;
  readonly sequence: number;
}

const letters = { fail: "f", wait: "w" } as const satisfies Record<OnMemberLost, string>;

// A server before 3.6 wraps its counter: the ten digits may carry a sign.
const partyPattern = /^p-([0-9a-z]+)\.(\d{1,15})-(\d{1,4})([fw])-([0-9a-z]+)-(-?\d{10})$/;

/** What the server appends its sequence to. */
export function participantPrefix(party: Omit<ParticipantNode, "name" | "sequence">): string {
  return `p-${party.epoch}.${party.generation}-${party.parties}${letters[party.onLost]}-${party.guid}-`;
}

/** Null for a name that no party of this layout has. */
export function parseParticipant(name: string): ParticipantNode | null {
  const [, epoch, generation, parties, letter, guid, sequence] = partyPattern.exec(name) ?? [];
  if (epoch === undefined || guid === undefined) return null;
  return {
    name,
    epoch,
    generation: Number(generation),
    parties: Number(parties),
    onLost: letter === "f" ? "fail" : "wait",
    guid,
    sequence: Number(sequence),
  };
}

export function responseName(round: string, guid: string): string {
  return `a-${round}-${guid}`;
}

/** The order in which they came. At 2^31-1 the server gives everybody the same sequence; the guid then decides. */
export function cameBefore(left: ParticipantNode, right: ParticipantNode): boolean {
  if (left.sequence !== right.sequence) return left.sequence < right.sequence;
  return left.guid < right.guid;
}
