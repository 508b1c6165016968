/**
 * A hash of everything that happens in a run: two runs with the same hash took the same way. Integer arithmetic alone
 * (FNV-1a, twice).
 */

const prime = 0x01000193;
const otherPrime = 0x85ebca6b;

export class TraceHash {
  #one = 0x811c9dc5;
  #other = 0x9747b28c;
  readonly #number = new Float64Array(1);
  readonly #numberBytes = new Uint8Array(this.#number.buffer);

  number(value: number): void {
    this.#number[0] = value;
    this.bytes(this.#numberBytes);
  }

  text(value: string): void {
    for (let at = 0; at < value.length; at++) this.#add(value.charCodeAt(at));
  }

  bytes(value: Uint8Array): void {
    for (let at = 0; at < value.length; at++) this.#add(value[at] as number);
  }

  /** Sixteen hexadecimal digits. */
  get value(): string {
    return [this.#one, this.#other].map((half) => (half >>> 0).toString(16).padStart(8, "0")).join("");
  }

  #add(value: number): void {
    this.#one = Math.imul(this.#one ^ value, prime);
    this.#other = Math.imul((this.#other << 5 | this.#other >>> 27) ^ value, otherPrime);
  }
}
