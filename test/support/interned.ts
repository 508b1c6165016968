/** A short number for each different value, found once per object: keys of states stay short and cheap. */

export class Interned<T extends object> {
  readonly #textOf: (value: T) => string;
  readonly #numbers = new Map<string, number>();
  readonly #known = new WeakMap<T, number>();

  constructor(textOf: (value: T) => string) {
    this.#textOf = textOf;
  }

  numberOf(value: T): number {
    let number = this.#known.get(value);
    if (number !== undefined) return number;
    const text = this.#textOf(value);
    number = this.#numbers.get(text) ?? this.#numbers.size;
    this.#numbers.set(text, number);
    this.#known.set(value, number);
    return number;
  }
}
