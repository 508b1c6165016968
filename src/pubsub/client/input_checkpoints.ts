/**
 * How much of an input was taken, noted with what is put of it, in one write: so that who goes on after a kill leaves nothing
 * out and puts nothing twice. Decides nothing about the input.
 */
import type { ClientState, InputPosition } from "./client_state.ts";
import { createHash } from "node:crypto";

export interface InputCheckpoint {
  /** Of all that was taken before; null: nobody asks for it. */
  readonly digest: string | null;
  /** In a `write`: of what is put in this call so many messages are taken, and none behind them. `digest`: of all. */
  record(taken: number, digest: string): void;
}

/** Of an input that is one row of messages: how many, and what they were. */
export class OffsetCheckpoint implements InputCheckpoint {
  readonly #state: ClientState;
  readonly #topic: string;
  readonly #begin: InputPosition;

  constructor(state: ClientState, topic: string, begin: InputPosition) {
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

/** Of inputs that are a message each: which. */
export class FileCheckpoint implements InputCheckpoint {
  readonly digest = null;
  readonly #state: ClientState;
  readonly #topic: string;
  /** Those that are put, in their order, and how many of them are noted. */
  readonly #inputs: InputPosition[] = [];
  #recorded = 0;

  constructor(state: ClientState, topic: string) {
    this.#state = state;
    this.#topic = topic;
  }

  /** Inputs that were put. */
  get taken(): number {
    return this.#recorded;
  }

  /** The next message is this input's. `digest`: of it. */
  add(name: string, digest: string): void {
    this.#inputs.push({ name, taken: 1, digest });
  }

  record(taken: number): void {
    for (const input of this.#inputs.slice(this.#recorded, taken)) this.#state.setInput(this.#topic, input);
    // What was refused is not taken, nor what it was before.
    for (const { name } of this.#inputs.slice(taken, this.#recorded)) this.#state.forgetInput(this.#topic, name);
    this.#recorded = taken;
  }
}

/** Of a stream, which nobody can go on with: how many messages were read. */
export class NoCheckpoint implements InputCheckpoint {
  readonly digest = null;
  /** Null: nothing was noted yet. */
  taken: number | null = null;

  record(taken: number): void {
    this.taken = taken;
  }
}

/** Of no message. */
export const emptyDigest = "";

export function rollingDigest(chain: string, item: Uint8Array): string {
  return createHash("sha256").update(chain).update(item).digest("hex");
}
