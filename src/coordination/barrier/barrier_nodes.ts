/**
 * Names of the nodes of a barrier: `p-<epoch>.<generation>-<parties><f|w>-<guid>-<sequence>` for a participant, and
 * `r-<round>-<guid>` for its response to a round. The names contain the options of a participant, so that a decision needs only one list
 * of names.
 */

/** If a member is lost before the start: the generation breaks (fail), or waits for another participant (wait). */
export type OnMemberLost = "fail" | "wait";

export interface ParticipantNode {
  readonly name: string;
  /** The epoch of the container: created with it and never reused. */
  readonly epoch: string;
  readonly generation: number;
  readonly parties: number;
  readonly onLost: OnMemberLost;
  readonly guid: string;
  readonly sequence: number;
}

const letters = { fail: "f", wait: "w" } as const satisfies Record<OnMemberLost, string>;

// Servers before 3.6 wrap the counter, so the ten digits may have a sign.
const partyPattern = /^p-([0-9a-z]+)\.(\d{1,15})-(\d{1,4})([fw])-([0-9a-z]+)-(-?\d{10})$/;

/** The name to which the server appends the sequence. */
export function participantPrefix(party: Omit<ParticipantNode, "name" | "sequence">): string {
  return `p-${party.epoch}.${party.generation}-${party.parties}${letters[party.onLost]}-${party.guid}-`;
}

/** Parses the name of a participant; null for other names. */
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
  return `r-${round}-${guid}`;
}

/** The order of arrival. At 2^31-1 the server gives the same sequence to all participants; then the GUID decides. */
export function cameBefore(left: ParticipantNode, right: ParticipantNode): boolean {
  if (left.sequence !== right.sequence) return left.sequence < right.sequence;
  return left.guid < right.guid;
}
