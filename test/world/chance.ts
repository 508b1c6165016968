/**
 * Chance of a simulated world: generators by name, so that a further draw in one place changes no other. No logarithms:
 * they differ between runtimes.
 */
import { seededRandom } from "../support/random.ts";

export class Chance {
  readonly #next: () => number;
  readonly #seed: number;

  constructor(seed: number) {
    this.#seed = seed;
    this.#next = seededRandom(seed);
  }

  /** A generator of its own; the same name gives the same one. */
  fork(name: string): Chance {
    let mixed = this.#seed ^ 0x9e3779b9;
    for (let at = 0; at < name.length; at++) mixed = Math.imul(mixed ^ name.charCodeAt(at), 0x01000193);
    return new Chance((mixed ^ mixed >>> 15) >>> 0);
  }

  /** A number in [0, 1). */
  readonly next = (): number => this.#next();

  /** True with this probability. */
  is(probability: number): boolean {
    return this.#next() < probability;
  }

  between(low: number, high: number): number {
    return low + this.#next() * (high - low);
  }

  whole(low: number, high: number): number {
    return Math.floor(this.between(low, high + 1));
  }

  oneOf<T>(items: readonly T[]): T {
    return items[Math.floor(this.#next() * items.length)] as T;
  }

  bytes(into: Uint8Array): void {
    for (let at = 0; at < into.length; at++) into[at] = this.#next() * 256;
  }
}
