/**
 * The sessions and their deadlines. A session expires at the first tick after its full timeout, never earlier. Callers
 * pass the time of their session clock. Source: ExpiryQueue.
 */
import { timingSafeEqual } from "node:crypto";

export const sessionPasswordBytes = 16;

export interface KeeperSession {
  readonly id: bigint;
  readonly password: Uint8Array;
  timeoutMs: number;
  /**
   * The time at which the session expires if no request comes, in milliseconds of the session clock. It is a multiple
   * of the tick.
   */
  deadlineMs: number;
}

export class KeeperSessionTable {
  readonly #tickTimeMs: number;
  readonly #sessions = new Map<bigint, KeeperSession>();
  readonly #byDeadline = new Map<number, Set<KeeperSession>>();
  #changed = new Map<bigint, KeeperSession | null>();
  /** The number of changed sessions whose only change is that they were opened. */
  #opened = 0;

  constructor(tickTimeMs: number) {
    this.#tickTimeMs = tickTimeMs;
  }

  get size(): number {
    return this.#sessions.size;
  }

  get all(): Iterable<KeeperSession> {
    return this.#sessions.values();
  }

  get hasChanges(): boolean {
    return this.#changed.size > 0;
  }

  /** True if there are changes other than opened sessions. */
  get hasUrgentChanges(): boolean {
    return this.#changed.size > this.#opened;
  }

  /** Returns the session if the password is correct; otherwise undefined. */
  find(id: bigint, password: Uint8Array | null): KeeperSession | undefined {
    const session = this.#sessions.get(id);
    if (session === undefined || password?.byteLength !== session.password.byteLength) return undefined;
    return timingSafeEqual(session.password, password) ? session : undefined;
  }

  /** Adds a new or restored session. Its full timeout starts now. */
  add(start: { id: bigint; password: Uint8Array; timeoutMs: number }, nowMs: number): KeeperSession {
    const session: KeeperSession = { ...start, deadlineMs: NaN };
    this.#sessions.set(session.id, session);
    this.#changed.set(session.id, session);
    this.#opened++;
    this.touch(session, nowMs);
    return session;
  }

  /**
   * Changes the timeout of a session, which each connection negotiates. The client relies on the timeout, so the change
   * must survive a restart.
   */
  setTimeout(session: KeeperSession, timeoutMs: number): void {
    if (session.timeoutMs === timeoutMs) return;
    session.timeoutMs = timeoutMs;
    this.#changeUrgently(session.id, session);
  }

  touch(session: KeeperSession, nowMs: number): void {
    const deadlineMs = (Math.floor((nowMs + session.timeoutMs) / this.#tickTimeMs) + 1) * this.#tickTimeMs;
    if (deadlineMs === session.deadlineMs) return;
    this.#leaveBucket(session);
    session.deadlineMs = deadlineMs;
    const bucket = this.#byDeadline.get(deadlineMs);
    if (bucket === undefined) this.#byDeadline.set(deadlineMs, new Set([session]));
    else bucket.add(session);
  }

  removeSession(session: KeeperSession): void {
    this.#sessions.delete(session.id);
    this.#changeUrgently(session.id, null);
    this.#leaveBucket(session);
  }

  /** Returns the expired sessions. They stay in the table until they are removed. */
  expiredSessions(nowMs: number): KeeperSession[] {
    const sessions: KeeperSession[] = [];
    for (const [deadlineMs, bucket] of this.#byDeadline) {
      if (deadlineMs <= nowMs) sessions.push(...bucket);
    }
    return sessions;
  }

  takeChanges(): Map<bigint, KeeperSession | null> {
    const changed = this.#changed;
    this.#changed = new Map();
    this.#opened = 0;
    return changed;
  }

  #changeUrgently(id: bigint, session: KeeperSession | null): void {
    this.#changed.set(id, session);
    this.#opened = 0; // opened sessions are stored together with this change
  }

  #leaveBucket(session: KeeperSession): void {
    const bucket = this.#byDeadline.get(session.deadlineMs);
    bucket?.delete(session);
    if (bucket?.size === 0) this.#byDeadline.delete(session.deadlineMs);
  }
}
