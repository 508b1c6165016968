/**
 * The memory for incomplete messages of all accepted connections of a socket. While memory is short, decides which
 * connections to stop reading, and which to close after a while. Pure; the caller stops and closes them. Below a first
 * limit, every connection is read. Above the first limit, only connections that hold less than an equal share are read.
 * Above a second limit, only connections that hold next to nothing are read. A connection may exceed these limits by
 * one chunk. In addition, the connection whose message began first is read to the end of that message. Room for one
 * message is reserved for it, so that connections do not all wait for each other.
 */

export interface IncompleteMessageBudgetLimits {
  /** The memory for all incomplete messages, in bytes; more than the longest message. */
  readonly bytesMax: number;
  /** The longest message in bytes. */
  readonly messageBytesMax: number;
}

/** The connections that the caller must stop reading, and the connections that it must read again. */
export interface ConnectionReadingChanges<Owner> {
  readonly stop: readonly Owner[];
  readonly resume: readonly Owner[];
}

/** A connection that holds at most this many bytes is always read, and its bytes are not counted. */
export const uncountedInputBytesMax = 16 << 10;
/** How long a message may take to arrive while memory is short, in milliseconds. */
export const incompleteMessageMsMax = 10_000;

interface Holding {
  bytes: number;
  sinceMs: number;
  isStopped: boolean;
}

const noChanges: ConnectionReadingChanges<never> = { stop: [], resume: [] };

export class IncompleteMessageBudget<Owner> {
  readonly #sharedBytes: number;
  readonly #stopBytes: number;
  /** Connections in the order in which their messages began. */
  readonly #holdings = new Map<Owner, Holding>();
  #total = 0;
  #shortSinceMs: number | null = null;
  /** The connection that is read to the end of its message, and the time since when; null if there is none. */
  #preferred: { readonly owner: Owner; readonly sinceMs: number } | null = null;

  constructor({ bytesMax, messageBytesMax }: IncompleteMessageBudgetLimits) {
    this.#stopBytes = bytesMax - messageBytesMax;
    this.#sharedBytes = this.#stopBytes / 2;
  }

  /** The counted bytes of all connections. */
  get total(): number {
    return this.#total;
  }

  /** True while memory is short. The caller must then call `expiredOwners` from time to time. */
  get isShort(): boolean {
    return this.#shortSinceMs !== null;
  }

  /**
   * Sets how many bytes of an incomplete message a connection holds; 0 when the connection is closed. `isNext` is true
   * if a new message has begun since the previous call.
   */
  setHeldBytes(
    owner: Owner,
    bytes: number,
    { isNext, nowMs }: { isNext: boolean; nowMs: number },
  ): ConnectionReadingChanges<Owner> {
    const before = this.#holdings.get(owner);
    if (before === undefined && bytes <= uncountedInputBytesMax) return noChanges;
    const added = this.#count(owner, before, { bytes, isNext, nowMs });
    const wasShort = this.isShort;
    if (!wasShort && this.#total >= this.#sharedBytes) this.#shortSinceMs = nowMs;
    // Memory counts as short until the total is clearly below the limit. Otherwise single chunks would stop and resume
    // all connections each time.
    else if (wasShort && this.#total < this.#sharedBytes * 0.75) this.#shortSinceMs = null;
    if (!wasShort && !this.isShort) return noChanges;
    const freed = before?.isStopped === true && !this.#holdings.has(owner) ? [owner] : [];
    const passesMark = this.#total >= this.#stopBytes && this.#total - added < this.#stopBytes;
    const concerned = added > 0 && wasShort && !passesMark ? [owner] : [...this.#holdings.keys()];
    return this.#decide(concerned, freed, nowMs);
  }

  /**
   * Returns the connections that the caller must close: their message was incomplete for too long while memory was
   * short.
   */
  expiredOwners(nowMs: number): Owner[] {
    const shortSinceMs = this.#shortSinceMs;
    if (shortSinceMs === null) return [];
    const gone: Owner[] = [];
    for (const [owner, { sinceMs }] of this.#holdings) {
      const firstSinceMs = this.#preferred?.owner === owner ? this.#preferred.sinceMs : 0;
      if (nowMs - Math.max(sinceMs, shortSinceMs, firstSinceMs) >= incompleteMessageMsMax) gone.push(owner);
    }
    return gone;
  }

  /** Counts the bytes that a connection holds. Returns the growth in bytes. */
  #count(
    owner: Owner,
    before: Holding | undefined,
    { bytes, isNext, nowMs }: { bytes: number; isNext: boolean; nowMs: number },
  ): number {
    const counted = bytes <= uncountedInputBytesMax ? 0 : bytes;
    const added = counted - (before?.bytes ?? 0);
    this.#total += added;
    if (isNext || counted === 0) {
      this.#holdings.delete(owner);
      if (this.#preferred?.owner === owner) this.#preferred = null;
    } else if (before !== undefined) {
      before.bytes = counted;
      return added;
    }
    if (counted > 0) {
      this.#holdings.set(owner, { bytes: counted, sinceMs: nowMs, isStopped: before?.isStopped ?? false });
    }
    return added;
  }

  #decide(concerned: readonly Owner[], freed: readonly Owner[], nowMs: number): ConnectionReadingChanges<Owner> {
    const stop: Owner[] = [];
    const resume: Owner[] = [...freed];
    for (const owner of concerned) {
      const holding = this.#holdings.get(owner);
      if (holding === undefined || holding.isStopped === !this.#mayRead(owner, holding)) continue;
      holding.isStopped = !holding.isStopped;
      (holding.isStopped ? stop : resume).push(owner);
    }
    if (!this.isShort) {
      this.#preferred = null;
      return { stop, resume };
    }
    if (this.#preferred !== null) return { stop, resume };
    for (const [owner, holding] of this.#holdings) {
      if (!holding.isStopped) continue;
      this.#preferred = { owner, sinceMs: nowMs };
      holding.isStopped = false;
      const justStopped = stop.indexOf(owner);
      if (justStopped >= 0) stop.splice(justStopped, 1);
      else resume.push(owner);
      break;
    }
    return { stop, resume };
  }

  #mayRead(owner: Owner, { bytes }: Holding): boolean {
    if (!this.isShort || this.#preferred?.owner === owner) return true;
    return this.#total < this.#stopBytes && bytes <= this.#sharedBytes / this.#holdings.size;
  }
}
