/**
 * Group commit: which replies may go out when. What was said of a state that is not on the disk yet waits until it is;
 * everything that happens while one commit runs goes into the next. Owns no disk and no socket.
 */
import { ByteWriter } from "../../wire/bytes.ts";

/** Somebody who is told things: a connection. */
export interface Recipient {
  /** Takes what was staged for it, all at once and in order. */
  deliver(staged: Staged): void;
}

export interface Staged {
  readonly writer: ByteWriter;
  /** Replies in it. */
  replies: number;
  /** Bytes of the requests that they answer. */
  requestBytes: number;
  /** The connection ends after it. */
  last: boolean;
}

type Stage = Map<Recipient, Staged>;

export interface ReplyStagesOptions {
  /** Whether something happened that no commit has taken yet. */
  readonly hasChanges: () => boolean;
  /** Whether some of it has to be on the disk before anybody is told. */
  readonly hasPressingChanges: () => boolean;
  /** Takes everything that happened so far to the disk. */
  readonly commit: () => Promise<void>;
  /** A commit failed: nothing of it is on the disk, and what was staged will never be delivered. */
  readonly failed: (error: unknown) => void;
}

export class ReplyStages {
  readonly #options: ReplyStagesOptions;
  /** Says nothing that is not durable: goes out at the next flush. */
  #ready: Stage = new Map();
  /** Waits for the commit that runs. */
  #committing: Stage | null = null;
  /** Waits for the commit after it. */
  #open: Stage = new Map();
  #stopped = false;

  constructor(options: ReplyStagesOptions) {
    this.#options = options;
  }

  /** Whether a commit is running. */
  get committing(): boolean {
    return this.#committing !== null;
  }

  /** Where a reply belongs that says something about the state as it is now. */
  stage(recipient: Recipient): Staged {
    if (this.#options.hasPressingChanges()) return staged(this.#open, recipient);
    return staged(this.#committing ?? this.#ready, recipient);
  }

  /** Where a reply belongs that says nothing about the state: at once, unless others to the same recipient wait before it. */
  unconditionalStage(recipient: Recipient): Staged {
    const waiting = this.#open.get(recipient) ?? this.#committing?.get(recipient);
    return waiting ?? staged(this.#ready, recipient);
  }

  /** To be called at the end of each turn: delivers what may go, and starts a commit if one is due and none is running. */
  flush(): void {
    if (this.#stopped) return;
    deliver(this.#ready);
    if (this.#options.hasPressingChanges()) this.#commit();
  }

  /** To be called now and then: stores also what nobody waits for. */
  settle(): void {
    if (!this.#stopped && this.#options.hasChanges()) this.#commit();
  }

  /** Delivers nothing more. */
  stop(): void {
    this.#stopped = true;
  }

  #commit(): void {
    if (this.#committing !== null) return;
    const committing = this.#committing = this.#open;
    this.#open = new Map();
    this.#options.commit().then(() => {
      if (this.#stopped) return;
      this.#committing = null;
      deliver(committing);
      this.flush();
    }, (error) => {
      if (this.#stopped) return;
      this.#stopped = true;
      this.#options.failed(error);
    });
  }
}

function staged(stage: Stage, recipient: Recipient): Staged {
  let entry = stage.get(recipient);
  if (entry === undefined) {
    stage.set(recipient, entry = { writer: new ByteWriter(), replies: 0, requestBytes: 0, last: false });
  }
  return entry;
}

/**
 * Whoever asked is told first, whoever leaves last: every write wakes its reader, who may run in the keeper's stead. A
 * grant starts a job; what others hear of it only makes them look.
 */
function deliver(stage: Stage): void {
  if (stage.size === 0) return;
  const entries = [...stage].sort(([, left], [, right]) => urgency(left) - urgency(right));
  stage.clear();
  for (const [recipient, entry] of entries) recipient.deliver(entry);
}

function urgency({ replies, last }: Staged): number {
  if (last) return 2;
  return replies > 0 ? 0 : 1;
}
