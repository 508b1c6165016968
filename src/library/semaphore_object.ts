/** A lock that so many may hold at once. */
import { Lock, type LockOptions } from "./lock_object.ts";
import type { SessionPlace } from "./session_source.ts";

export type SemaphoreOptions = Omit<LockOptions, "mode" | "limit" | "recipe">;

/** Each lease has a `slot` from 0 to `permits` less 1 that nobody else has meanwhile. */
export class Semaphore extends Lock {
  readonly permits: number;

  /** All who use it must ask for the same number of permits, or choose a `limitPolicy`: LIMIT_MISMATCH. */
  constructor(place: SessionPlace, name: string, permits: number, options: SemaphoreOptions = {}) {
    super(place, name, { ...options, mode: "permit", limit: permits });
    this.permits = permits;
  }
}
