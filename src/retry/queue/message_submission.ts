/** Stores new messages in their order, many in one transaction. */
import type { StoreClient } from "./store_methods.ts";
import type { NewMessage } from "./stored_message.ts";

/** Limits of one transaction. */
const chunkMessages = 512;
const chunkBytes = 4 << 20;

export interface SubmissionOptions {
  /** Makes a message. If it throws, earlier messages are either stored or not, as after an interruption. */
  readonly makeMessage: (body: Uint8Array) => NewMessage;
  readonly onStored: (count: number) => void;
}

export class MessageSubmission {
  stored = 0;
  first: string | null = null;
  last: string | null = null;
  readonly #store: StoreClient;
  readonly #options: SubmissionOptions;
  #chunk: NewMessage[] = [];
  #bytes = 0;
  #sending: Promise<void> = Promise.resolve();

  constructor(store: StoreClient, options: SubmissionOptions) {
    this.#store = store;
    this.#options = options;
  }

  async add(bodies: readonly Uint8Array[]): Promise<void> {
    for (const body of bodies) {
      // Copies the body, because sending a view to the thread would send its whole buffer.
      this.#chunk.push(this.#options.makeMessage(body.slice()));
      this.#bytes += body.byteLength;
      if (this.#chunk.length >= chunkMessages || this.#bytes >= chunkBytes) await this.#send();
    }
  }

  async end(): Promise<void> {
    if (this.#chunk.length > 0) await this.#send();
    await this.#sending;
  }

  /** Waits for the transaction in progress, whether it succeeds or not. */
  async settle(): Promise<void> {
    await this.#sending.catch(() => {});
  }

  /**
   * Sends the next transaction. Waits for the previous one, so that no message is stored after a refused message. New
   * messages can be added during this wait.
   */
  async #send(): Promise<void> {
    const messages = this.#chunk;
    this.#chunk = [];
    this.#bytes = 0;
    await this.#sending;
    this.#sending = this.#store.call("accept", messages, Date.now()).then((stored) => {
      this.first ??= stored[0]?.id ?? null;
      this.last = stored.at(-1)?.id ?? this.last;
      this.stored += stored.length;
      this.#options.onStored(stored.length);
    });
    this.#sending.catch(() => {}); // awaited by the next call
  }
}
