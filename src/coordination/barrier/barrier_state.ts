/**
 * The state of a barrier, which is the data of its container, and the names of its nodes. The node of a participant is
 * named `p-<epoch>.<generation>-<parties><f|w>-<guid>-<sequence>`. The node of its response to a round is named
 * `r-<round>-<guid>`. The names contain the participants' options, so that a decision needs only one list of names.
 */
import { BatonError } from "../../base/errors.ts";
import { demandJsonFields, encodeJson, isJsonObject } from "../../base/support/json_fields.ts";

export interface BarrierState {
  /**
   * A random ID of the container. If the container is removed and created again, the ID tells old and new generations
   * apart.
   */
  readonly epoch: string;
  /** The generation that participants can enter now. */
  readonly generation: number;
  /** The open round, in which all participants have to respond; null if none is open. */
  readonly round: BarrierRound | null;
  /**
   * The last generation that was started. The next generation starts only after all members of this one have left, so
   * every member can read this field.
   */
  readonly started: StartedGeneration | null;
  readonly broken: BrokenBarrierGeneration | null;
}

interface BarrierRound {
  readonly id: string;
  /** The GUIDs of the participants when the round was opened, in order. */
  readonly members: readonly string[];
}

interface StartedGeneration {
  readonly generation: number;
  /** The GUIDs of the members; the rank of a member is its index in this list. */
  readonly members: readonly string[];
  /**
   * The fencing token: the zxid of the transaction that opened the round. It increases with each generation and is the
   * same for all members.
   */
  readonly token: bigint;
}

export interface BrokenBarrierGeneration {
  readonly generation: number;
  readonly lost: readonly string[];
  readonly why: string;
}

/** The version of the layout of names and data. Programs with different layouts must not use the same barrier. */
const layout = 1;
/** The most members. One transaction of at most 1 MiB starts all of them. */
export const barrierParticipantsMax = 1000;

export function initialBarrierState(epoch: string): BarrierState {
  return { epoch, generation: 1, round: null, started: null, broken: null };
}

/** The state of a node without data, created by another program. */
const emptyBarrier = initialBarrierState("0");

export function formatBarrierState(state: BarrierState): Uint8Array {
  const { started } = state;
  const fields = { ...state, started: started === null ? null : { ...started, token: started.token.toString() } };
  return encodeJson({ layout, ...fields });
}

/** Parses the state. Throws CONFIG for data of another layout. */
export function parseBarrierState(data: Uint8Array, path: string): BarrierState {
  if (data.length === 0) return emptyBarrier;
  const refuse = (what: string, cause?: unknown) =>
    new BatonError("CONFIG", `Cannot use the barrier "${path}": ${what}`, { cause });
  const value = demandJsonFields(data, refuse, layout);
  const { epoch, generation } = value;
  if (typeof epoch !== "string" || !/^[0-9a-z]+$/.test(epoch) || !isCount(generation)) {
    throw refuse("its data has no epoch or no generation");
  }
  return {
    epoch,
    generation,
    round: roundOf(value["round"]),
    started: startedOf(value["started"]),
    broken: brokenOf(value["broken"]),
  };
}

const isCount = (value: unknown): value is number => typeof value === "number" && Number.isSafeInteger(value);
const stringsIn = (value: unknown): string[] =>
  Array.isArray(value) ? value.filter((item): item is string => typeof item === "string") : [];

function roundOf(value: unknown): BarrierRound | null {
  if (!isJsonObject(value) || typeof value["id"] !== "string") return null;
  return { id: value["id"], members: stringsIn(value["members"]) };
}

function startedOf(value: unknown): StartedGeneration | null {
  if (!isJsonObject(value) || !isCount(value["generation"])) return null;
  const { generation, members, token } = value;
  const isToken = typeof token === "string" && /^\d{1,20}$/.test(token);
  return { generation, members: stringsIn(members), token: isToken ? BigInt(token) : 0n };
}

function brokenOf(value: unknown): BrokenBarrierGeneration | null {
  if (!isJsonObject(value) || !isCount(value["generation"])) return null;
  const { generation, lost, why } = value;
  return { generation, lost: stringsIn(lost), why: typeof why === "string" ? why : "" };
}

/**
 * The reaction to the loss of a member before the start: the generation breaks ("fail"), or waits for another
 * participant ("wait").
 */
export type BarrierMemberLossPolicy = "fail" | "wait";

export interface BarrierParticipantNode {
  readonly name: string;
  /** The epoch of the container, which is never reused. */
  readonly epoch: string;
  readonly generation: number;
  readonly parties: number;
  readonly onLost: BarrierMemberLossPolicy;
  readonly guid: string;
  readonly sequence: number;
}

const letters = { fail: "f", wait: "w" } as const satisfies Record<BarrierMemberLossPolicy, string>;

// Servers before 3.6 let the counter overflow, so the ten digits may have a sign.
const partyPattern = /^p-([0-9a-z]+)\.(\d{1,15})-(\d{1,4})([fw])-([0-9a-z]+)-(-?\d{10})$/;

/** Returns the name of a participant's node, to which the server appends a sequence. */
export function barrierParticipantNodePrefix(party: Omit<BarrierParticipantNode, "name" | "sequence">): string {
  return `p-${party.epoch}.${party.generation}-${party.parties}${letters[party.onLost]}-${party.guid}-`;
}

/** Parses the name of a participant's node. Returns null for other names. */
export function parseBarrierParticipantNode(name: string): BarrierParticipantNode | null {
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

export function barrierResponseNodeName(round: string, guid: string): string {
  return `r-${round}-${guid}`;
}

/**
 * Returns the participants in the order of arrival. When the server's counter stops at 2^31-1, several participants
 * have the same sequence, and the GUID decides.
 */
export function parseBarrierParticipantNodes(children: readonly string[]): BarrierParticipantNode[] {
  const nodes = children.map(parseBarrierParticipantNode).filter((node) => node !== null);
  return nodes.sort((one, other) => one.sequence - other.sequence || (one.guid < other.guid ? -1 : 1));
}

/** Returns true if the participant is in the generation that can be entered now. */
export function isInCurrentBarrierGeneration(
  state: BarrierState,
  { epoch, generation }: BarrierParticipantNode,
): boolean {
  return epoch === state.epoch && generation === state.generation;
}
