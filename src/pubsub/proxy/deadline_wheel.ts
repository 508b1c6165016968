/**
 * Keeps many deadlines with one timer, accurate to one tick (`deadlineWheelTickMs`). Setting and canceling a deadline
 * takes little time.
 */
import type { Clock } from "../../base/support/clock.ts";

/** The longest delay with which an expired deadline is handled, in milliseconds. */
export const deadlineWheelTickMs = 10;

export class DeadlineWheel<T> implements Disposable {
  readonly #clock: Clock;
  readonly #onDeadline: (item: T) => void;
  readonly #ticks = new Map<number, Set<T>>();
  #cancel: (() => void) | null = null;
  #lastTick: number;

  constructor(clock: Clock, due: (item: T) => void) {
    this.#clock = clock;
    this.#onDeadline = due;
    this.#lastTick = this.#tickOf(clock.now());
  }

  /** Sets a deadline at the clock time `atMs`. Returns the tick that `cancel` needs. */
  set(item: T, atMs: number): number {
    if (this.#ticks.size === 0) this.#lastTick = this.#tickOf(this.#clock.now());
    const tick = Math.max(this.#tickOf(atMs), this.#lastTick) + 1;
    let items = this.#ticks.get(tick);
    if (items === undefined) this.#ticks.set(tick, items = new Set());
    items.add(item);
    this.#cancel ??= this.#clock.startTimer(deadlineWheelTickMs, this.#handleDueTicks);
    return tick;
  }

  /** Cancels a deadline. Does nothing if it has expired. */
  cancel(item: T, tick: number): void {
    const items = this.#ticks.get(tick);
    if (items === undefined || !items.delete(item)) return;
    if (items.size === 0) this.#ticks.delete(tick);
  }

  [Symbol.dispose](): void {
    this.#cancel?.();
    this.#cancel = null;
    this.#ticks.clear();
  }

  readonly #handleDueTicks = (): void => {
    this.#cancel = null;
    const now = this.#tickOf(this.#clock.now());
    const late: Set<T>[] = [];
    // If the machine was suspended, there may be more ticks than deadlines. In that case, goes through the deadlines.
    if (now - this.#lastTick > this.#ticks.size) {
      for (const [tick, items] of this.#ticks) if (tick <= now) late.push(this.#removeTick(tick, items));
    } else {
      for (let tick = this.#lastTick + 1; tick <= now; tick++) {
        const items = this.#ticks.get(tick);
        if (items !== undefined) late.push(this.#removeTick(tick, items));
      }
    }
    this.#lastTick = now;
    for (const items of late) for (const item of items) this.#onDeadline(item);
    if (this.#ticks.size > 0) this.#cancel ??= this.#clock.startTimer(deadlineWheelTickMs, this.#handleDueTicks);
  };

  #removeTick(tick: number, items: Set<T>): Set<T> {
    this.#ticks.delete(tick);
    return items;
  }

  #tickOf(ms: number): number {
    return Math.floor(ms / deadlineWheelTickMs);
  }
}
