/** How long each part of a round took, and what there was to see while one took far longer than it should. */
export interface Phase {
  readonly name: string;
  readonly tookMs: number;
}

/** A part that takes longer is looked at, and so often again. Milliseconds. */
const slowMs = 30_000;

export class Phases {
  readonly done: Phase[] = [];
  /** What was seen in slow ones. */
  readonly notes: string[] = [];
  readonly #look: () => string;

  /** `look` tells what there is at the moment. */
  constructor(look: () => string) {
    this.#look = look;
  }

  async run<T>(name: string, work: () => Promise<T>): Promise<T> {
    const startMs = performance.now();
    const wallMs = Date.now();
    const tookMs = () => performance.now() - startMs;
    const watch = setInterval(() => {
      // A wall clock that was set moves every time that messages wait for.
      const drift = Math.round(Date.now() - wallMs - tookMs());
      this.notes.push(`${name} for ${Math.round(tookMs() / 1000)} s, wall clock ${drift} ms off: ${this.#look()}`);
    }, slowMs);
    try {
      return await work();
    } finally {
      clearInterval(watch);
      this.done.push({ name, tookMs: tookMs() });
    }
  }

  toString(): string {
    return this.done.map(({ name, tookMs }) => `${name} ${(tookMs / 1000).toFixed(1)}`).join(", ");
  }
}
