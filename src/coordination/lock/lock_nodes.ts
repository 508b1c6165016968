/**
 * The names of a lock's nodes. A contender's name is `q/<priority>-<mode>-<guid>-<sequence>`, and a holder's name is
 * `h/<mode><slot>-<guid>`. Only permits have slots. The names of the holders show which slots are taken.
 */
import { BatonError } from "../../base/errors.ts";
import type { LockMode } from "../../base/process/lease.ts";

export interface ContenderNode {
  readonly name: string;
  readonly priority: number;
  readonly mode: LockMode;
  readonly guid: string;
  readonly sequence: number;
}

export interface HolderNode {
  readonly name: string;
  readonly mode: LockMode;
  /** The number of the permit, from 0; null for the other modes. */
  readonly slot: number | null;
  readonly guid: string;
}

/** Maximum priority number; 0 is served first. Numbers have three digits, so that a sorted list is in order. */
export const lockPriorityMax = 999;

const letters = { exclusive: "x", shared: "s", permit: "p" } as const satisfies Record<LockMode, string>;
const modes: Record<string, LockMode> = { x: "exclusive", s: "shared", p: "permit" };

// Servers before 3.6 let the counter overflow, so the ten digits may have a sign.
const contenderPattern = /^(\d{3})-([xsp])-([0-9a-z]+)-(-?\d{10})$/;
const holderPattern = /^(?:([xs])|p(\d{1,6}))-([0-9a-z]+)$/;

/**
 * Returns the name of a contender's node, to which the server appends a sequence. Throws USAGE for a priority outside 0
 * to 999.
 */
export function contenderNodePrefix(priority: number, mode: LockMode, guid: string): string {
  if (!Number.isInteger(priority) || priority < 0 || priority > lockPriorityMax) {
    throw new BatonError(
      "USAGE",
      `Priority ${priority} is not a whole number from 0 (first) to ${lockPriorityMax} (last)`,
    );
  }
  return `${String(priority).padStart(3, "0")}-${letters[mode]}-${guid}-`;
}

export function holderNodeName({ mode, slot, guid }: Omit<HolderNode, "name">): string {
  return `${letters[mode]}${slot ?? ""}-${guid}`;
}

/** Parses the name of a contender's node. Returns null for other names. */
export function parseContenderNode(name: string): ContenderNode | null {
  const [, priority, letter, guid, sequence] = contenderPattern.exec(name) ?? [];
  if (priority === undefined || guid === undefined || sequence === undefined) return null;
  const mode = modes[letter ?? ""];
  return mode === undefined ? null : { name, priority: Number(priority), mode, guid, sequence: Number(sequence) };
}

/** Parses the name of a holder's node. Returns null for other names. */
export function parseHolderNode(name: string): HolderNode | null {
  const [, letter, digits, guid] = holderPattern.exec(name) ?? [];
  const mode = digits === undefined ? modes[letter ?? ""] : "permit";
  if (mode === undefined || guid === undefined) return null;
  return { name, mode, slot: digits === undefined ? null : Number(digits), guid };
}
