/** What is written into a barrier's container: the guarded state. Read leniently, written in one form. */
import { BatonError } from "../../errors.ts";

export interface BarrierState {
  /** Random, made with the container: a generation of a container that has since been reaped is not one of this. */
  readonly epoch: string;
  /** The gathering that can be entered now. */
  readonly generation: number;
  /** Everybody who had entered is asked whether it is there. */
  readonly round: BarrierRound | null;
  /** The last generation that was started. None starts before everybody of it has left, so that all of them can read it. */
  readonly started: StartedGeneration | null;
  /** The last one that was broken. */
  readonly broken: BrokenGeneration | null;
}

export interface BarrierRound {
  /** Never used twice. */
  readonly id: string;
  /** The guids of those who had entered when the round was opened, in their order. */
  readonly members: readonly string[];
}

export interface StartedGeneration {
  readonly generation: number;
  /** Guids; a member's rank is its place in this list. */
  readonly members: readonly string[];
  /** The transaction that opened its round: grows from generation to generation, and all of its members have the same. */
  readonly token: bigint;
}

export interface BrokenGeneration {
  readonly generation: number;
  /** Who was lost, as a sentence names them. */
  readonly lost: readonly string[];
  /** What became of them, as the end of a sentence. */
  readonly why: string;
}

/** Another shape of nodes gets another number: an old baton must not take part in a new one's barrier. */
const layout = 1;
/** One transaction starts all of them, and ZooKeeper takes a megabyte in one. */
export const partiesMax = 1000;

const utf8 = new TextEncoder();

export function initialBarrierState(epoch: string): BarrierState {
  return { epoch, generation: 1, round: null, started: null, broken: null };
}

/** What a node is that somebody made beforehand, without data. */
const emptyBarrier = initialBarrierState("0");

export function formatBarrierState(state: BarrierState): Uint8Array {
  const { started } = state;
  const fields = { ...state, started: started === null ? null : { ...started, token: started.token.toString() } };
  return utf8.encode(JSON.stringify({ layout, ...fields }));
}

/** Throws CONFIG for data that no baton of this layout has written. */
export function parseBarrierState(data: Uint8Array, path: string): BarrierState {
  if (data.length === 0) return emptyBarrier;
  const refuse = (what: string, cause?: unknown) =>
    new BatonError("CONFIG", `"${path}" is not a barrier that this baton can take part in: ${what}`, { cause });
  let value: unknown;
  try {
    value = JSON.parse(new TextDecoder().decode(data));
  } catch (cause) {
    throw refuse("its data is not JSON", cause);
  }
  if (!isFields(value) || !("layout" in value)) throw refuse("its data names no layout");
  if (value["layout"] !== layout) {
    throw refuse(`its layout is ${JSON.stringify(value["layout"])}, and this is ${layout}`);
  }
  const { epoch, generation } = value;
  if (typeof epoch !== "string" || !/^[0-9a-z]+$/.test(epoch) || !isCount(generation)) {
    throw refuse("its data names no epoch or no generation");
  }
  return {
    epoch,
    generation,
    round: roundOf(value["round"]),
    started: startedOf(value["started"]),
    broken: brokenOf(value["broken"]),
  };
}

type JsonObject = Record<string, unknown>;
const isFields = (value: unknown): value is JsonObject => typeof value === "object" && value !== null;
const isCount = (value: unknown): value is number => typeof value === "number" && Number.isSafeInteger(value);
const texts = (value: unknown): string[] =>
  Array.isArray(value) ? value.filter((item): item is string => typeof item === "string") : [];

function roundOf(value: unknown): BarrierRound | null {
  if (!isFields(value) || typeof value["id"] !== "string") return null;
  return { id: value["id"], members: texts(value["members"]) };
}

function startedOf(value: unknown): StartedGeneration | null {
  if (!isFields(value) || !isCount(value["generation"])) return null;
  const { generation, members, token } = value;
  const isToken = typeof token === "string" && /^\d{1,20}$/.test(token);
  return { generation, members: texts(members), token: isToken ? BigInt(token) : 0n };
}

function brokenOf(value: unknown): BrokenGeneration | null {
  if (!isFields(value) || !isCount(value["generation"])) return null;
  const { generation, lost, why } = value;
  return { generation, lost: texts(lost), why: typeof why === "string" ? why : "" };
}
