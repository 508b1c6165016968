/** A lock that `permits` processes may hold at the same time. */
import { Lock, type LockOptions } from "./lock_object.ts";
import type { SessionPlace } from "./session_source.ts";

export type SemaphoreOptions = Omit<LockOptions, "mode" | "limit" | "recipe">;

/** Each lease has a `slot` from 0 to `permits` - 1 that no other lease has at the same time. */
export class Semaphore extends Lock {
  readonly permits: number;

  /** All users must request the same number of permits, or choose a `limitPolicy`; else `acquire` rejects LIMIT_MISMATCH. */
  constructor(place: SessionPlace, name: string, permits: number, options: SemaphoreOptions = {}) {
    super(place, name, { ...options, mode: "permit", limit: permits });
    this.permits = permits;
  }
}
