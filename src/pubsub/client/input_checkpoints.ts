/**
 * Records how much of an input has been put, in the same transaction as the intents of the puts. A later process can
 * thus continue the input without skipping a message or putting it twice.
 */
import type { ClientState, PutInputProgress } from "./client_state.ts";
import { sha256Hex } from "../../base/support/digest.ts";

export interface PutInputCheckpoint {
  /**
   * The digest of all messages that earlier calls have taken. Null for inputs that are files, because each file has its
   * own digest.
   */
  readonly digest: string | null;
  /**
   * Records that this call has taken `taken` messages. `digest` covers these and all earlier messages. Must be called
   * inside `runTransaction`.
   */
  record(taken: number, digest: string): void;
}

/** The checkpoint of a file that contains a sequence of messages: how many messages were taken, and their digest. */
export class PutSequenceCheckpoint implements PutInputCheckpoint {
  readonly #state: ClientState;
  readonly #topic: string;
  readonly #begin: PutInputProgress;

  constructor(state: ClientState, topic: string, begin: PutInputProgress) {
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

/** The checkpoint of files that contain one message each. It records each file that was put. */
export class PutFilesCheckpoint implements PutInputCheckpoint {
  readonly digest = null;
  readonly #state: ClientState;
  readonly #topic: string;
  /** The files that are being put, in order. */
  readonly #inputs: PutInputProgress[] = [];
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
    // Deletes the record of a file that was refused after it was recorded, because that file was not put.
    for (const { name } of this.#inputs.slice(taken, this.#recorded)) this.#state.forgetInput(this.#topic, name);
    this.#recorded = taken;
  }
}

export const emptyInputDigest = "";
const sha256Digits = 64;

/**
 * Adds a message to a digest. The result contains the digest of all messages and, before it, the one of all but the
 * last. With both, the last message can be recognized.
 */
export function extendInputDigest(digest: string, item: Uint8Array): string {
  const before = wholeInputDigest(digest);
  return `${before}${sha256Hex(before, item)}`;
}

/** Returns the part of a digest that covers all messages. */
export function wholeInputDigest(digest: string): string {
  return digest.slice(-sha256Digits);
}
