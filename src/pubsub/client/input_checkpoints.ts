/**
 * How much of an input was taken, noted with what is put of it, in one write: so that who goes on after a kill leaves nothing
 * out and puts nothing twice. Decides nothing about the input.
 */
import type { ClientState, InputPlace } from "./client_state.ts";

export interface InputNotes {
  /** Of all that was taken before; null: nobody asks for it. */
  readonly chain: string | null;
  /** In a `write`: of what is put in this call so many messages are taken, and none behind them. `chain`: of all. */
  note(taken: number, chain: string): void;
}

/** Of an input that is one row of messages: how many, and what they were. */
export class SequenceNotes implements InputNotes {
  readonly #state: ClientState;
  readonly #topic: string;
  readonly #begin: InputPlace;

  constructor(state: ClientState, topic: string, begin: InputPlace) {
    this.#state = state;
    this.#topic = topic;
    this.#begin = begin;
  }

  get chain(): string {
    return this.#begin.chain;
  }

  note(taken: number, chain: string): void {
    this.#state.setInput(this.#topic, { ...this.#begin, taken: this.#begin.taken + taken, chain });
  }
}

/** Of inputs that are a message each: which. */
export class WholeNotes implements InputNotes {
  readonly chain = null;
  readonly #state: ClientState;
  readonly #topic: string;
  /** Those that are put, in their order, and how many of them are noted. */
  readonly #inputs: InputPlace[] = [];
  #noted = 0;

  constructor(state: ClientState, topic: string) {
    this.#state = state;
    this.#topic = topic;
  }

  /** Inputs that were put. */
  get taken(): number {
    return this.#noted;
  }

  /** The next message is this input's. `chain`: of it. */
  add(name: string, chain: string): void {
    this.#inputs.push({ name, taken: 1, chain });
  }

  note(taken: number): void {
    for (const input of this.#inputs.slice(this.#noted, taken)) this.#state.setInput(this.#topic, input);
    // What was refused is not taken, nor what it was before.
    for (const { name } of this.#inputs.slice(taken, this.#noted)) this.#state.forgetInput(this.#topic, name);
    this.#noted = taken;
  }
}

/** Of a stream, which nobody can go on with: how many messages were read. */
export class StreamNotes implements InputNotes {
  readonly chain = null;
  /** Null: nothing was noted yet. */
  taken: number | null = null;

  note(taken: number): void {
    this.taken = taken;
  }
}
