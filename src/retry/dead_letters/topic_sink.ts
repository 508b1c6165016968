/**
 * Dead letters into a publish/subscribe topic, as lines of JSON: each once, under a name that is this death's. There when the server
 * has it on the disk, and only where somebody subscribes.
 */
import type { PubsubClientSession } from "../../pubsub/client/pubsub_client_session.ts";
import { requireOk } from "../../pubsub/client/pubsub_client_session.ts";
import { letterLine, type LetterRules } from "./dead_letter_record.ts";
import type { LetterPlace, OpenPlace } from "./dead_letter_forwarder.ts";
import { TopicPutter } from "../targets/topic_putter.ts";

/** A client that is open, and what closes it. */
export interface OpenClient extends Disposable {
  readonly client: PubsubClientSession;
}

export interface TopicLettersOptions extends LetterRules {
  readonly topic: string;
  /** What gives this process's turn back; null: another one of the store sends now. */
  readonly takeTurn: () => (() => void) | null;
  /** Nobody else has the client who has the turn. */
  readonly openClient: (signal: AbortSignal) => Promise<OpenClient>;
}

export class TopicLetters implements LetterPlace {
  readonly isEachAlone = true;
  readonly #options: TopicLettersOptions;

  constructor(options: TopicLettersOptions) {
    this.#options = options;
  }

  /** Rejects with CONFIG, REFUSED or UNREACHABLE when no letter could be sent now. */
  async check(signal: AbortSignal): Promise<void> {
    (await this.open(signal))?.close();
  }

  async open(signal: AbortSignal): Promise<OpenPlace | null> {
    const { topic, takeTurn, openClient } = this.#options;
    const rules = this.#options;
    const turn = takeTurn();
    if (turn === null) return null;
    using stack = new DisposableStack();
    stack.defer(turn);
    const putter = new TopicPutter(stack.use(await openClient(signal)).client, topic);
    await putter.check(signal);
    const opened = stack.move();
    return {
      next: () => null,
      async send(letter, _, ending) {
        // A message that was redriven and died again has another letter.
        const name = `${letter.id}.${letter.fence}`;
        const body = new TextEncoder().encode(letterLine(letter, rules).trimEnd());
        requireOk(`put the dead letter ${letter.id} into topic "${topic}"`, await putter.put(name, body, ending));
      },
      close: () => opened.dispose(),
    };
  }
}
