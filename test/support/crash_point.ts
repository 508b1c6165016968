/**
 * A process that stops for good at a chosen step: from then on nothing that it has called ever returns, and nothing
 * that it calls is done. Its session is not closed: the servers have to find out.
 */
export class CrashPoint {
  /** Steps taken so far, by name. */
  readonly steps: string[] = [];
  readonly when: "before" | "after";
  /** Called with the number of each step, before it is done. */
  onStep: (count: number) => void = () => {};
  #at: number | string;
  readonly #crashed = Promise.withResolvers<void>();
  #isCrashed = false;

  /**
   * The step to stop at, before or after it is done: its number, counted from 1, or the first of that name; 0: never.
   */
  constructor(at: number | string = 0, when: "before" | "after" = "before") {
    this.#at = at;
    this.when = when;
  }

  /** So many steps from here. */
  crashIn(steps: number): void {
    this.#at = this.steps.length + steps;
  }

  get isCrashed(): boolean {
    return this.#isCrashed;
  }

  /** Resolves when it has crashed. */
  get crashed(): Promise<void> {
    return this.#crashed.promise;
  }

  /** `target`, with each call of a method that gives a promise being a step; those in `free` are none. */
  around<T extends object>(target: T, free: readonly string[] = []): T {
    return new Proxy(target, {
      get: (object, name) => {
        const value: unknown = Reflect.get(object, name, object);
        if (typeof value !== "function" || typeof name !== "string") return value;
        const call = value.bind(object) as (...words: unknown[]) => unknown;
        return free.includes(name) ? call : (...words: unknown[]) => this.#step(name, () => call(...words));
      },
    });
  }

  #step(name: string, work: () => unknown): unknown {
    const never = new Promise<never>(() => {});
    if (this.#isCrashed) return never;
    this.steps.push(name);
    this.onStep(this.steps.length);
    const isLast = this.steps.length === this.#at || name === this.#at;
    if (isLast && this.when === "before") {
      this.#crash();
      return never;
    }
    const result = work();
    if (!(result instanceof Promise)) {
      if (isLast) this.#crash();
      return result;
    }
    // After it is done, which may take steps of its own.
    if (isLast) result.then(() => this.#crash(), () => this.#crash());
    return result.then(
      (value: unknown) => this.isCrashed ? never : value,
      (thrown: unknown) => this.isCrashed ? never : Promise.reject(thrown),
    );
  }

  #crash(): void {
    this.#isCrashed = true;
    this.#crashed.resolve();
  }
}
