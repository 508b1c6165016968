/** Delivers each message as it was stored: by its own command, or to its own URL. */
import type { TryLease } from "../queue/processor_lease.ts";
import type { ClaimedMessage } from "../queue/stored_message.ts";
import type { Target, TryResult } from "./target.ts";

export class OwnTarget implements Target {
  readonly #commands: Target;
  readonly #requests: Target;

  constructor(commands: Target, requests: Target) {
    this.#commands = commands;
    this.#requests = requests;
  }

  async deliver(message: ClaimedMessage, lease: TryLease): Promise<TryResult> {
    const hasUrl = message.head.kind === "http" && message.head.origin !== undefined;
    return await (hasUrl ? this.#requests : this.#commands).deliver(message, lease);
  }
}
