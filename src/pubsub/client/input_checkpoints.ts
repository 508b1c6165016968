/**
 * Records how much of an input was put, in the same transaction as the puts, so that a later process neither skips a
 * message nor puts one twice. Decides nothing about the input.
 */
import type { ClientState, PutInputPosition } from "./client_state.ts";
import { createHash } from "node:crypto";

export interface PutInputCheckpoint {
  /** The digest of everything that was taken before; null if it is not needed. */
  readonly digest: string | null;
  /** Records, inside `runTransaction`, that this call has taken `taken` messages. `digest` covers everything so far. */
  record(taken: number, digest: string): void;
}

/** The checkpoint of an input that is a sequence of messages: their number and their digest. */
export class InputOffsetCheckpoint implements PutInputCheckpoint {
  readonly #state: ClientState;
  readonly #topic: string;
  readonly #begin: PutInputPosition;

  constructor(state: ClientState, topic: string, begin: PutInputPosition) {
    this.#state = state;
    this.#topic = topic;
    this.#begin = begin;
  }

  get digest(): string {
    return this.#begin.digest;
  }

  record(taken: number, digest: string): void {
    this.#state.setInput(this.#topic, { ...this.#begin, taken: this.#begin.taken + taken, digest });
  }
}

/** The checkpoint of inputs that are one message each: the files that were put. */
export class InputFileCheckpoint implements PutInputCheckpoint {
  readonly digest = null;
  readonly #state: ClientState;
  readonly #topic: string;
  /** The files that are being put, in order. */
  readonly #inputs: PutInputPosition[] = [];
  #recorded = 0;

  constructor(state: ClientState, topic: string) {
    this.#state = state;
    this.#topic = topic;
  }

  /** Adds the file of the next message, with its digest. */
  addFile(name: string, digest: string): void {
    this.#inputs.push({ name, taken: 1, digest });
  }

  record(taken: number): void {
    for (const input of this.#inputs.slice(this.#recorded, taken)) this.#state.setInput(this.#topic, input);
    // A refused file counts as not taken, so delete an older record of it.
    for (const { name } of this.#inputs.slice(taken, this.#recorded)) this.#state.forgetInput(this.#topic, name);
    this.#recorded = taken;
  }
}

/** The digest of an empty input. */
export const emptyInputDigest = "";

export function extendInputDigest(chain: string, item: Uint8Array): string {
  return createHash("sha256").update(chain).update(item).digest("hex");
}
